//! The journal of the clients: every call with its times and its outcome.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    /// Submits a job with an idempotency key.
    Submit { key: String, agent: &'static str },
    /// Reads a job; with `stale`, the controller answers from its own state without confirming it.
    Read { job: String, stale: bool },
    /// Waits for the end of a job, at most a second.
    Wait { job: String },
    /// Cancels a job.
    Cancel { job: String },
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome<T> {
    /// The call succeeded, with this answer.
    Done(T),
    /// The call certainly had no effect, and never will.
    Refused(Refusal),
    Unknown(String),
}

/// Why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The HTTP status; 0 if no connection was made.
    pub(crate) status: u16,
    /// The code of the error catalogue.
    pub(crate) code: String,
}

/// The compared parts of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The id of the key's job.
    Job(String),
    /// The state of a job.
    Seen(Seen),
    /// Whether the cancel was accepted.
    Cancelled(bool),
}

/// The state of a job in one read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) status: Status,
    pub(crate) attempt: u64,
    /// The hash of the whole object, if the job has ended.
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
    /// The progress of the job, which never decreases: after a lost lease, the job has the next attempt.
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
    /// The controller that received the call.
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
