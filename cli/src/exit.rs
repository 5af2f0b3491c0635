//! Exit codes: one table, printed by `--help`.

use std::process::ExitCode;

/// Exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Done with warnings, or a failure without its own code.
    Short = 1,
    /// Wrong use of the command line.
    Usage = 2,
    /// The cluster cannot be reached.
    Unreachable = 3,
    /// Refused by a contract or by validation.
    Invalid = 4,
    /// Refused by policy, quota or budget.
    Denied = 5,
    /// Not found.
    NotFound = 6,
    /// The object exists with different contents, or has changed since it was read.
    Conflict = 7,
    /// A limit is reached; trying again later may work.
    Busy = 8,
    /// The wait timed out; the job continues.
    WaitTimedOut = 9,
    /// The job failed.
    JobFailed = 10,
    /// The job was cancelled.
    JobCancelled = 11,
    /// The job needs an answer.
    NeedsAnswer = 12,
    /// The job is in doubt.
    JobInDoubt = 13,
}

/// The table at the end of `--help`.
pub(crate) const TABLE: &str = "\
Exit codes:
  0  done                              7  conflict
  1  done, with warnings               8  busy: try again
  2  wrong use of the command line     9  the wait timed out; the job continues
  3  the cluster cannot be reached    10  the job failed
  4  refused by a contract            11  the job was cancelled
  5  refused by policy or budget      12  the job needs an answer
  6  not found                        13  the job is in doubt";

impl Exit {
    /// The code for a refusal with this HTTP status.
    pub(crate) fn of_http(status: u16) -> Self {
        match status {
            400 | 413 | 415 | 422 => Self::Invalid,
            401 | 403 => Self::Denied,
            404 | 410 => Self::NotFound,
            409 | 412 => Self::Conflict,
            429 | 507 => Self::Busy,
            502..=504 => Self::Unreachable,
            _ => Self::Short,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
