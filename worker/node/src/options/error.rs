//! Why a configuration cannot be used.

use std::path::PathBuf;

use atlas_pages::{BadExemption, BadLoader};
use atlas_types::IdError;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The file cannot be read.
    #[error("could not read \"{}\"", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not TOML or has an unknown key.
    #[error("the configuration \"{}\" cannot be used: line {line}: {problem}", .path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The line of what is wrong.
        line: usize,
        /// The parser's words.
        problem: String,
    },
    /// A value has the wrong form.
    #[error("\"{value}\" is not {what}")]
    Value {
        /// The value as given.
        value: String,
        /// The expected form.
        what: &'static str,
    },
    /// A server whose pages may be read is not named so.
    #[error("--collect-allow: {0}")]
    Exemption(#[from] BadExemption),
    /// A loader cannot be used.
    #[error("--loader: {0}")]
    Loader(#[from] BadLoader),
    /// The node's name cannot be used.
    #[error("\"{name}\" is not a valid node name")]
    Node {
        /// The name.
        name: String,
        /// The reason.
        source: IdError,
    },
    /// Hardware is declared but its checks are off.
    #[error("hardware is declared but its checks are off; use only one of the two")]
    DeclaredUnchecked,
    /// A group's token, or the certificates, without the other.
    #[error("--group-token-file needs --authority-file and the other way round, and no --token-file")]
    Group,
    /// No controller is named.
    #[error("no controller given; use --controller HOST:PORT")]
    NoController,
    /// The address of a controller cannot be used.
    #[error(
        "\"{text}\" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT"
    )]
    Address {
        /// The address as given.
        text: String,
    },
    /// One address says http, another one https.
    #[error("some addresses of controllers say http and others https; either all controllers use TLS, or none")]
    Schemes,
}

impl ConfigurationError {
    /// The code of its page in the reference; none for what a look at the options shows.
    pub fn code(&self) -> Option<&'static str> {
        matches!(self, Self::Address { .. } | Self::Schemes).then_some("E0130")
    }
}
