//! Calls an orchestrator that is an agent, in a job of the cluster itself: several calls in one job.

use std::sync::Arc;
use std::time::Duration;

use atlas_desk::{on_behalf, requests};
use atlas_state::State;
use atlas_types::{
    AgentPin, AgentVersion, Command, ConsultOrchestrator, FailureKind, Job, JobStatus, Micros, Namespace, Outcome,
};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::{Caller, Error, Service, View};

/// How much longer than its time the job may take until its end is no longer waited for.
const GRACE: Duration = Duration::from_secs(2);

/// What an orchestrator is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// Decide on a job.
    Route,
    /// A job completed.
    Complete,
    /// A job failed.
    Failed,
}

impl Call {
    fn as_str(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Complete => "complete",
            Self::Failed => "failed",
        }
    }
}

/// Why an orchestrator did not answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Silence {
    /// It cannot be loaded: it does not have the methods of an orchestrator.
    #[error("{0}")]
    NotOne(String),
    /// It failed, or did not answer in time.
    #[error("{0}")]
    Failed(String),
    /// It could not be asked.
    #[error("could not ask the orchestrator")]
    Error(#[from] Error),
}

impl Service {
    /// Calls an orchestrator and returns its answers, JSON.
    pub(super) async fn consult(
        &self,
        agent: &AgentVersion,
        calls: &[(Call, Arc<Job>)],
        timeout: Micros,
    ) -> Result<Bytes, Silence> {
        let state = self.shared.current().await?;
        let registry = if calls.is_empty() { Vec::new() } else { self.registry(&state, &agent.namespace).await? };
        let mut told = Vec::with_capacity(calls.len());
        for (call, job) in calls {
            told.push(json!({"call": call.as_str(), "job": self.told_job(Arc::clone(job)).await?}));
        }
        // One call that hangs leaves half of the time to the others.
        let seconds = timeout.0 as f64 / 2e6;
        let input = json!({"calls": told, "registry": registry, "timeout": seconds}).to_string();
        let input = self.payload(input.into()).await?;

        let id = self.shared.jobs.draw_id();
        let pin = AgentPin { version: agent.version, digest: agent.digest };
        let mut waiter = self.shared.records.waiters().wait(id);
        let command = ConsultOrchestrator { id, agent: agent.name.clone(), pin, input, timeout };
        let caller = on_behalf::cluster_in(agent.namespace.clone());
        match self.propose(requests::of(&caller, Command::ConsultOrchestrator(command))).await? {
            Outcome::Submitted { .. } => {}
            _ => return Err(Error::OutcomeUnknown.into()),
        }
        let mut over = self.shared.env.clock.sleep(timeout.as_duration().saturating_mul(2).saturating_add(GRACE));
        let ended = tokio::select! {
            biased;
            ended = waiter.ended() => ended,
            () = &mut over => None,
        };
        let ended = match ended {
            Some(job) => job,
            None => self.shared.job_in(&system(), &self.shared.current().await?, id).await?,
        };
        self.answers(&ended).await
    }

    async fn answers(&self, job: &Job) -> Result<Bytes, Silence> {
        match (job.status, &job.output, &job.failure) {
            (JobStatus::Completed, Some(output), _) => Ok(self.bytes(output).await?),
            (_, _, Some(failure)) if matches!(failure.kind, FailureKind::NoAgent | FailureKind::Startup) => {
                Err(Silence::NotOne(failure.error.to_string()))
            }
            (_, _, Some(failure)) => Err(Silence::Failed(failure.error.to_string())),
            (status, ..) => Err(Silence::Failed(format!("the call is {}", status.as_str()))),
        }
    }

    /// A job as orchestrators see it.
    pub(super) async fn told_job(&self, job: Arc<Job>) -> Result<Value, Error> {
        let shown = self.shared.records.show(job, View::Plain, None).await?;
        let mut text = Vec::new();
        shown.write(&mut text, View::Plain);
        serde_json::from_slice(&text).map_err(|error| Error::internal("read a job", &error))
    }

    /// The contracts of a namespace's agents in service.
    async fn registry(&self, state: &State, namespace: &Namespace) -> Result<Vec<Value>, Error> {
        let mut contracts = Vec::new();
        for agent in state.agents(namespace).filter(|agent| !agent.retired) {
            contracts.push(self.shared.registry.contract(agent).await?.value.clone());
        }
        Ok(contracts)
    }
}

/// The caller of the cluster's own jobs.
fn system() -> Caller {
    on_behalf::cluster_in(Namespace::system())
}
