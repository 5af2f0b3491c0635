//! The leader continues runs: it looks up the agents of new ones, and makes the input of each next step.
//!
//! This needs schemas, which may be large or slow, so it happens beside the leader loop. Its result is a command that names the version
//! of the run; whatever happened to the run meanwhile makes that command void. Nothing here has to survive a change of leader: the state
//! says which runs can go on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use atlas_desk::on_behalf;
use atlas_duty::{plan_step, waits_for_node};
use atlas_raft::Leadership;
use atlas_registry::{KnownContract, find_version};
use atlas_runs::{Chain, Next, Plan, PlannedStep, StepInput, context, next, step_job, unknown_agents};
use atlas_state::State;
use atlas_types::{
    AdvanceRun, AgentName, AgentVersion, CancelRun, Command, Event, EventRecord, Failure, FailureKind, JobId, Origin,
    Rejection, Request, Run, RunFailure, RunFault, RunNext, RunStatus, SubmitJob, Timestamp, Verdict, Version,
};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::shares::Shares;
use super::{branches, bridge, publish};
use crate::service::Shared;
use crate::{Caller, Error, Service};

/// The pause before a run is continued again that could not be, because a limit is reached or data is out of reach.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// What happened to one attempt to continue a run.
enum Went {
    /// It went on, ended, or had changed.
    On,
    /// Not now.
    Nowhere,
}

/// Continues runs as long as this member leads.
pub(crate) async fn drive(shared: Arc<Shared>) {
    let mut leadership = shared.handle.leadership();
    while leadership.wait_for(leads).await.is_ok() {
        let service = Service { shared: Arc::clone(&shared) };
        tokio::select! {
            biased;
            ended = leadership.wait_for(|now| !leads(now)) => if ended.is_err() {
                return;
            },
            () = lead(&service) => return,
        }
    }
}

fn leads(leadership: &Leadership) -> bool {
    matches!(leadership, Leadership::Leader { .. })
}

fn is_ready(event: &EventRecord) -> bool {
    matches!(&event.event, Event::Run { run, .. } if run.is_ready())
}

/// Completes when the log ends.
async fn lead(service: &Service) {
    let handle = &service.shared.handle;
    let clock = &service.shared.env.clock;
    let mut batches = handle.subscribe_to(|batch| batch.events.iter().any(is_ready));
    let mut work: FuturesUnordered<BoxFuture<'_, (Arc<Run>, Went)>> = FuturesUnordered::new();
    let mut shares = Shares::default();
    let (mut working, mut paused) = (BTreeSet::new(), BTreeSet::new());
    let mut over = clock.sleep(PAUSE);
    let mut look = true;
    loop {
        if std::mem::take(&mut look) {
            let state = handle.applied();
            let idle = |run: &&Arc<Run>| !working.contains(&run.id) && !paused.contains(&run.id);
            let mut ready: Vec<Arc<Run>> = Vec::new();
            for run in state.runs_ready().filter(idle) {
                if !shares.have_room() {
                    break;
                }
                if shares.admits(&run.namespace) {
                    ready.push(Arc::clone(run));
                }
            }
            for run in ready {
                working.insert(run.id);
                work.push(Box::pin(async move {
                    let went = advance(service, &run).await;
                    (run, went)
                }));
            }
        }
        tokio::select! {
            biased;
            Some((run, went)) = work.next(), if !work.is_empty() => {
                working.remove(&run.id);
                shares.give_back(&run.namespace);
                if matches!(went, Went::Nowhere) {
                    paused.insert(run.id);
                }
                look = true;
            }
            batch = batches.recv() => match batch {
                Ok(batch) => look = batch.events.iter().any(is_ready),
                Err(RecvError::Lagged(_)) => look = true,
                Err(RecvError::Closed) => return,
            },
            () = &mut over => {
                paused.clear();
                look = true;
                over = clock.sleep(PAUSE);
            }
        }
    }
}

/// Whether a run was started for a job that ended before the run got it: its leader was lost between the two, and a cancel came in between.
fn is_left_behind(state: &State, run: &Run) -> bool {
    let job = state.job(JobId(run.id.0)).filter(|job| job.is_for_a_run());
    run.job.is_none() && job.is_some_and(|job| job.status.is_terminal())
}

/// Proposes what a run does next.
async fn advance(service: &Service, run: &Run) -> Went {
    let state = service.shared.handle.applied();
    if is_left_behind(&state, run) {
        let command = Command::CancelRun(CancelRun { run: run.id });
        let request = Request { origin: Origin::duty(run.namespace.clone()), command };
        let cancelled = service.shared.handle.propose_here(vec![request]).await;
        return if cancelled.is_ok() { Went::On } else { Went::Nowhere };
    }
    // What the leader loop had no room for is the same here.
    let found = match plan_step(&state, run) {
        Ok(next) => Ok(Some((None, next))),
        Err(why) => {
            tracing::trace!(run = %run.id, %why, "a run goes on beside the leader loop");
            continued(service, &state, run).await
        }
    };
    let (plan, next) = match found {
        Ok(Some(found)) => found,
        Ok(None) => return Went::On,
        Err(error) => {
            tracing::warn!(run = %run.id, error = &error as &dyn std::error::Error, "could not continue a run");
            return Went::Nowhere;
        }
    };
    let command = Command::AdvanceRun(AdvanceRun { run: run.id, version: run.version, plan, next });
    let request = Request { origin: Origin::duty(run.namespace.clone()), command };
    match service.shared.handle.propose_here(vec![request]).await {
        Ok(answers) => match answers.into_iter().next() {
            // An agent that was replaced meanwhile is looked up again.
            Some(Ok(_) | Err(Rejection::StaleRun | Rejection::UnknownRun { .. } | Rejection::StaleAgent)) => Went::On,
            Some(Err(rejection)) => {
                tracing::warn!(run = %run.id, %rejection, "a run has to wait");
                Went::Nowhere
            }
            None => Went::Nowhere,
        },
        Err(error) => {
            tracing::debug!(run = %run.id, %error, "a run was not continued");
            Went::Nowhere
        }
    }
}

/// The plan of a new run, and what the run does next; none if the run has changed meanwhile.
async fn continued(
    service: &Service,
    state: &State,
    run: &Run,
) -> Result<Option<(Option<atlas_types::Payload>, RunNext)>, Error> {
    let (plan, is_new) = match &run.plan {
        Some(plan) => {
            let plan = serde_json::from_value(service.value(plan).await?);
            (plan.map_err(|error| Error::internal("read the plan of a run", &error))?, false)
        }
        None => match look_up(service, state, run).await? {
            Ok(plan) => (plan, true),
            Err(error) => return Ok(Some((None, failed(None, error)))),
        },
    };
    // The look-up may have made chains callable, which an older state does not have.
    let state = &service.shared.handle.applied();
    let trigger = service.value(&run.input).await?;
    if plan.has_branches() {
        let Some(next) = branches::continued(service, state, run, &plan, &trigger).await? else { return Ok(None) };
        return Ok(Some((plan_payload(service, &plan, is_new).await?, next)));
    }
    let mut outputs = Vec::with_capacity(run.steps.len());
    for output in run.steps.iter().filter_map(|step| step.output.as_ref()) {
        outputs.push(service.value(output).await?);
    }
    let next = match next(&plan, &trigger, &outputs) {
        Next::Bridge { index, bridge } => match bridge::convert(service, state, run, &plan, (index, &bridge)).await? {
            Some(next) => next,
            None => return Ok(None),
        },
        other => other,
    };
    let next = match next {
        Next::Step(input) => {
            let strategy = input.strategy;
            let agent = plan.steps.get(input.index).map_or("", |step| &step.agent).into();
            let context = context(&run.chain, input.index, &trigger, &outputs);
            let begin = Begin { id: run.next_job(), context, input, not_before: None };
            let submit = Box::new(submit(service, state, run, &plan, begin).await?);
            RunNext::Step { agent, strategy, submit }
        }
        Next::Fail { index, error } => failed(Some(index), error),
        Next::Done | Next::Bridge { .. } => RunNext::Complete,
    };
    Ok(Some((plan_payload(service, &plan, is_new).await?, next)))
}

async fn plan_payload(service: &Service, plan: &Plan, is_new: bool) -> Result<Option<atlas_types::Payload>, Error> {
    match is_new {
        true => Ok(Some(service.payload(Bytes::from(serde_json::to_vec(plan).unwrap_or_default())).await?)),
        false => Ok(None),
    }
}

fn failed(step: Option<usize>, error: String) -> RunNext {
    let step = step.map(|index| u32::try_from(index).unwrap_or(u32::MAX));
    RunNext::Fail(RunFailure { step, fault: RunFault::Text(error.into()) })
}

/// The versions and schemas of the agents of a new run, or why it cannot begin.
async fn look_up(service: &Service, state: &State, run: &Run) -> Result<Result<Plan, String>, Error> {
    debug_assert_eq!(run.status, RunStatus::Pending);
    let document = service.value(&run.definition).await?;
    let chain = match Chain::stored(&run.chain, &document) {
        Ok(chain) => chain,
        Err(error) => return Ok(Err(format!("Invalid chain definition: {error}"))),
    };
    let caller = caller_of(run);
    if let Some(way) = service.cycle(state, &run.namespace, &run.chain, &chain).await? {
        return Ok(Err(publish::told(&way)));
    }
    let state = &service.with_chains(&caller, state, &chain).await?;
    let found = |agent: &str, range: Option<&str>| known_version(state, &caller, agent, range);
    if let Some(error) = unknown_agents(&chain, |agent, range| found(agent, range).is_some()) {
        return Ok(Err(error));
    }
    plan_of(service, state, &caller, chain).await.map(Ok)
}

/// The version that a step would run.
pub(super) fn known_version(
    state: &State,
    caller: &Caller,
    agent: &str,
    range: Option<&str>,
) -> Option<Arc<AgentVersion>> {
    find_version(state, caller, &AgentName::new(agent).ok()?, range).ok().flatten()
}

/// The plan of a chain whose agents are all registered.
pub(super) async fn plan_of(service: &Service, state: &State, caller: &Caller, chain: Chain) -> Result<Plan, Error> {
    let mut steps = Vec::with_capacity(chain.steps.len());
    // They were read with the definition, which was accepted.
    let mut flows = chain.flows().unwrap_or_default().into_iter().flatten();
    for step in chain.steps {
        let flow = flows.next();
        let Some(agent) = known_version(state, caller, &step.agent, step.range.as_deref()) else { continue };
        let known = service.shared.registry.contract(&agent).await?;
        steps.push(PlannedStep {
            agent: step.agent,
            version: agent.version.to_string(),
            digest: agent.digest.hex(),
            name: step.name,
            input_map: step.input_map,
            input_schema: schema(&known, "input_schema"),
            output_schema: schema(&known, "output_schema"),
            flow,
        });
    }
    Ok(Plan { chain: chain.name, orchestrator: chain.orchestrator, steps })
}

fn schema(known: &KnownContract, member: &str) -> Value {
    known.value.get(member).cloned().unwrap_or_else(|| json!({}))
}

/// A step that begins.
pub(super) struct Begin {
    /// Its first job.
    pub(super) id: JobId,
    /// What its agent is told.
    pub(super) context: Value,
    pub(super) input: StepInput,
    /// Not before this time.
    pub(super) not_before: Option<Timestamp>,
}

/// The job of a step.
pub(super) async fn submit(
    service: &Service,
    state: &State,
    run: &Run,
    plan: &Plan,
    begin: Begin,
) -> Result<SubmitJob, Error> {
    let Begin { id, context, input: StepInput { index, input, .. }, not_before } = begin;
    let Some(planned) = plan.steps.get(index) else { return Err(Error::Internal) };
    let name = AgentName::new(&planned.agent)?;
    let input = Bytes::from(serde_json::to_vec(&input).unwrap_or_default());
    let verdict = verdict(service, state, run, planned, &name, &input).await?;
    let submit = SubmitJob {
        not_before,
        waits_for_node: waits_for_node(state, &run.namespace, None),
        policies: service.shared.registry.policies_of(state, &run.namespace),
        context: Some(service.payload(context.to_string().into()).await?),
        ..SubmitJob::new(id, name, verdict, service.payload(input).await?)
    };
    let submit = step_job(run, plan, index, submit);
    service.routed_step(state, run, &plan.orchestrator, submit).await
}

/// What happens to the job of a step: its version must still be there with the same package, and its input must fit.
async fn verdict(
    service: &Service,
    state: &State,
    run: &Run,
    planned: &PlannedStep,
    name: &AgentName,
    input: &Bytes,
) -> Result<Verdict, Error> {
    let version = planned.version.parse::<Version>().ok();
    let agent = version.and_then(|version| state.agent(&run.namespace, name, version));
    match agent.filter(|agent| agent.digest.hex() == planned.digest) {
        Some(agent) => {
            // The step is the job of the one who started the run.
            let caller = on_behalf::principal(caller_of(run), run.principal.clone());
            service.shared.jobs.judge_version(&caller, agent, (input, run.priority), state).await
        }
        None => {
            let error = format!("No agent implementation found for: {name}");
            Ok(Verdict::Refused { pin: None, failure: Failure { kind: FailureKind::NoAgent, error: error.into() } })
        }
    }
}

pub(super) fn caller_of(run: &Run) -> Caller {
    on_behalf::cluster_in(run.namespace.clone())
}
