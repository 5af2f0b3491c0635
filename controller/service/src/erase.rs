//! Erasing what was sent to and made by ended jobs.

use atlas_api::Jobs;
use atlas_types::{Command, ErasePayloads, JobId};

use crate::{Caller, Error, Service};

impl Service {
    /// Erases the payloads of one ended job. Every controller erases them from its history when it applies the entry.
    pub async fn erase_job(&self, caller: &Caller, id: JobId) -> Result<(), Error> {
        caller.may(Jobs::EraseJob.id())?;
        let state = self.shared.read().await?;
        let found = match state.job(id) {
            Some(job) => job.namespace == caller.namespace,
            None => self.shared.archived(&state, id).await?.is_some_and(|job| job.namespace == caller.namespace),
        };
        if !found {
            return Err(Error::UnknownJob);
        }
        self.propose(caller.request(Command::ErasePayloads(ErasePayloads { job: Some(id) }))).await.map(drop)
    }

    /// Erases all jobs of the caller's namespace, and its ended runs. [`Error::WrongStatus`] while one has not ended.
    pub async fn erase_namespace(&self, caller: &Caller) -> Result<(), Error> {
        caller.may(Jobs::EraseJobs.id())?;
        self.propose(caller.request(Command::ErasePayloads(ErasePayloads { job: None }))).await.map(drop)
    }
}
