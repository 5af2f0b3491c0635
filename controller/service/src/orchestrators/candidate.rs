//! The orchestrator of a name, and how it is asked.

use std::sync::Arc;

use atlas_objects::OrchestratorSpec;
use atlas_state::State;
use atlas_types::{AgentKind, AgentName, AgentVersion, Job, Micros, Namespace};
use serde_json::Value;

use super::consult::{Call, Silence};
use crate::wish::{self, Wish};
use crate::wish::{Facts, Rules};
use crate::{Error, Service};

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Candidate {
    /// The highest version of an agent of the type `orchestrator`.
    Agent(Arc<AgentVersion>),
    /// An object of the kind `orchestrator` with rules. Objects come before agents of the same name.
    Rules(Arc<OrchestratorSpec>),
    /// One with the address of a program.
    External(String),
}

impl Candidate {
    /// The orchestrator of a name; none if there is none.
    pub(super) fn of(state: &State, namespace: &Namespace, name: &str) -> Option<Self> {
        if let Some(object) = state.orchestrator_object(namespace, name) {
            let spec = OrchestratorSpec::read(&object.spec).ok()?;
            return Some(match spec.grpc {
                Some(external) => Self::External(external.address),
                None => Self::Rules(Arc::new(spec)),
            });
        }
        let agent = state.agent_latest(namespace, &AgentName::new(name).ok()?)?;
        (agent.kind == AgentKind::Orchestrator).then(|| Self::Agent(Arc::clone(agent)))
    }
}

/// Why an orchestrator did not answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// It cannot be loaded, failed, or took too long.
    #[error("{0}")]
    Silent(String),
    /// It could not be asked.
    #[error("could not ask the orchestrator: {0}")]
    Error(#[from] Error),
}

impl Service {
    /// What an orchestrator wants for each job, in order, or why it says nothing.
    pub(super) async fn wishes(
        &self,
        candidate: &Candidate,
        jobs: &[Arc<Job>],
        timeout: Micros,
    ) -> Vec<Result<Wish, String>> {
        let asked = self.answers_of(candidate, jobs, timeout).await;
        asked.unwrap_or_else(|why| vec![Err(why.to_string()); jobs.len()])
    }

    /// What an orchestrator wants for each job, in order. An error if it answered nothing.
    pub(super) async fn answers_of(
        &self,
        candidate: &Candidate,
        jobs: &[Arc<Job>],
        timeout: Micros,
    ) -> Result<Vec<Result<Wish, String>>, NoAnswer> {
        match candidate {
            Candidate::Agent(agent) => {
                let calls: Vec<_> = jobs.iter().map(|job| (Call::Route, Arc::clone(job))).collect();
                match self.consult(agent, &calls, timeout).await {
                    Ok(output) => Ok(wish::read(&output, jobs.len())),
                    Err(Silence::Error(error)) => Err(NoAnswer::Error(error)),
                    Err(Silence::NotOne(why) | Silence::Failed(why)) => Err(NoAnswer::Silent(why)),
                }
            }
            Candidate::External(address) => {
                let state = self.shared.handle.applied();
                Ok(self.asked_outside(&state, address, jobs, timeout).await?)
            }
            Candidate::Rules(spec) => Ok(self.ruled(spec, jobs).await?),
        }
    }

    /// What rules say about jobs. They are evaluated on a blocking thread: inputs can be large.
    async fn ruled(&self, spec: &Arc<OrchestratorSpec>, jobs: &[Arc<Job>]) -> Result<Vec<Result<Wish, String>>, Error> {
        let state = self.shared.handle.applied();
        let mut facts = Vec::with_capacity(jobs.len());
        for job in jobs {
            facts.push(self.facts(&state, job).await?);
        }
        let spec = OrchestratorSpec::clone(spec);
        let decide = move || match Rules::parse(spec) {
            Ok(rules) => facts.iter().map(|facts| rules.decide(facts)).collect(),
            Err(why) => vec![Err(why); facts.len()],
        };
        self.shared.env.spawn_blocking("decide-by-rules", decide).join().await.map_err(|_| Error::Internal)
    }

    async fn facts(&self, state: &State, job: &Arc<Job>) -> Result<Facts, Error> {
        let shown = self.told_job(Arc::clone(job)).await?;
        let agent = match job.pin.as_ref().and_then(|pin| state.agent(&job.namespace, &job.agent, pin.version)) {
            Some(agent) => self.shared.registry.contract(agent).await?.value.clone(),
            None => Value::Null,
        };
        Ok(Facts::of(job, shown, agent))
    }
}
