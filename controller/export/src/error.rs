//! Why an export does not continue.

use std::time::Duration;

use atlas_history::HistoryError;

/// Why the export stopped. It is tried again after a while.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The database cannot be reached, or refuses the connection.
    #[error("could not connect to the database")]
    Connect(#[source] deadpool_postgres::PoolError),
    /// A statement failed.
    #[error("could not {doing}")]
    Statement {
        /// What was being done.
        doing: &'static str,
        /// The error of the database.
        source: tokio_postgres::Error,
    },
    /// The database did not answer.
    #[error("the database did not answer within {} s", .0.as_secs())]
    Late(Duration),
    /// The history cannot be read.
    #[error("could not read the history")]
    History(#[source] HistoryError),
    /// A newer program has changed the tables.
    #[error("the tables have version {found}, this program knows version {known}: upgrade the controllers")]
    TooNew {
        /// The version of the tables.
        found: i32,
        /// The version of this program.
        known: i32,
    },
    /// The database belongs to another cluster.
    #[error("the database holds the history of the cluster {found}, which has no job in common with this one")]
    OtherCluster {
        /// That cluster.
        found: String,
    },
    /// The program is about to stop.
    #[error("the controller stops")]
    Stopped,
}

impl ExportError {
    /// Makes the error of a statement.
    pub(crate) fn doing(doing: &'static str) -> impl Fn(tokio_postgres::Error) -> Self {
        move |source| Self::Statement { doing, source }
    }
}
