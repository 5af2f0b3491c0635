//! Erasing what was sent to and made by ended jobs.

use atlas_api::Jobs as JobOperation;
use atlas_desk::{Caller, Error, requests};
use atlas_types::{Command, ErasePayloads, JobId};

use crate::Jobs;

impl Jobs {
    /// Erases the payloads of one ended job. Every controller erases them from its history when it applies the entry.
    pub async fn erase_job(&self, caller: &Caller, id: JobId) -> Result<(), Error> {
        caller.may(JobOperation::EraseJob.id())?;
        let state = self.desk.read().await?;
        let found = match state.job(id) {
            Some(job) => job.namespace == caller.namespace,
            None => self.desk.archived(&state, id).await?.is_some_and(|job| job.namespace == caller.namespace),
        };
        if !found {
            return Err(Error::UnknownJob);
        }
        self.desk.propose(requests::of(caller, Command::ErasePayloads(ErasePayloads { job: Some(id) }))).await.map(drop)
    }

    /// Erases all jobs of the caller's namespace, and its ended runs. [`Error::WrongStatus`] while one has not ended.
    pub async fn erase_namespace(&self, caller: &Caller) -> Result<(), Error> {
        caller.may(JobOperation::EraseJobs.id())?;
        self.desk.propose(requests::of(caller, Command::ErasePayloads(ErasePayloads { job: None }))).await.map(drop)
    }
}
