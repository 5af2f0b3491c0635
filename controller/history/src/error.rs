//! Errors of the history.

use std::path::PathBuf;

use atlas_types::EventSeq;

/// Why history could not be opened, written or read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file or its folder cannot be used.
    #[error("could not open history \"{path}\"")]
    Open {
        /// The file.
        path: PathBuf,
        /// The SQLite error.
        source: rusqlite::Error,
    },
    /// The file is damaged.
    #[error(
        "history \"{path}\" is damaged: {detail}; move the file and its -wal and -shm files away and restart: history is rebuilt from the available log"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the check found.
        detail: String,
    },
    /// A newer program wrote the file.
    #[error(
        "history \"{path}\" has schema {found}, this program knows up to {known}: start the newer program, or move the file away"
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The file belongs to another cluster.
    #[error(
        "history \"{path}\" belongs to cluster {found} and the log to cluster {cluster}: a new log with an old history loses jobs; move the history away, or restore the log that belongs to it"
    )]
    OtherCluster {
        /// The file.
        path: PathBuf,
        /// The cluster of the history.
        found: String,
        /// The cluster of the log.
        cluster: String,
    },
    /// A statement failed.
    #[error("could not {doing} history")]
    Sql {
        /// The operation.
        doing: &'static str,
        /// The SQLite error.
        source: rusqlite::Error,
    },
    /// The write-ahead file could not be synced.
    #[error("could not sync history to disk")]
    Sync(#[source] std::io::Error),
    /// A stored record cannot be read.
    #[error("a record of history is malformed")]
    Record(#[source] atlas_format::FormatError),
    /// A stored record has missing or invalid data.
    #[error("a record of history is malformed: {0}")]
    Field(&'static str),
    /// A part of another member's history does not continue this one.
    #[error("a part of history is refused: {0}")]
    Part(&'static str),
    /// The requested events were dropped.
    #[error("events up to {earliest} have been dropped")]
    Gone {
        /// The first event that is still stored.
        earliest: EventSeq,
    },
    /// The writer or the reader has stopped.
    #[error("history has stopped")]
    Stopped,
}

impl HistoryError {
    pub(crate) fn sql(doing: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| Self::Sql { doing, source }
    }
}
