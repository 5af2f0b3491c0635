//! Submitting: what continues a conversation is a turn of it, and everything else a job by itself.

use std::time::Duration;

use atlas_desk::on_behalf;
use atlas_jobs::IntendedJob;
use atlas_model::CHAT_AGENT;
use atlas_records::{Shown, View, Waiter};
use atlas_types::JobId;

use crate::probes::{self, Standing};
use crate::{Caller, Consistency, Error, Service, Submission};

impl Service {
    /// Submits a job. Answers when it is committed. The answer is an earlier job if the idempotency key was used
    /// before.
    pub async fn submit(&self, caller: &Caller, submission: Submission) -> Result<JobId, Error> {
        self.ensure_chat(caller, &submission).await?;
        let mut read = None;
        match self.shared.conversations.turn_of(caller, &submission, &mut read).await? {
            Some(turn) => {
                drop(read);
                Box::pin(self.shared.conversations.submit_turn(caller, turn, submission)).await
            }
            None => {
                self.shared
                    .jobs
                    .submit_by(caller, &submission, IntendedJob { id: self.shared.jobs.draw_id(), stays: false }, read)
                    .await
            }
        }
    }

    /// Submits a job, waits for its end for at most `timeout`, and returns the job.
    pub async fn submit_and_wait(
        &self,
        caller: &Caller,
        submission: Submission,
        timeout: Duration,
    ) -> Result<Shown, Error> {
        let submitted = self.submit_to_wait(caller, submission).await?;
        self.wait_for(caller, submitted, View::Plain, timeout).await
    }

    /// Submits a job whose caller will wait for it. Answers when it is committed, like [`Self::submit`].
    pub async fn submit_to_wait(&self, caller: &Caller, submission: Submission) -> Result<SubmittedJob, Error> {
        self.ensure_chat(caller, &submission).await?;
        let mut read = None;
        if let Some(turn) = self.shared.conversations.turn_of(caller, &submission, &mut read).await? {
            drop(read);
            let job = Box::pin(self.shared.conversations.submit_turn(caller, turn, submission)).await?;
            return Ok(job.into());
        }
        // The id is drawn here, so that the waiter is registered before the job can end.
        let id = self.shared.jobs.draw_id();
        let waiter = self.shared.records.waiters().wait(id);
        let submitted = self.shared.jobs.submit_by(caller, &submission, IntendedJob { id, stays: false }, read).await?;
        Ok(SubmittedJob { id: submitted, waiter: (submitted == id).then_some(waiter) })
    }

    /// Registers the agent that answers with a model, for the first job in a namespace that names it.
    async fn ensure_chat(&self, caller: &Caller, submission: &Submission) -> Result<(), Error> {
        if submission.agent.as_str() != CHAT_AGENT {
            return Ok(());
        }
        let (own, state) = (probes::chat()?, self.shared.current().await?);
        if own.standing(&state, &caller.namespace) == Standing::Missing {
            let cluster = on_behalf::cluster_in(caller.namespace.clone());
            Box::pin(self.register_made(&cluster, own.package.clone())).await?;
        }
        Ok(())
    }

    /// Waits for a submitted job and its retries, like [`Self::wait_family`].
    pub async fn wait_for_family(
        &self,
        caller: &Caller,
        job: SubmittedJob,
        view: View,
        timeout: Duration,
    ) -> Result<Shown, Error> {
        let clock = &self.shared.env.clock;
        let until = clock.monotonic() + timeout;
        let shown = self.wait_for(caller, job, view, timeout).await?;
        let Some(next) = shown.job().successor else { return Ok(shown) };
        match self.wait_family(caller, next, view, until.saturating_sub(clock.monotonic())).await {
            // The retry ended so long ago that it was already deleted.
            Err(Error::UnknownJob) => Ok(shown),
            waited => waited,
        }
    }

    /// Waits for a submitted job, like [`Self::wait`].
    pub(crate) async fn wait_for(
        &self,
        caller: &Caller,
        SubmittedJob { id, waiter }: SubmittedJob,
        view: View,
        timeout: Duration,
    ) -> Result<Shown, Error> {
        let Some(mut waiter) = waiter else { return self.wait(caller, id, view, timeout).await };
        let clock = &self.shared.env.clock;
        let (until, mut over) = (clock.monotonic() + timeout, clock.sleep(timeout));
        tokio::select! {
            biased;
            ended = waiter.ended() => match ended {
                Some(job) if job.status.is_terminal() => self.shared.records.show(job, view, None).await,
                _ => {
                    drop(waiter);
                    self.wait(caller, id, view, until.saturating_sub(clock.monotonic())).await
                }
            },
            () = &mut over => self.job(caller, id, View::Full, Consistency::Linearizable).await,
        }
    }
}

/// A job of a caller that will wait for it.
pub struct SubmittedJob {
    /// Its id.
    pub id: JobId,
    /// Registered before the job could end, so that nobody has to look whether it has. None for a job that may have ended.
    waiter: Option<Waiter>,
}

impl SubmittedJob {
    /// Whether an earlier request with the same idempotency key made it.
    pub(crate) fn is_earlier(&self) -> bool {
        self.waiter.is_none()
    }
}

impl From<JobId> for SubmittedJob {
    fn from(id: JobId) -> Self {
        Self { id, waiter: None }
    }
}
