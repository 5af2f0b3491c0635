//! Submitting: what continues a conversation is a turn of it, and everything else a job by itself.

use std::time::Duration;

use atlas_jobs::IntendedJob;
use atlas_records::{Shown, View};
use atlas_types::JobId;

use crate::{Caller, Consistency, Error, Service, Submission};

impl Service {
    /// Submits a job. Answers when it is committed. The answer is an earlier job if the idempotency key was used
    /// before.
    pub async fn submit(&self, caller: &Caller, submission: Submission) -> Result<JobId, Error> {
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
        let mut read = None;
        if let Some(turn) = self.shared.conversations.turn_of(caller, &submission, &mut read).await? {
            drop(read);
            let job = Box::pin(self.shared.conversations.submit_turn(caller, turn, submission)).await?;
            return self.wait(caller, job, View::Plain, timeout).await;
        }
        // The id is drawn here, so that the waiter is registered before the job can end.
        let id = self.shared.jobs.draw_id();
        let mut waiter = self.shared.records.waiters().wait(id);
        let submitted = self.shared.jobs.submit_by(caller, &submission, IntendedJob { id, stays: false }, read).await?;
        if submitted != id {
            return self.wait(caller, submitted, View::Plain, timeout).await;
        }
        let mut over = self.shared.env.clock.sleep(timeout);
        tokio::select! {
            biased;
            ended = waiter.ended() => match ended {
                Some(job) if job.status.is_terminal() => self.shared.records.show(job, View::Plain, None).await,
                _ => {
                    drop(waiter);
                    self.wait(caller, id, View::Plain, timeout).await
                }
            },
            () = &mut over => self.job(caller, id, View::Full, Consistency::Linearizable).await,
        }
    }
}
