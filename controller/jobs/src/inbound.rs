//! Jobs that carry the credential of the request that they came from, for the MCP servers and models that get it.
//!
//! A credential is held in memory by every controller, before its job is submitted: whichever leads sends it with the lease. It is dropped
//! when the job ends.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use atlas_artifacts::PeerError;
use atlas_desk::{Caller, Desk, Error, on_behalf};
use atlas_mcp_spec::ServerSpec;
use atlas_model::ModelSpec;
use atlas_raft::{AppliedBatch, Leadership};
use atlas_state::State;
use atlas_types::{AgentName, AgentVersion, ErrorKind, Event, JobChange, JobId, MemberId, Object, SecretText};
use atlas_vault::Asks;

use crate::bearers::BearerRefused;
use crate::submission::resolve;
use crate::submit::Draft;
use crate::{Jobs, Submission, relations};

/// Most agents that are looked at to find out whether one of them, or of those that they require, passes on the credential.
const AGENTS_MAX: usize = 256;

/// How often credentials of jobs that never came to be are dropped.
const SWEEP: Duration = Duration::from_secs(30);

/// The id of a job that is about to be submitted.
#[derive(Debug, Clone, Copy)]
pub struct IntendedJob {
    pub id: JobId,
    /// Whether the job keeps the id when it is submitted again, as a child does.
    pub stays: bool,
}

impl IntendedJob {
    /// Whether no job gets the id after this error. What is told to forget the credential of one that is submitted again might hear it after
    /// it has got it for the second time.
    fn is_over(self, error: &Error) -> bool {
        let may_be_there = matches!(error, Error::OutcomeUnknown | Error::Unrecorded);
        let passes = match error {
            // Who spawns is told so, and spawns no more by this id.
            Error::QueueFull { .. } | Error::LimitReached(_) => false,
            error => matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Busy),
        };
        let is_submitted_again = self.stays && passes;
        !(may_be_there || is_submitted_again)
    }
}

impl Jobs {
    /// Holds the credential of a job's caller for another controller, until the job ends.
    pub fn hold_bearer(&self, job: JobId, bearer: SecretText) -> Result<(), BearerRefused> {
        self.bearers.hold(job, bearer, self.desk.env.clock.monotonic())
    }

    /// Drops the credential of a job that was refused at another controller.
    pub fn forget_bearer(&self, job: JobId) {
        if self.desk.handle.applied().job(job).is_none() {
            self.bearers.forget(job);
        }
    }

    /// Holds the credential of the caller for a job, before it is submitted. Only a job carries it whose agent, or one that this agent
    /// requires, names a server or a model that gets it: such a job neither parks nor is retried. None for the others.
    pub async fn hold_inbound(
        &self,
        caller: &Caller,
        submission: &Submission,
        intended: IntendedJob,
    ) -> Result<Option<Submission>, Error> {
        let Some(bearer) = on_behalf::credential(caller) else { return Ok(None) };
        let IntendedJob { id: job, .. } = intended;
        let state = self.desk.current().await?;
        // What is wrong with it, or was answered before, is told by who submits it.
        let is_settled =
            submission.check().is_err() || Draft::new(caller, submission, job).remembered(&state).is_some();
        if is_settled || !forwards(&state, caller, submission) {
            return Ok(None);
        }
        // What is refused leaves no credential at the other controllers, which would hold it for a while.
        self.refuses(caller, submission, state).await?;
        let now = self.desk.env.clock.monotonic();
        // While authentication is off, all callers have one name.
        let of = caller.is_authenticated().then_some(&caller.principal);
        let held = self.bearers.hold_of(of, job, bearer.clone(), now);
        held.map_err(|error| Error::Malformed(error.to_string()))?;
        let leads = matches!(*self.desk.handle.leadership().borrow(), Leadership::Leader { .. });
        let group = self.desk.peers.group();
        let leader = group.leader.filter(|_| !leads);
        for member in group.others.into_iter().filter(|member| Some(*member) != leader) {
            // They need it only if they lead before the job has its lease.
            let (desk, bearers, bearer) = (Arc::clone(&self.desk), self.bearers.clone(), bearer.clone());
            self.desk.env.spawn("hold-credential", async move {
                if let Err(error) = desk.peers.hold_bearer(member, job, bearer).await {
                    tracing::debug!(%job, error = &error as &dyn std::error::Error, "a controller does not hold the credential of a caller");
                }
                // The job was refused or has ended meanwhile, and the other controller may have heard so before.
                if bearers.of(job).is_none() {
                    forget_at(&desk, member, job).await;
                }
            });
        }
        if !leads {
            let held = self.held_at(leader, job, bearer).await;
            held.inspect_err(|error| self.forget_unsubmitted(intended, error))?;
        }
        Ok(Some(relations::with_credential(submission.clone())))
    }

    /// Drops the credential of a job that could not be submitted, unless the job may be there or is submitted again.
    pub fn forget_unsubmitted(&self, job: IntendedJob, error: &Error) {
        if job.is_over(error) {
            self.forget_unused(job.id);
        }
    }

    /// Drops the credential of a job that is not to be, unless an earlier try has made the job, and tells the other controllers.
    pub(crate) fn forget_unused(&self, job: JobId) {
        if self.desk.handle.applied().job(job).is_some() {
            return;
        }
        self.bearers.forget(job);
        for member in self.desk.peers.group().others {
            let desk = Arc::clone(&self.desk);
            self.desk.env.spawn("forget-credential", async move { forget_at(&desk, member, job).await });
        }
    }

    async fn held_at(&self, leader: Option<MemberId>, job: JobId, bearer: &SecretText) -> Result<(), Error> {
        let leader = leader.ok_or(Error::NoLeader)?;
        match self.desk.peers.hold_bearer(leader, job, bearer.clone()).await {
            Ok(()) => Ok(()),
            Err(PeerError::Away { .. }) => Err(Error::NoLeader),
            Err(PeerError::Refused { reason, .. }) => {
                Err(Error::Malformed(format!("the credential of the caller cannot be passed on: {reason}")))
            }
        }
    }
}

/// Tells another controller that the job of a credential was refused. One that is not reached drops it later by itself.
async fn forget_at(desk: &Desk, member: MemberId, job: JobId) {
    if let Err(error) = desk.peers.forget_bearer(member, job).await {
        tracing::debug!(%job, error = &error as &dyn std::error::Error, "a controller did not hear that a credential is needed no longer");
    }
}

impl Jobs {
    /// Drops the credentials of jobs that have ended.
    pub fn forget_ended(&self, batch: &AppliedBatch) {
        for event in batch.events.iter() {
            if let Event::Job { change: JobChange::Ended, job, .. } = &event.event {
                self.bearers.forget(job.id);
            }
        }
    }
}

/// Drops from time to time the credentials of jobs that never came to be, and of those whose end was missed.
pub async fn sweep(jobs: Arc<Jobs>) {
    loop {
        jobs.desk.env.clock.sleep(SWEEP).await;
        let state = jobs.desk.handle.applied();
        let lives = |id| state.job(id).is_some_and(|job| !job.status.is_terminal());
        jobs.bearers.retain(jobs.desk.env.clock.monotonic(), lives);
    }
}

/// Whether the agent of a submission, or one that it requires, names a server or a model that gets the credential of callers. What has no
/// agent, such as a stored chain that is not callable yet, passes on nothing.
fn forwards(state: &State, caller: &Caller, submission: &Submission) -> bool {
    let Ok(Some(agent)) = resolve(caller, submission, state) else { return false };
    let mut seen = BTreeSet::from([agent.name.clone()]);
    let mut waiting = VecDeque::from([agent]);
    while let Some(agent) = waiting.pop_front() {
        if names_one(state, &agent, Asks { namespace: &caller.namespace, input: Some(&submission.input) }) {
            return true;
        }
        for required in &agent.spec.requires {
            let name = AgentName::new(&required.name).ok();
            let found = name.and_then(|name| state.agent_latest(&caller.namespace, &name).cloned());
            let Some(found) = found.filter(|_| seen.len() < AGENTS_MAX) else { continue };
            if seen.insert(found.name.clone()) {
                waiting.push_back(found);
            }
        }
    }
    false
}

/// Whether a server or a model that an agent names gets the credential.
fn names_one(state: &State, agent: &AgentVersion, asks: Asks<'_>) -> bool {
    let spec = &agent.spec;
    let servers = spec.servers.iter().filter_map(|name| asks.server(name));
    let models = spec.model.iter().chain(&spec.other_models).flat_map(|name| asks.models(state, name));
    servers.chain(models).filter_map(|key| state.object(&key)).any(|object| passes_on(object))
}

/// Whether a server or a model gets the credential of callers. One that shows its own does not.
pub fn passes_on(object: &Object) -> bool {
    match object.key.kind.as_str() {
        "mcp-server" => ServerSpec::read(&object.spec).is_ok_and(|spec| spec.forwards()),
        "model" => ModelSpec::read(&object.spec).is_ok_and(|spec| spec.forwards()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_credential_of_a_job_that_is_submitted_again_is_kept() {
        let over = |stays, error: Error| IntendedJob { id: JobId(1), stays }.is_over(&error);
        for stays in [false, true] {
            // Those from which nobody knows whether the job is there.
            assert!(!over(stays, Error::OutcomeUnknown) && !over(stays, Error::Unrecorded));
            assert!(over(stays, Error::UnknownJob));
            assert_eq!([over(stays, Error::NoLeader), over(stays, Error::Overloaded)], [!stays; 2]);
        }
    }
}
