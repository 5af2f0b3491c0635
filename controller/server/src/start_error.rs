//! Why a controller does not start.

use std::net::SocketAddr;
use std::path::PathBuf;

use atlas_history::HistoryError;
use atlas_service::KeyError;

/// Why a controller did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be used.
    #[error("could not use the data directory \"{path}\"")]
    DataDir {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Another controller uses the data directory.
    #[error("the data directory \"{path}\" is in use by {by}")]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The other process.
        by: String,
    },
    /// The log or the state cannot be opened.
    #[error("could not start the log")]
    Raft(#[source] atlas_raft::StartError),
    /// History cannot be opened.
    #[error("could not open history")]
    History(#[source] HistoryError),
    /// The key of secrets cannot be used.
    #[error("could not use the key of secrets")]
    SecretsKey(#[source] KeyError),
    /// Everybody on the network could do everything.
    #[error(
        "{address} can be reached by other machines, so requests must need tokens: set --auth tokens, or listen on 127.0.0.1; --auth open lets everybody in"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// The file with the root token cannot be used.
    #[error("could not use the root token in \"{path}\"")]
    RootToken {
        path: PathBuf,
        /// The underlying error.
        source: std::io::Error,
    },
    /// What goes over the network could be read, and workers and controllers are not checked.
    #[error(
        "{address} can be reached by other machines, so it needs TLS: set --tls-dir, with files of \"atlasctl operator init\"; --plain-ports true goes without, for a private network or a proxy with TLS"
    )]
    Plain {
        /// The address.
        address: SocketAddr,
    },
    /// TLS cannot be set up.
    #[error("could not set up TLS")]
    Tls(#[from] atlas_tls::TlsError),
    /// The folder of trigger files cannot be read.
    #[error("could not read the trigger files in \"{path}\"")]
    Triggers {
        path: PathBuf,
        /// The underlying error.
        source: std::io::Error,
    },
    /// A store of memory or knowledge cannot be used.
    #[error(transparent)]
    Stores(#[from] atlas_stores::StoresError),
    /// A port cannot be bound.
    #[error("could not listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// Other members could not reach this controller.
    #[error("a controller that listens for peers on all addresses needs an address for them: set advertise")]
    NoAddress,
    /// The cluster did not accept this controller.
    #[error("could not join the cluster")]
    Join(#[from] JoinError),
    /// A thread ended before its work was done.
    #[error("could not start: a thread ended early")]
    Thread,
}

impl StartError {
    /// True if files in the data directory are damaged.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Raft(error) => error.is_damage(),
            Self::History(error) => matches!(error, HistoryError::Damaged { .. }),
            _ => false,
        }
    }
}

/// Why a controller was not admitted.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Other members could not reach this controller.
    #[error(
        "a controller that joins needs a peer address: set peer.listen, and advertise if it listens on all addresses"
    )]
    NoAddress,
    /// The controller was joining before and is not a member yet.
    #[error(
        "this directory belongs to a controller that was joining a cluster: start it with --join and --token, or with an empty directory"
    )]
    Unfinished,
    /// The directory does not identify its member.
    #[error(
        "\"{}\" contains a log but no member.json that identifies the member: restore that file, or remove this member, empty the directory and let it join again",
        path.display()
    )]
    Nameless {
        /// The data directory.
        path: PathBuf,
    },
    /// The token is missing.
    #[error(
        "a controller that joins needs a token: create one on a member with \"atlasctl cluster join-token\", or give it the root token"
    )]
    NoToken,
    /// The cluster refused.
    #[error("the cluster refused this controller: {reason}")]
    Refused {
        /// The reason given by the cluster.
        reason: String,
    },
    /// No member answered.
    #[error("no member answered at {addresses}: {reason}")]
    Unreachable {
        /// The addresses that were tried.
        addresses: String,
        /// The last error.
        reason: String,
    },
    /// The answer cannot be decoded.
    #[error("the cluster's answer is malformed")]
    Malformed,
}
