//! Jobs in doubt: resolved by an operator who knows what the lost attempt did (B.7).

use atlas_api::Jobs as JobOperation;
use atlas_desk::{Caller, Consistency, Error, json, requests};
use atlas_types::{AgentPin, Command, Job, JobId, JobStatus, Outcome, Resolution, ResolveJob};
use bytes::Bytes;
use serde_json::Value;

use crate::Jobs;

/// The decision on a job in doubt.
#[derive(Debug, Clone)]
pub enum Decision {
    RunAgain,
    /// The lost attempt completed, with this JSON output.
    Completed(Bytes),
    /// The lost attempt failed, for this reason.
    Failed(String),
}

/// The largest size of a reason.
const REASON_BYTES_MAX: usize = 4096;

impl Jobs {
    /// Resolves a job in doubt and returns its new status.
    pub async fn resolve_job(&self, caller: &Caller, id: JobId, decision: Decision) -> Result<JobStatus, Error> {
        caller.may(JobOperation::ResolveJob.id())?;
        let state = self.desk.state(Consistency::Linearizable).await?;
        let job = self.desk.job_in(caller, &state, id).await?;
        let resolution = match decision {
            Decision::RunAgain => Resolution::RunAgain,
            Decision::Completed(output) => {
                let output = json::mended("an output", output);
                self.check_output(&job, &output).await?;
                Resolution::Completed(self.desk.payload(output).await?)
            }
            Decision::Failed(reason) if reason.len() > REASON_BYTES_MAX => {
                return Err(Error::TooLarge { what: "the reason", limit: REASON_BYTES_MAX as u64 });
            }
            Decision::Failed(reason) => Resolution::Failed(reason.into()),
        };
        let request = requests::of(caller, Command::ResolveJob(ResolveJob { job: id, resolution }));
        match self.desk.propose(request).await? {
            Outcome::Ended { status, .. } => Ok(status),
            // A leader with another program version may return an outcome that this program does not know.
            _ => Err(Error::OutcomeUnknown),
        }
    }

    /// Checks an output as if the worker had reported it.
    async fn check_output(&self, job: &Job, output: &Bytes) -> Result<(), Error> {
        json::check(output).map_err(|error| Error::Malformed(error.to_string()))?;
        let Some(AgentPin { version, .. }) = job.pin else { return Ok(()) };
        // If the version was registered again, the contract to which the job was pinned is no longer available and the
        // output is not checked.
        let state = self.desk.handle.applied();
        let agent = state.agent(&job.namespace, &job.agent, version).cloned();
        let Some(agent) = agent.filter(|agent| job.pin.as_ref().is_some_and(|pin| pin.digest == agent.digest)) else {
            return Ok(());
        };
        let known = self.registry.contract(&agent).await?;
        let output: Value = serde_json::from_slice(output).map_err(|_| Error::Malformed("Invalid JSON".to_owned()))?;
        let violations = known.explain_output(&output);
        if violations.is_empty() {
            return Ok(());
        }
        Err(Error::OutputRefused { agent: job.agent.clone(), version, violations })
    }
}
