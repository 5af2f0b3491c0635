//! The journal of a running attempt, for agents inside this process: recorded steps are replayed, and the outcome of a
//! new step is returned only after the step is recorded.

mod book;
mod purse;
mod steps;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_format::{decode_steps, encode_steps};
use atlas_slots::{Recording, Replay, StepAnswer, StepDiffers, WrongSteps};
use atlas_types::{
    Assignment, Attempt, Failure, FailureKind, FencingToken, Fold, JobId, Micros, Payload, PayloadBody, Reservation,
    Step, StepKey, StepKind, StepUsage, StepsResult, Timestamp,
};
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::book::{Book, RecordedStep, Working};
pub(crate) use self::purse::Purse;
pub(crate) use self::steps::{Intent, Steps, at_most_once, once};
pub(crate) use self::waits::{Asker, Begun, UNATTENDED, hashed, made};
pub use self::waits::{ChildCall, ChildEnd, Received};
use crate::attempt::SlotEvent;
use crate::payloads::{TransferError, Transfers};

/// Larger outcomes are stored as artifacts.
const OUTCOME_INLINE_MAX: usize = 16 << 10;

/// The pause after the first answer `busy`. It doubles up to the second value.
const BUSY_PAUSE: Duration = Duration::from_millis(200);
const BUSY_PAUSE_MAX: Duration = Duration::from_secs(5);
/// How often the first step of a journal is refused for lack of room before the attempt fails, after about 26 seconds.
const NO_ROOM_MAX: u32 = 10;

/// The result of a step that was not recorded before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The outcome as JSON.
    pub outcome: Vec<u8>,
    /// The cost of the step.
    pub usage: StepUsage,
}

/// Why an attempt cannot continue with its journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The agent requests another step than the recorded one.
    #[error("E3013: {0}")]
    Differs(StepDiffers),
    /// The controller refuses the step, and would refuse it again.
    #[error("E3013: step {step} could not be recorded: {why}")]
    Refused {
        step: u64,
        /// The difference, as text.
        why: String,
    },
    /// The cluster keeps as many journals as it may.
    #[error("E3020: the cluster has no room for the journal of another job")]
    NoRoom,
    /// An artifact does not contain the steps that the journal expects.
    #[error("E3010: the recorded steps in {0:?} cannot be read")]
    Damaged(Payload),
    /// An artifact could not be fetched or stored.
    #[error("could not transfer recorded steps: {0}")]
    Transfer(String),
    /// Not all controllers support journals.
    #[error("E4007: not all controllers can keep journals yet")]
    NotKept,
    /// The controller refuses to park the job, and would refuse it again.
    #[error("E3013: the job could not be parked: {why}")]
    NotParked {
        /// The difference, as text.
        why: String,
    },
    /// The outcome of a step has another form than the agent expects.
    #[error("E3013: the outcome of step {step} cannot be read: {error}")]
    Unreadable {
        /// Its number.
        step: u64,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// The job asks people a question, and its rule does not let it wait for an answer. The text begins with a code.
    #[error("{0}")]
    Unattended(String),
    /// A durable program does something else than its record.
    #[error("E3013: {0}")]
    Program(String),
    /// Nobody knows what came of a step that an earlier attempt began, and its job asks nobody.
    #[error("E3017: {0}")]
    Doubt(String),
    /// A program asks for more than one job may.
    #[error("E3018: {0}")]
    TooMuch(String),
    /// The budget does not allow a model call.
    #[error("E3203: {0}")]
    Budget(atlas_turn::Failure),
    /// The attempt has lost its lease, or is being stopped.
    #[error("the attempt was stopped")]
    Stopped,
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        let kind = match error {
            JournalError::Differs(_)
            | JournalError::Refused { .. }
            | JournalError::NotParked { .. }
            | JournalError::Unattended(_)
            | JournalError::Program(_)
            | JournalError::Doubt(_)
            | JournalError::TooMuch(_)
            | JournalError::Budget(_)
            | JournalError::Unreadable { .. } => FailureKind::Agent,
            _ => FailureKind::Internal,
        };
        Self { kind, error: error.to_string().into() }
    }
}

impl From<TransferError> for JournalError {
    fn from(error: TransferError) -> Self {
        Self::Transfer(error.to_string())
    }
}

/// An addition to the journal of an attempt, or a reservation for a call that will be recorded there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Steps { from: u64, steps: Vec<Arc<Step>> },
    Fold(Fold),
    Reserve(Reservation),
}

/// The journal of one attempt.
pub struct Journal {
    /// None if the cluster keeps no journals.
    replay: Option<Replay>,
    job: JobId,
    token: FencingToken,
    /// True if there was an attempt before this one.
    again: bool,
    /// When the attempt began, by the monotonic clock, and how long it may take.
    began: Duration,
    limit: Micros,
    /// Time since then in which the job waited for somebody, also under its lease.
    left_out: Duration,
    /// False if its job must not park: the next attempt would not have the credential of the caller.
    parks: bool,
    /// How many messages the replayed and recorded steps have read.
    messages_read: u64,
    /// The latest time for which the job was parked and that has come.
    slept_until: Timestamp,
    told: mpsc::Sender<SlotEvent>,
    transfers: Transfers,
    env: Env,
}

impl Journal {
    /// The journal of an attempt that begins now.
    pub(crate) fn new(
        (env, transfers): (Env, Transfers),
        told: mpsc::Sender<SlotEvent>,
        assignment: &Assignment,
    ) -> Self {
        let assigned = assignment.journal.as_deref();
        Self {
            replay: assigned.cloned().map(Replay::new),
            job: assignment.job,
            token: assignment.token,
            again: assignment.attempt > Attempt(1),
            began: env.clock.monotonic(),
            limit: assignment.execution_timeout,
            left_out: Duration::ZERO,
            parks: assignment.attachments.bearer().is_none(),
            messages_read: 0,
            slept_until: assigned.map_or(Timestamp::NOT_YET, |assigned| assigned.slept_until),
            told,
            transfers,
            env,
        }
    }

    /// An empty journal of a test, which hears what it says.
    #[cfg(test)]
    pub(crate) fn heard_by(told: mpsc::Sender<SlotEvent>, env: Env) -> Self {
        let (_, client) = tokio::sync::watch::channel(None);
        Self {
            replay: Some(Replay::new(atlas_types::AssignedJournal::default())),
            job: JobId(1),
            token: FencingToken(1),
            again: false,
            began: Duration::ZERO,
            limit: Micros::from_secs(60),
            left_out: Duration::ZERO,
            parks: true,
            messages_read: 0,
            slept_until: Timestamp::NOT_YET,
            told,
            transfers: Transfers { env: env.clone(), client },
            env,
        }
    }

    /// Whether the job may be parked. One with the credential of its caller waits in its place.
    pub(crate) fn parks(&self) -> bool {
        self.parks
    }

    /// Counts a part of the attempt as time in which the job only waited, once it is parked.
    pub(crate) fn leave_out(&mut self, time: Duration) {
        self.left_out = self.left_out.saturating_add(time);
    }

    /// The latest time for which the job was parked and that has come.
    pub(crate) fn slept_until(&self) -> Timestamp {
        self.slept_until
    }

    /// The number of the next step.
    pub fn next(&self) -> u64 {
        self.replay.as_ref().map_or(0, Replay::next)
    }

    /// The outcome of the next step: the recorded one, or the result of `make`, after it is recorded.
    ///
    /// `key` is a hash of the request. It may depend only on recorded outcomes: if it differs from the recorded key,
    /// the job ends.
    pub async fn step<F, E>(&mut self, kind: StepKind, key: StepKey, make: impl FnOnce() -> F) -> Result<Arc<[u8]>, E>
    where
        F: Future<Output = Result<Made, E>>,
        E: From<JournalError>,
    {
        once(self, (kind, key), make).await
    }

    fn replay(&mut self) -> Result<&mut Replay, JournalError> {
        self.replay.as_mut().ok_or(JournalError::NotKept)
    }

    /// The outcome of the next step, if it is recorded.
    pub(crate) async fn recorded(&mut self, kind: StepKind, key: StepKey) -> Result<Option<Arc<[u8]>>, JournalError> {
        loop {
            match self.replay()?.ask(kind, key).map_err(JournalError::Differs)? {
                StepAnswer::Recorded(step) => return Ok(Some(self.transfers.load(&step.outcome).await?)),
                StepAnswer::New => return Ok(None),
                StepAnswer::Load(artifact) => self.load(artifact).await?,
            }
        }
    }

    /// Kind and key of the next step, if it is recorded.
    pub async fn peek(&mut self) -> Result<Option<(StepKind, StepKey)>, JournalError> {
        loop {
            match self.replay()?.peek() {
                Ok(found) => return Ok(found),
                Err(artifact) => self.load(artifact).await?,
            }
        }
    }

    async fn load(&mut self, artifact: Payload) -> Result<(), JournalError> {
        let bytes = self.transfers.load(&artifact).await?;
        let Ok(steps) = decode_steps(&bytes) else { return Err(JournalError::Damaged(artifact)) };
        self.replay()?.loaded(steps).map_err(|WrongSteps { .. }| JournalError::Damaged(artifact))
    }

    /// All recorded steps, in order. The journal continues after them.
    pub(crate) async fn drain(&mut self) -> Result<Vec<(StepKind, StepKey, Arc<[u8]>)>, JournalError> {
        let mut all = Vec::new();
        while let Some((kind, key)) = self.peek().await? {
            if let Some(outcome) = self.recorded(kind, key).await? {
                all.push((kind, key, outcome));
            }
        }
        Ok(all)
    }

    /// Records a step.
    pub(crate) async fn record(
        &mut self,
        kind: StepKind,
        key: StepKey,
        outcome: Vec<u8>,
        usage: StepUsage,
    ) -> Result<Arc<[u8]>, JournalError> {
        let bytes: Arc<[u8]> = outcome.into();
        let outcome = match bytes.len() > OUTCOME_INLINE_MAX {
            true => self.transfers.store_artifact(bytes.to_vec()).await?,
            false => Payload { key_id: 0, body: PayloadBody::Inline(Arc::clone(&bytes)) },
        };
        let step = Arc::new(Step { kind, key, outcome, usage });
        loop {
            match self.replay()?.record(&step) {
                Recording::Send { from } => {
                    self.send(Entry::Steps { from, steps: vec![Arc::clone(&step)] }).await?;
                    self.replay()?.applied(step);
                    return Ok(bytes);
                }
                Recording::Fold { upto, steps } => {
                    let artifact = self.transfers.store_artifact(encode_steps(&self.whole(steps).await?)).await?;
                    self.send(Entry::Fold(Fold { upto, artifact })).await?;
                    self.replay()?.folded();
                }
            }
        }
    }

    /// The steps of a fold with all outcomes by value, because after the fold the journal no longer refers to the
    /// artifacts of the folded steps.
    async fn whole(&self, steps: Vec<Arc<Step>>) -> Result<Vec<Arc<Step>>, JournalError> {
        let mut whole = Vec::with_capacity(steps.len());
        for step in steps {
            whole.push(match step.outcome.body {
                PayloadBody::Inline(_) => step,
                PayloadBody::Artifact { .. } => {
                    let body = PayloadBody::Inline(self.transfers.load(&step.outcome).await?);
                    let outcome = Payload { key_id: step.outcome.key_id, body };
                    Arc::new(Step { outcome, ..(*step).clone() })
                }
            });
        }
        Ok(whole)
    }

    async fn send(&self, entry: Entry) -> Result<(), JournalError> {
        match (Sender { token: self.token, told: &self.told, env: &self.env }).send(entry).await? {
            StepsResult::Refused { step, why } => Err(JournalError::Refused { step, why }),
            _ => Ok(()),
        }
    }
}

/// Sends entries of an attempt.
struct Sender<'a> {
    token: FencingToken,
    told: &'a mpsc::Sender<SlotEvent>,
    env: &'a Env,
}

impl Sender<'_> {
    /// Sends an entry until it is applied or refused. If the cluster has no space for it, it is sent again after a pause. A journal that cannot
    /// begin is given up after some time, because it may wait for jobs that do not end.
    async fn send(&self, entry: Entry) -> Result<StepsResult, JournalError> {
        let mut patience = Patience::default();
        loop {
            let (answer, answered) = oneshot::channel();
            let said = SlotEvent::Journal { token: self.token, entry: entry.clone(), answer };
            self.told.send(said).await.map_err(|_| JournalError::Stopped)?;
            // The pump drops the request of an attempt that has ended.
            match answered.await.map_err(|_| JournalError::Stopped)? {
                StepsResult::Fenced => return Err(JournalError::Stopped),
                StepsResult::Busy => self.env.clock.sleep(patience.pause()).await,
                StepsResult::NoRoom => {
                    self.env.clock.sleep(patience.pause_without_room().ok_or(JournalError::NoRoom)?).await;
                }
                answer => return Ok(answer),
            }
        }
    }
}

/// The pauses before an entry is sent again.
#[derive(Debug, Default)]
struct Patience {
    pauses: u32,
    without_room: u32,
}

impl Patience {
    fn pause(&mut self) -> Duration {
        let pause = BUSY_PAUSE.saturating_mul(1 << self.pauses.min(16));
        self.pauses += 1;
        pause.min(BUSY_PAUSE_MAX)
    }

    /// None once there was no room often enough.
    fn pause_without_room(&mut self) -> Option<Duration> {
        self.without_room += 1;
        (self.without_room < NO_ROOM_MAX).then(|| self.pause())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_without_room_is_given_up_after_half_a_minute() {
        let mut patience = Patience::default();
        let pauses: Vec<Duration> = std::iter::from_fn(|| patience.pause_without_room()).collect();
        assert_eq!((pauses.len(), pauses[0], pauses[8]), (9, BUSY_PAUSE, BUSY_PAUSE_MAX));
        let total: Duration = pauses.into_iter().sum();
        assert!((Duration::from_secs(25)..Duration::from_secs(30)).contains(&total), "{total:?}");
    }

    #[test]
    fn a_busy_controller_is_asked_for_as_long_as_it_takes() {
        let mut patience = Patience::default();
        let longest = (0..1_000).map(|_| patience.pause()).max();
        assert_eq!(longest, Some(BUSY_PAUSE_MAX));
    }
}
