//! Why a model call failed.

use std::time::Duration;

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    pub kind: CallErrorKind,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// The provider's words, bounded, without the key.
    pub message: String,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
}

impl CallError {
    /// A failure without an answer of the provider.
    pub fn new(kind: CallErrorKind, message: impl Into<String>) -> Self {
        Self { kind, status: None, message: message.into(), retry_after: None }
    }
}

/// The kinds of failures. They decide whether another try can help, and which error code a job gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallErrorKind {
    /// The provider refuses the key (401, 403).
    Credentials,
    /// The login of the model has ended, or there is none.
    Login,
    /// The provider does not know the model (404).
    UnknownModel,
    /// The request is larger than the context of the model.
    TooLong,
    /// The provider refuses the request for another reason (400, 422).
    Request,
    /// Too many requests or tokens (429).
    RateLimited,
    /// The account has no money left.
    Quota,
    /// The provider's filter refused the request or the answer.
    Filtered,
    /// The provider has a fault or is overloaded (5xx, 529).
    Provider,
    /// No connection, or the connection ended too early.
    Connection,
    /// No answer within the time limit.
    Timeout,
    /// The answer does not follow the protocol.
    Answer,
}

impl CallErrorKind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Credentials,
        Self::Login,
        Self::UnknownModel,
        Self::TooLong,
        Self::Request,
        Self::RateLimited,
        Self::Quota,
        Self::Filtered,
        Self::Provider,
        Self::Connection,
        Self::Timeout,
        Self::Answer,
    ];

    /// Its name in error codes, events and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::Login => "login",
            Self::UnknownModel => "unknown_model",
            Self::TooLong => "too_long",
            Self::Request => "request",
            Self::RateLimited => "rate_limited",
            Self::Quota => "quota",
            Self::Filtered => "filtered",
            Self::Provider => "provider",
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Answer => "answer",
        }
    }

    /// Whether the same request can succeed later.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::RateLimited | Self::Provider | Self::Connection | Self::Timeout)
    }
}
