//! Why a log cannot be opened or used.

use std::io;

/// Why a log cannot be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file could not be read, written or named.
    #[error("could not {what} the log's \"{file}\"")]
    Io {
        /// The operation.
        what: &'static str,
        file: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The disk is full. The group was not written and stays staged until there is space.
    #[error("no disk space for the log's \"{file}\"")]
    NoSpace {
        /// The segment that could not be created.
        file: String,
    },
    /// Durable data is damaged. The member must not serve, because its log differs from what it acknowledged.
    #[error("the log is damaged: \"{file}\" at byte {offset}: {what}")]
    Damaged {
        file: String,
        /// The offset of the damage.
        offset: u64,
        /// The kind of damage.
        what: &'static str,
    },
    /// The log ends before its durable mark: acknowledged data is damaged or missing.
    #[error(
        "the log is damaged: \"{file}\" at byte {offset}: group {found} cannot be read, and all groups before {durable} were durable; to continue without the lost data: atlasctl operator raft recover --drop-damaged-tail"
    )]
    Short {
        file: String,
        /// The offset.
        offset: u64,
        /// The first group that cannot be read.
        found: u64,
        /// Every group with a smaller number was durable.
        durable: u64,
    },
    /// The log belongs to another cluster.
    #[error("\"{file}\" belongs to cluster {found:032x}, not {expected:032x}")]
    OtherCluster {
        file: String,
        /// The cluster of the log.
        found: u128,
        /// The expected cluster.
        expected: u128,
    },
    /// The log was written by a newer program.
    #[error("\"{file}\" has format {found}, this program reads up to {known}")]
    NewerFormat {
        file: String,
        /// Its format.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// Another process has the log open.
    #[error("another process uses the log in \"{dir}\"")]
    Locked {
        /// The directory.
        dir: String,
    },
    /// An earlier write or sync failed. The content of the disk is unknown until the log is read again at a restart.
    #[error("the log failed earlier and accepts no more writes: {reason}")]
    Poisoned {
        /// The first failure.
        reason: String,
    },
    /// An entry does not follow the last entry of the log.
    #[error("entry {index} does not follow the log, which needs {next}")]
    OutOfOrder {
        /// The entry's index.
        index: u64,
        /// The index that the next entry must have.
        next: u64,
    },
    /// An entry exceeds the largest possible group.
    #[error("an entry of {bytes} bytes is too large for the log")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
}

impl From<LogError> for io::Error {
    fn from(error: LogError) -> Self {
        if let LogError::NoSpace { .. } = error {
            return Self::new(io::ErrorKind::StorageFull, error);
        }
        Self::other(error)
    }
}
