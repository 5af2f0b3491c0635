//! Why a log cannot be opened or used.

use std::io;

/// Why a log cannot be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file could not be read, written or named.
    #[error("could not {what} the log's \"{file}\"")]
    Io {
        /// What was being done.
        what: &'static str,
        file: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The disk is full. Nothing of the group was written: it waits in its place until there is room.
    #[error("no disk space for the log's \"{file}\"")]
    NoSpace {
        /// The segment that could not be made.
        file: String,
    },
    /// Durable data does not read back. The member must not serve: its log is not what it acknowledged.
    #[error("the log is damaged: \"{file}\" at byte {offset}: {what}")]
    Damaged {
        file: String,
        /// Where in it.
        offset: u64,
        /// What was found.
        what: &'static str,
    },
    /// The log ends before its durable mark: what was acknowledged does not read back, or is not there.
    #[error(
        "the log is damaged: \"{file}\" at byte {offset}: group {found} cannot be read, and all groups before {durable} were durable; to continue without the lost data: atlasctl operator raft recover --drop-damaged-tail"
    )]
    Short {
        file: String,
        /// Where in it.
        offset: u64,
        /// The first group that does not read back.
        found: u64,
        /// Every group with a smaller number was durable.
        durable: u64,
    },
    /// The log belongs to another cluster.
    #[error("\"{file}\" belongs to cluster {found:032x}, not {expected:032x}")]
    OtherCluster {
        file: String,
        /// Whose log it is.
        found: u128,
        /// Whose it should be.
        expected: u128,
    },
    /// The log was written by a newer program.
    #[error("\"{file}\" has format {found}, this program reads up to {known}")]
    NewerFormat {
        file: String,
        /// Its format.
        found: u32,
        /// The newest known one.
        known: u32,
    },
    /// Another process has the log open.
    #[error("another process uses the log in \"{dir}\"")]
    Locked {
        /// The directory.
        dir: String,
    },
    /// A write or sync failed before: what is on disk is not known any more, only a restart can tell.
    #[error("the log failed earlier and accepts no more writes: {reason}")]
    Poisoned {
        /// The first failure.
        reason: String,
    },
    /// An entry does not follow the last one.
    #[error("entry {index} does not follow the log, which needs {next}")]
    OutOfOrder {
        /// The entry's index.
        index: u64,
        /// The index that the next entry must have.
        next: u64,
    },
    /// An entry is larger than any group may be.
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
