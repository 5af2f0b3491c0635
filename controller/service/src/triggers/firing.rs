//! Firing a trigger: its job or run is prepared here, and started with the change of the trigger in one command.

use std::sync::Arc;

use atlas_desk::requests;
use atlas_duty::waits_for_node;
use atlas_objects::TriggerStatus;
use atlas_state::State;
use atlas_triggers::{Kind, Target};
use atlas_types::{
    CancelJob, CancelRun, Command, Door, FireTrigger, FiredBy, Job, JobId, ObjectKey, ObjectKind, ObjectName, Origin,
    Outcome, Reason, Rejection, Request, RequestId, Run, RunDefinition, RunId, StartRun, SubmitJob, Timestamp,
    TriggerStart,
};
use bytes::Bytes;
use serde_json::{Map, Value};

use super::{Trigger, seconds, timestamp, trigger_key};
use crate::Submission;
use crate::{Caller, Error, Service};

/// How often a firing is prepared again after the trigger or its agent changed at the same time.
const TRIES_MAX: usize = 5;

/// A firing that a client asks for.
pub(super) struct Wanted<'w> {
    pub(super) by: FiredBy,
    /// The time for which it fires; now if none.
    pub(super) tick: Option<Timestamp>,
    /// Members of the input beyond those of the trigger.
    pub(super) input: &'w Map<String, Value>,
    /// What a repeat is known by, and the hash of what a repeat has in common.
    pub(super) known_by: Option<(RequestId, u64)>,
}

/// A firing by a leader task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scheduled {
    pub(super) tick: Timestamp,
    pub(super) next: Timestamp,
    pub(super) missed: u64,
    /// Whether the time is left out.
    pub(super) skip: bool,
}

impl Service {
    /// Fires a trigger now, also a disabled one. Returns the id of its job or run.
    pub async fn fire_trigger(&self, caller: &Caller, id: &str) -> Result<String, Error> {
        let wanted = |_: &Trigger| Ok(());
        let missing = || Error::UnknownObject(format!("Trigger '{id}' not found"));
        let known_by = caller.request_id.clone().map(|key| (key, atlas_artifacts::hash(id.as_bytes())));
        let fired = Wanted { by: FiredBy::Request, tick: None, input: &Map::new(), known_by };
        self.fire_wanted(caller, id, &fired, wanted, missing).await
    }

    /// Fires a trigger that `accepts` accepts, and returns the id of its job or run.
    pub(super) async fn fire_wanted(
        &self,
        caller: &Caller,
        id: &str,
        wanted: &Wanted<'_>,
        accepts: impl Fn(&Trigger) -> Result<(), Error>,
        missing: impl Fn() -> Error,
    ) -> Result<String, Error> {
        let key = trigger_key(&caller.namespace, id).map_err(|_| missing())?;
        let mut origin = Origin { request_id: None, ..requests::origin(caller) };
        if let Some((request_id, body_hash)) = &wanted.known_by {
            (origin.request_id, origin.body_hash) = (Some(request_id.clone()), *body_hash);
        }
        for _ in 0..TRIES_MAX {
            let state = self.shared.read().await?;
            match state.remembered(&origin) {
                Some(Ok(Outcome::Submitted { job, .. })) => return Ok(job.to_string()),
                Some(Ok(Outcome::RunStarted { run })) => return Ok(run.shown()),
                Some(Ok(_)) => return Err(Error::RequestConflict),
                Some(Err(rejection)) => return Err(rejection.into()),
                None => {}
            }
            let trigger = Trigger::read(state.object(&key).ok_or_else(&missing)?)?;
            accepts(&trigger)?;
            let now = self.shared.env.clock.wall();
            let next = match trigger.definition.kind {
                Kind::OneShot { .. } | Kind::Webhook => Timestamp::NOT_YET,
                Kind::Cron { .. } | Kind::Interval { .. } => timestamp(trigger.definition.following(seconds(now))),
            };
            let start = self.start_of(caller, &trigger, wanted.input, &state).await?;
            let id = start.id();
            let command = FireTrigger {
                name: key.name.clone(),
                uid: trigger.object.uid,
                revision: trigger.object.revision,
                by: wanted.by,
                tick: wanted.tick.unwrap_or(now),
                next,
                missed: 0,
                start: Some(start),
            };
            let request = Request { origin: origin.clone(), command: Command::FireTrigger(command) };
            let outcome = self.shared.propose_all(vec![request]).await?.into_iter().next();
            match outcome.ok_or(Error::OutcomeUnknown)? {
                Ok(outcome) => {
                    self.shared.metrics.trigger_firings.inc();
                    return match outcome {
                        // A repeat that was committed meanwhile has another id.
                        Outcome::Submitted { job, .. } => Ok(job.to_string()),
                        Outcome::RunStarted { run } => Ok(run.shown()),
                        _ => Ok(id),
                    };
                }
                // It, its agent or its chain was changed or deleted meanwhile, or another job or run drew the same id.
                Err(
                    Rejection::UnknownObject
                    | Rejection::ObjectChanged { .. }
                    | Rejection::StaleAgent
                    | Rejection::StaleRun
                    | Rejection::DuplicateJob { .. },
                ) => {}
                Err(rejection) => return Err(rejection.into()),
            }
        }
        Err(Error::Overloaded)
    }

    /// The command that fires a trigger whose time has come. Its job or run is prepared from `state`: what has changed since is refused
    /// when the command is applied.
    pub(super) async fn due_firing(&self, trigger: &Trigger, due: Scheduled, state: &State) -> Result<Request, Error> {
        let (object, caller) = (&trigger.object, on_behalf_of(trigger));
        let start = if due.skip { None } else { Some(self.start_of(&caller, trigger, &Map::new(), state).await?) };
        let command = FireTrigger {
            name: object.key.name.clone(),
            uid: object.uid,
            revision: object.revision,
            by: FiredBy::Schedule,
            tick: due.tick,
            next: due.next,
            missed: due.missed,
            start,
        };
        Ok(Request { origin: requests::origin(&caller), command: Command::FireTrigger(command) })
    }

    /// What a firing starts.
    async fn start_of(
        &self,
        caller: &Caller,
        trigger: &Trigger,
        more: &Map<String, Value>,
        state: &State,
    ) -> Result<TriggerStart, Error> {
        let mut start = trigger.definition.submission(trigger.object.key.name.as_str());
        start.input.extend(more.clone());
        let input = Bytes::from(Value::Object(start.input).to_string());
        let metadata = Value::Object(start.metadata).to_string().into_bytes().into();
        let agent = match start.target {
            Target::Agent(name) => name.parse()?,
            Target::Chain(name) => {
                let run = StartRun {
                    id: RunId(self.shared.env.entropy.u64()),
                    definition: RunDefinition::Named(chain(caller, &name, state)?),
                    input: self.payload(input).await?,
                    priority: start.priority,
                    metadata,
                };
                return Ok(TriggerStart::Run(Box::new(run)));
            }
        };
        let submission = Submission { priority: start.priority, ..Submission::new(agent, input) };
        let verdict = self.shared.jobs.judge(caller, &submission, state).await?;
        let input = self.shared.jobs.store_input(&submission).await?;
        Ok(TriggerStart::Job(Box::new(SubmitJob {
            metadata,
            waits_for_node: waits_for_node(state, &caller.namespace, None),
            policies: self.shared.registry.policies_of(state, &caller.namespace),
            ..submission.command(self.shared.jobs.draw_id(), verdict, input)
        })))
    }
}

/// What a firing started.
pub(super) enum Started<'s> {
    Run(&'s Arc<Run>),
    Job(&'s Arc<Job>),
}

/// The run or job of the last firing, or the latest retry of that job, as long as the state has it.
pub(super) fn last_started<'s>(state: &'s State, status: &TriggerStatus) -> Option<Started<'s>> {
    if let Some(run) = RunId::of_shown(&status.last_job_id).and_then(|run| state.run(run)) {
        return Some(Started::Run(run));
    }
    latest(state, status.last_job_id.parse().ok()?).map(Started::Job)
}

/// A job, or its latest retry, as long as the state has it.
pub(super) fn latest(state: &State, job: JobId) -> Option<&Arc<Job>> {
    let mut job = state.job(job)?;
    while let Some(successor) = job.successor.and_then(|id| state.job(id)) {
        job = successor;
    }
    Some(job)
}

/// The command that cancels what the last firing started; none if that was asked for already.
pub(super) fn cancel_last(trigger: &Trigger, state: &State) -> Option<Request> {
    let command = match last_started(state, &trigger.status)? {
        Started::Run(run) if run.status.is_terminal() => return None,
        Started::Run(run) => Command::CancelRun(CancelRun { run: run.id }),
        Started::Job(job) if job.reason == Reason::Cancelling => return None,
        Started::Job(job) => Command::CancelJob(CancelJob { job: job.id, running: true }),
    };
    Some(Request { origin: requests::origin(&on_behalf_of(trigger)), command })
}

/// The caller of what the cluster does for a trigger: a job has the rights of the one who wants it.
fn on_behalf_of(trigger: &Trigger) -> Caller {
    let object = &trigger.object;
    let mut caller = Caller::cluster(Door::Duty);
    (caller.namespace, caller.principal) = (object.key.namespace.clone(), object.by.clone());
    caller
}

/// The stored chain that a trigger names.
pub(super) fn chain(caller: &Caller, name: &str, state: &State) -> Result<ObjectName, Error> {
    let unknown = || Error::UnknownObject(format!("no such chain: \"{name}\""));
    let name = ObjectName::new(name).map_err(|_| unknown())?;
    let key = ObjectKey { namespace: caller.namespace.clone(), kind: ObjectKind::new("chain")?, name };
    state.object(&key).ok_or_else(unknown)?;
    Ok(key.name)
}
