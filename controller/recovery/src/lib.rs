//! Backups of a cluster, and members that start from a backup or from the remaining data of a cluster.
//!
//! Owns the archive's format ([`archive`]) and the rule that a start from an older state is another generation
//! ([`generation`]): another cluster id, and fencing tokens that were never issued. [`restore`] creates a data directory from an
//! archive, [`recover`] turns a member of a lost majority into a cluster of its own. Not here: collecting the contents of an archive
//! (the controller), and the dialogue with an operator (`atlasctl`).

pub mod archive;
pub mod generation;
pub mod recover;
pub mod restore;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use atlas_raft::offline::OfflineError;

pub use archive::ArchiveError;

/// Why a member cannot be created from a backup or from remaining data.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The archive cannot be used.
    #[error("could not read the backup")]
    Archive(#[source] ArchiveError),
    /// The files of a member cannot be read or created.
    #[error("could not use the files of the member")]
    Member(#[source] OfflineError),
    /// This program cannot continue from the state.
    #[error("could not continue from the state")]
    State(#[source] atlas_state::ImageError),
    /// The history cannot be used.
    #[error("could not use the history")]
    History(#[source] atlas_history::HistoryError),
    /// The directory already exists and is not empty.
    #[error("\"{}\" exists already and is not empty", path.display())]
    Taken {
        /// The directory.
        path: PathBuf,
    },
    /// A controller is running on the directory.
    #[error("a controller runs on \"{}\"", path.display())]
    Running {
        /// The directory.
        path: PathBuf,
    },
    /// The member's identity cannot be read.
    #[error("could not read the member identity in \"{}\"", path.display())]
    Identity {
        /// The data directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The directory does not identify its member.
    #[error("\"{}\" contains a log but no member.json that identifies the member", path.display())]
    Nameless {
        /// The data directory.
        path: PathBuf,
    },
    /// A file could not be written.
    #[error("could not write \"{}\"", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The confirmation is not the cluster's id.
    #[error("\"{typed}\" is not the id of the cluster")]
    NotConfirmed {
        /// The text that was entered.
        typed: String,
    },
}

fn write_error(path: &Path) -> impl FnOnce(io::Error) -> RecoveryError + use<> {
    let path = path.to_owned();
    move |source| RecoveryError::Write { path, source }
}

/// Makes the names in a directory durable.
fn sync_dir(dir: &Path) -> Result<(), RecoveryError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(write_error(dir))
}

/// The folder that a path is in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes a directory that an earlier attempt left, if there is one.
fn remove_left_over(path: &Path) -> Result<(), RecoveryError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(write_error(path)),
    }
}
