//! The orchestrator that a chain names decides on the jobs of its steps (compatibility §12.2). A namespace that has selected one asks that
//! instead, about all its jobs.
//!
//! It is asked before the job is submitted, so the job is submitted as decided: nothing waits, and no decision can be outdated.

use std::sync::Arc;

use atlas_state::{State, submitted};
use atlas_types::{ClusterTime, Decision, Failure, FailureKind, Job, Origin, SubmitJob, Timestamp, Verdict};

use super::answer::Will;
use super::candidate::Candidate;
use super::router::PATIENCE;
use crate::{Error, Service};

impl Service {
    /// The job of a step as the orchestrator `name` wants it. One that is not there, or does not answer, decides nothing.
    pub(crate) async fn routed_step(
        &self,
        state: &State,
        origin: &Origin,
        name: &str,
        submit: SubmitJob,
    ) -> Result<SubmitJob, Error> {
        if name.is_empty() || state.routing(&origin.namespace).is_some() {
            return Ok(submit);
        }
        let Some(candidate) = Candidate::of(state, &origin.namespace, name) else {
            tracing::warn!(namespace = %origin.namespace, orchestrator = name, "a chain names an orchestrator that is not there");
            return Ok(submit);
        };
        let job = self.undecided(origin, &submit);
        let wish = match self.wishes(&candidate, &[Arc::new(job)], PATIENCE).await.pop() {
            Some(Ok(wish)) => wish,
            answer => {
                let why = answer.and_then(Result::err).unwrap_or_default();
                tracing::warn!(namespace = %origin.namespace, orchestrator = name, why, "the orchestrator of a chain did not decide");
                return Ok(submit);
            }
        };
        let priority = wish.priority.unwrap_or(submit.priority);
        let submit = SubmitJob { priority, ..submit };
        Ok(match wish.will() {
            Will::Execute => submit,
            Will::Reject(reason) => rejected(submit, reason),
            Will::Redirect(agent) => {
                let input = self.bytes(&submit.input).await?;
                let caller = (origin.namespace.clone(), origin.principal.clone());
                match self.redirected(caller, input, priority, agent).await? {
                    Decision::Redirect(agent, verdict) => SubmitJob { agent, verdict, ..submit },
                    Decision::Reject(reason) => rejected(submit, reason.to_string()),
                    Decision::Execute => submit,
                }
            }
        })
    }

    /// The job as its orchestrator sees it.
    fn undecided(&self, origin: &Origin, submit: &SubmitJob) -> Job {
        let now = Timestamp(self.shared.env.clock.wall().0);
        let pin = match &submit.verdict {
            Verdict::Accepted(pin) | Verdict::Asked { pin, .. } => Some(pin.clone()),
            Verdict::Refused { pin, .. } => pin.clone(),
        };
        Job { pin, ..submitted(submit, origin, now, ClusterTime::default()) }
    }
}

/// The job fails at once. Without a version, the contract's retries do not run what was rejected.
fn rejected(submit: SubmitJob, reason: String) -> SubmitJob {
    let failure = Failure { kind: FailureKind::Rejected, error: reason.into() };
    SubmitJob { verdict: Verdict::Refused { pin: None, failure }, ..submit }
}
