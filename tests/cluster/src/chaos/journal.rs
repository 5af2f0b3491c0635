//! The journal of clients: every call with its time and its outcome.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a client asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    /// A job under an idempotency key.
    Submit { key: String, agent: &'static str },
    /// A job's object; `stale` asks for no more than what that controller has.
    Read { job: String, stale: bool },
    /// The job when it has ended, or after a second.
    Wait { job: String },
    /// Its end.
    Cancel { job: String },
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome<T> {
    /// It was done, and this is the answer.
    Done(T),
    /// It was certainly not done, and never will be.
    Refused(Refusal),
    Unknown(String),
}

/// Why a call was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The HTTP status; 0 if there was nobody to ask.
    pub(crate) status: u16,
    /// The code of the error catalogue.
    pub(crate) code: String,
}

/// An answer as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The id of the job that a key has.
    Job(String),
    /// A job as it was.
    Seen(Seen),
    /// Whether the cancel was taken.
    Cancelled(bool),
}

/// A job as a reader saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) status: Status,
    pub(crate) attempt: u64,
    /// Stands for the whole object once the job has ended.
    pub(crate) digest: Option<u64>,
}

/// A job's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    Pending,
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "pending" => Self::Pending,
            "running" => Self::Running,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "cancelled" => Self::Cancelled,
            _ => return None,
        })
    }

    pub(crate) fn is_terminal(self) -> bool {
        self > Self::Running
    }
}

impl Seen {
    /// How far the job was: a job never goes back, since a lost lease gives it the next attempt.
    pub(crate) fn rank(&self) -> u64 {
        match self.status {
            Status::Pending => 2 * self.attempt,
            Status::Running => (2 * self.attempt).saturating_sub(1),
            Status::Completed | Status::Failed | Status::Cancelled => u64::MAX,
        }
    }
}

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) client: usize,
    /// Which controller was asked.
    pub(crate) controller: usize,
    pub(crate) begun: Duration,
    pub(crate) ended: Duration,
    pub(crate) call: Call,
    pub(crate) outcome: Outcome<Answer>,
}

/// All calls of a run, in the order in which they ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<Entry>>>);

impl Journal {
    pub(crate) fn write(&self, entry: Entry) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
