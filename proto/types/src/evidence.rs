//! What a job leaves for its receipt: what is known when it happens, and nowhere later.

use crate::{Attempt, Digest, EventSeq, NodeId, ObjectName, Principal, QuestionId, Timestamp};

/// Most grants that a job keeps: the newest.
pub const GRANTS_MAX: usize = 16;

/// Most policies that a job keeps.
pub const POLICIES_MAX: usize = 32;

/// Evidence of one job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// The policies under which it was submitted, by name.
    pub policies: Vec<PolicyRef>,
    /// Its newest leases, the oldest first.
    pub grants: Vec<Granted>,
    /// How its questions ended, in the order in which they were asked; set when it ends.
    pub answers: Vec<Answered>,
}

impl Evidence {
    /// Notes a lease.
    pub fn grant(&mut self, granted: Granted) {
        if self.grants.len() >= GRANTS_MAX {
            self.grants.remove(0);
        }
        self.grants.push(granted);
    }
}

/// A policy as it was when it allowed a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRef {
    pub name: ObjectName,
    /// The revision of its object.
    pub revision: EventSeq,
    /// The SHA-256 of its spec.
    pub digest: Digest,
}

/// A lease that a job had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    pub attempt: Attempt,
    pub node: NodeId,
    pub at: Timestamp,
}

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub question: QuestionId,
    /// The step of the journal that asked.
    pub step: u64,
    /// Who answered; none if nobody did.
    pub by: Option<Principal>,
    pub how: AnsweredHow,
    pub at: Timestamp,
}

/// The ways in which a question ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnsweredHow {
    /// Someone answered.
    Answered,
    /// Its default was the answer.
    Defaulted,
    /// Nobody answered in time.
    Expired,
    /// Its job ended first.
    Cancelled,
}

impl AnsweredHow {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Answered, Self::Defaulted, Self::Expired, Self::Cancelled];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Defaulted => "defaulted",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}
