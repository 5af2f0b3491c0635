//! The status of a job, and the reason beside it.

use crate::ClusterTime;

/// The status that people and clients see (compatibility §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobStatus {
    /// Waits; the reason says for what.
    Pending,
    /// A lease was granted, or a run carries it.
    Running,
    /// Ended with a valid output.
    Completed,
    /// Ended otherwise.
    Failed,
    /// Ended by a cancel.
    Cancelled,
}

impl JobStatus {
    /// All five, in the order of the tables.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Running, Self::Completed, Self::Failed, Self::Cancelled];

    /// The word that clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Completed, failed and cancelled are final.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl std::str::FromStr for JobStatus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|status| status.as_str() == text);
        found
            .ok_or_else(|| format!("\"{text}\" is not a status; one of pending, running, completed, failed, cancelled"))
    }
}

/// Why a job that has not ended is where it is; what the scheduler alone can say (no room, no node) is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Waits for its turn.
    Queued,
    /// A retry that waits until its time.
    Backoff {
        /// When it may be granted.
        until: ClusterTime,
    },
    /// Submitted for later: it waits until its time.
    Delayed {
        /// When it may be granted.
        until: ClusterTime,
    },
    /// It waits for the decision of an orchestrator.
    Routing {
        /// When the fall-back decides; the end of time if it waits for the orchestrator.
        until: ClusterTime,
    },
    /// A policy asks for approvals, and it does not have them all.
    Approval,
    /// Its lease was lost; it waits for the next attempt.
    Lost,
    /// Its lease was lost, and its effects do not allow an automatic second attempt.
    InDoubt,
    /// It waits without a lease; the job says for what.
    Parked,
    /// Runs.
    Running,
    /// Runs, and a cancel was accepted: it ends as cancelled, whatever its worker reports.
    Cancelling,
}
