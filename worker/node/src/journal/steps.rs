//! One piece of journaled work: what is recorded is not done again, and what was done is used once it is recorded.
//!
//! The same functions serve all that a worker records ([ADR 77](../../../../docs/adr/0077-one-driver-for-journaled-work.md)). They do not know how a
//! journal finds its steps: an agent that is a model in a loop asks for each in its turn ([`Journal`]), and a graph or a program asks in any
//! order, by what it asks for ([`Book`](super::Book)).

use std::sync::Arc;
use std::time::Duration;

use atlas_types::{StepKey, StepKind, StepUsage, Timestamp, Wait};
use serde::{Deserialize, Serialize};

use super::waits::made;
use super::{Journal, JournalError, Made};

/// A journal, as work sees it that is recorded there.
pub(crate) trait Steps: Send {
    /// What a journal keeps of the time before a try, which may be in vain.
    type Trial: Send;

    /// The recorded outcome of a step.
    fn recorded(
        &mut self,
        kind: StepKind,
        key: StepKey,
    ) -> impl Future<Output = Result<Option<Arc<[u8]>>, JournalError>> + Send;

    /// Lets the job leave a node that drains, before something is done. Does not return then.
    fn may_leave(&mut self) -> impl Future<Output = Result<(), JournalError>> + Send;

    /// Records what was done. The outcome is used after that.
    fn record(
        &mut self,
        kind: StepKind,
        key: StepKey,
        outcome: Vec<u8>,
        usage: StepUsage,
    ) -> impl Future<Output = Result<Arc<[u8]>, JournalError>> + Send;

    /// The number by which those who follow the job keep the work at a step apart from other work.
    fn number(&self, key: StepKey) -> u32;

    /// A try begins that nobody may answer.
    fn trial(&mut self) -> Self::Trial;

    /// Nobody answered a try: in its time, the job has only waited.
    fn in_vain(&mut self, trial: Self::Trial) -> impl Future<Output = ()> + Send;

    /// Waits until a time, which is so far away. If that lasts, the job is parked; it may have waited before, for as long as `waited`.
    fn wait_until(
        &mut self,
        at: Timestamp,
        left: Duration,
        waited: Duration,
    ) -> impl Future<Output = Result<(), JournalError>> + Send;

    /// The latest time for which the job was parked and that has come.
    fn slept_until(&self) -> Timestamp;

    /// The outcome of a step has another form than what asks for it expects.
    fn unreadable(&self, error: serde_json::Error) -> JournalError {
        JournalError::Unreadable { step: 0, error }
    }
}

/// The outcome of a step: the recorded one, or that of `make`, once it is recorded. A worker that is lost meanwhile leaves no record, so the
/// next attempt makes it again.
pub(crate) async fn once<J, F, E>(
    journal: &mut J,
    (kind, key): (StepKind, StepKey),
    make: impl FnOnce() -> F,
) -> Result<Arc<[u8]>, E>
where
    J: Steps,
    F: Future<Output = Result<Made, E>>,
    E: From<JournalError>,
{
    if let Some(outcome) = journal.recorded(kind, key).await? {
        return Ok(outcome);
    }
    journal.may_leave().await?;
    let Made { outcome, usage } = make().await?;
    Ok(journal.record(kind, key, outcome, usage).await?)
}

/// The outcome of an intent: what is about to be done that must not be done again.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Intent {
    /// The number of the attempt that does it.
    pub(crate) attempt: u32,
    pub(crate) tools: Vec<String>,
}

/// Like [`once`], for what must not be done again. An intent is recorded before. If it is that of an earlier attempt, which recorded no outcome,
/// nobody knows what came of it: `make` learns that it is in doubt.
pub(crate) async fn at_most_once<J, F, E>(
    journal: &mut J,
    (intent_key, intent): (StepKey, &Intent),
    (kind, key): (StepKind, StepKey),
    make: impl FnOnce(bool) -> F,
) -> Result<Arc<[u8]>, E>
where
    J: Steps,
    F: Future<Output = Result<Made, E>>,
    E: From<JournalError>,
{
    let begun = once(journal, (StepKind::Intent, intent_key), || async { made(intent) }).await?;
    let Intent { attempt, .. } = serde_json::from_slice(&begun).map_err(|error| journal.unreadable(error))?;
    if let Some(outcome) = journal.recorded(kind, key).await? {
        return Ok(outcome);
    }
    // The job does not leave between the two: the next attempt would not know that nothing was done.
    let Made { outcome, usage } = make(attempt != intent.attempt).await?;
    Ok(journal.record(kind, key, outcome, usage).await?)
}

/// Each step is asked for in its turn. One that differs from the recorded one ends the job.
impl Steps for Journal {
    /// When the try began, by the monotonic clock.
    type Trial = Duration;

    async fn recorded(&mut self, kind: StepKind, key: StepKey) -> Result<Option<Arc<[u8]>>, JournalError> {
        Self::recorded(self, kind, key).await
    }

    async fn may_leave(&mut self) -> Result<(), JournalError> {
        Self::may_leave(self).await
    }

    async fn record(
        &mut self,
        kind: StepKind,
        key: StepKey,
        outcome: Vec<u8>,
        usage: StepUsage,
    ) -> Result<Arc<[u8]>, JournalError> {
        Self::record(self, kind, key, outcome, usage).await
    }

    fn number(&self, _: StepKey) -> u32 {
        u32::try_from(self.next()).unwrap_or(u32::MAX)
    }

    fn trial(&mut self) -> Duration {
        self.env.clock.monotonic()
    }

    async fn in_vain(&mut self, trial: Duration) {
        self.leave_out(self.env.clock.monotonic().saturating_sub(trial));
    }

    async fn wait_until(&mut self, at: Timestamp, left: Duration, waited: Duration) -> Result<(), JournalError> {
        let over = self.env.clock.sleep(left);
        self.wait_on((vec![Wait::Time { at }], waited), over).await.map(drop)
    }

    fn slept_until(&self) -> Timestamp {
        Self::slept_until(self)
    }

    fn unreadable(&self, error: serde_json::Error) -> JournalError {
        JournalError::Unreadable { step: self.next(), error }
    }
}

#[cfg(test)]
mod tests;
