//! Jobs in doubt: resolved by a person who knows what the lost attempt did (B.7).

use atlas_types::{AgentPin, Command, Job, JobId, JobStatus, Outcome, Resolution, ResolveJob};
use bytes::Bytes;
use serde_json::Value;

use crate::{Caller, Consistency, Error, Service, json};

/// The decision on a job in doubt.
#[derive(Debug, Clone)]
pub enum Decision {
    RunAgain,
    /// It did its work: this came out, JSON.
    Completed(Bytes),
    /// It failed, for this reason.
    Failed(String),
}

/// Most bytes of a reason.
const REASON_BYTES_MAX: usize = 4096;

impl Service {
    /// Resolves a job in doubt, and tells its status after that.
    pub async fn resolve_job(&self, caller: &Caller, id: JobId, decision: Decision) -> Result<JobStatus, Error> {
        let state = self.state(Consistency::Linearizable).await?;
        let job = self.job_in(caller, &state, id).await?;
        let resolution = match decision {
            Decision::RunAgain => Resolution::RunAgain,
            Decision::Completed(output) => {
                self.check_output(&job, &output).await?;
                Resolution::Completed(self.payload(output).await?)
            }
            Decision::Failed(reason) if reason.len() > REASON_BYTES_MAX => {
                return Err(Error::TooLarge { what: "the reason", limit: REASON_BYTES_MAX as u64 });
            }
            Decision::Failed(reason) => Resolution::Failed(reason.into()),
        };
        let request = caller.request(Command::ResolveJob(ResolveJob { job: id, resolution }));
        match self.propose(request).await? {
            Outcome::Ended { status, .. } => Ok(status),
            // A leader of another version may answer in a way that this one does not know.
            _ => Err(Error::OutcomeUnknown),
        }
    }

    /// Whether an output is what the worker would have been allowed to report.
    async fn check_output(&self, job: &Job, output: &Bytes) -> Result<(), Error> {
        json::check(output).map_err(|error| Error::Malformed(error.to_string()))?;
        let Some(AgentPin { version, .. }) = job.pin else { return Ok(()) };
        // A version that was registered again has another contract: what the job was pinned to cannot be asked any more.
        let state = self.shared.handle.applied();
        let agent = state.agent(&job.namespace, &job.agent, version).cloned();
        let Some(agent) = agent.filter(|agent| job.pin.as_ref().is_some_and(|pin| pin.digest == agent.digest)) else {
            return Ok(());
        };
        let known = self.known(&agent).await?;
        let output: Value = serde_json::from_slice(output).map_err(|_| Error::Malformed("Invalid JSON".to_owned()))?;
        let violations = known.explain_output(&output);
        if violations.is_empty() {
            return Ok(());
        }
        Err(Error::OutputRefused { agent: job.agent.clone(), version, violations })
    }
}
