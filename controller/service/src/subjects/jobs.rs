//! Submitting jobs and deciding about them.

use std::time::Duration;

use atlas_jobs::{Decision, ForkRequest, NewMessage, Recipient, RetryRequest, Submission, Submitted};
use atlas_state::State;
use atlas_types::{Attachments, Job, JobId, JobStatus, MessageId, SecretText};
use atlas_vault::Withheld;

use crate::{BearerRefused, Bearers, Caller, Error, Service};

impl Service {
    /// Submits jobs in order and returns their results in the same order. If the queue is full, the remaining jobs wait
    /// for at most `wait`, and are refused after that.
    pub async fn submit_many(&self, caller: &Caller, submissions: &[Submission], wait: Duration) -> Vec<Submitted> {
        self.shared.jobs.submit_many(caller, submissions, wait).await
    }

    /// Cancels a pending job, or with `running` also a running one. False if there was nothing to cancel.
    pub async fn cancel(&self, caller: &Caller, id: JobId, running: bool) -> Result<bool, Error> {
        self.shared.jobs.cancel(caller, id, running).await
    }

    /// Runs an ended job again, as a new job. One that resumes has the recorded steps of the ended job.
    pub async fn retry(&self, caller: &Caller, id: JobId, retry: RetryRequest) -> Result<JobId, Error> {
        self.shared.jobs.retry(caller, id, retry).await
    }

    /// Begins a new job with the first steps of a job that is in the state, whether it has ended or not.
    pub async fn fork(&self, caller: &Caller, id: JobId, fork: &ForkRequest) -> Result<JobId, Error> {
        self.shared.jobs.fork(caller, id, fork).await
    }

    /// Resolves a job in doubt and returns its new status.
    pub async fn resolve_job(&self, caller: &Caller, id: JobId, decision: Decision) -> Result<JobStatus, Error> {
        self.shared.jobs.resolve_job(caller, id, decision).await
    }

    /// Erases the payloads of one ended job. Every controller erases them from its history when it applies the entry.
    pub async fn erase_job(&self, caller: &Caller, id: JobId) -> Result<(), Error> {
        self.shared.jobs.erase_job(caller, id).await
    }

    /// Erases all jobs of the caller's namespace, and its ended runs. [`Error::WrongStatus`] while one has not ended.
    pub async fn erase_namespace(&self, caller: &Caller) -> Result<(), Error> {
        self.shared.jobs.erase_namespace(caller).await
    }

    /// Sends a message to a job that has not ended, and tells its id and whether the job had it before.
    pub async fn send_message(
        &self,
        caller: &Caller,
        job: JobId,
        message: NewMessage,
    ) -> Result<(MessageId, bool), Error> {
        self.shared.jobs.send_message(caller, job, message).await
    }
}

/// What jobs carry.
impl Service {
    /// Credentials of callers.
    pub fn bearers(&self) -> &Bearers {
        self.shared.jobs.bearers()
    }

    /// Holds the credential of a job's caller for another controller, until the job ends.
    pub fn hold_bearer(&self, job: JobId, bearer: SecretText) -> Result<(), BearerRefused> {
        self.shared.jobs.hold_bearer(job, bearer)
    }

    /// Drops the credential of a job that was refused at another controller.
    pub fn forget_bearer(&self, job: JobId) {
        self.shared.jobs.forget_bearer(job);
    }

    /// What goes out with a lease of `job`.
    pub fn attachments(&self, state: &State, job: &Job, to: Recipient<'_>) -> Result<Attachments, Withheld> {
        self.shared.jobs.attachments(state, job, to)
    }
}
