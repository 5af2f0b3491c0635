//! Parked jobs: what a job waits for that holds no lease meanwhile.

use crate::{ClusterTime, FencingToken, JobId, Message, Micros, QuestionId, StepKey, Timestamp};

/// Most things that a parked job may wait for.
pub const WAITS_MAX: u64 = 64;

/// Something that a parked job waits for. The first that comes wakes the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// A time.
    Time {
        /// When, by the wall clock.
        at: Timestamp,
    },
    /// The end of a child that the job spawned, or of the last retry of that child.
    Child {
        /// The child, or one of its retries; of a parked job always the first of the family.
        job: JobId,
    },
    /// A message that it has not read.
    Message,
    /// A message that answers a question.
    Answer {
        /// The key of the step that asks.
        question: StepKey,
    },
    /// The end of a question that the job asked.
    Question {
        /// The question.
        id: QuestionId,
    },
}

impl Wait {
    /// Whether a message ends the wait.
    pub fn is_for(&self, message: &Message) -> bool {
        match self {
            Self::Message => true,
            Self::Answer { question } => message.answers == Some(*question),
            Self::Time { .. } | Self::Child { .. } | Self::Question { .. } => false,
        }
    }
}

/// What a parked job waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// Any of these, at least one.
    pub waits: Vec<Wait>,
    /// When the earliest time of the waits has come; none if it waits for no time.
    pub due: Option<ClusterTime>,
    /// The lease that ended when the job parked.
    pub token: FencingToken,
}

impl Parked {
    /// The earliest time that it waits for.
    pub fn until(&self) -> Option<Timestamp> {
        let times = self.waits.iter().filter_map(|wait| match wait {
            Wait::Time { at } => Some(*at),
            Wait::Child { .. } | Wait::Message | Wait::Answer { .. } | Wait::Question { .. } => None,
        });
        times.min()
    }
}

/// A request of a running attempt: its job is to be parked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Park {
    /// How many steps the attempt knows.
    pub journal_length: u64,
    /// What the job waits for, at most [`WAITS_MAX`]. Empty if it waits for nothing and gives up its lease because its node drains.
    pub waits: Vec<Wait>,
    /// How long the attempt has run.
    pub used: Micros,
    /// How many messages the recorded steps have read.
    pub read: u64,
}

/// The answer to a request to park.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParkResult {
    /// The job is parked and the lease has ended.
    Parked,
    /// A wait is over: the attempt continues under its lease.
    Ready,
    /// The lease is outdated: nothing changed, the attempt must stop.
    Fenced,
    /// The cluster has no room for the request at the moment: the attempt may send it again later.
    Busy,
    /// The request contradicts the state, and would do so again.
    Refused {
        /// Why.
        why: String,
    },
}
