//! Who spawns jobs.

use crate::{FencingToken, JobId, RunId};

/// The attempt that spawns a job: only while it holds its lease may it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spawner {
    /// The parent.
    pub job: JobId,
    /// Its lease.
    pub token: FencingToken,
}

impl Spawner {
    /// The id of the child that it asks for under a number: the same whenever it asks again.
    pub fn child(self, number: u64) -> JobId {
        // Far from the numbers by which retries get theirs.
        self.job.derive(!self.token.0).derive(number)
    }
}

/// Who spawns a job. Only what carries the parent may: its lease, or the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnedBy {
    /// An attempt of the parent.
    Attempt(Spawner),
    /// The run that carries the parent.
    Run { job: JobId, run: RunId },
}

impl SpawnedBy {
    /// The parent.
    pub fn parent(self) -> JobId {
        match self {
            Self::Attempt(spawner) => spawner.job,
            Self::Run { job, .. } => job,
        }
    }

    /// The id of the child that it asks for under a number: the same whenever it asks again.
    pub fn child(self, number: u64) -> JobId {
        match self {
            Self::Attempt(spawner) => spawner.child(number),
            Self::Run { job, run } => job.derive(!run.0).derive(number),
        }
    }
}
