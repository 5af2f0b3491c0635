//! Why a job of an llm agent fails. The text begins with the words of the provider, if they are the reason; the code goes into the metadata.

use atlas_model::CallErrorKind;
use atlas_turn::Failure as TurnFailure;
use atlas_types::{Failure, FailureKind};
use serde_json::Value;

use super::health::Seen;
use crate::journal::JournalError;
use crate::texts::bounded;

/// A fault.
#[derive(Debug, thiserror::Error)]
pub(in crate::provider) enum Fault {
    /// The turn failed: a model call, the budget, images.
    #[error(transparent)]
    Turn(TurnFailure),
    /// The journal could not be read or written.
    #[error(transparent)]
    Journal(JournalError),
    /// There is no model for the agent.
    #[error("{0}")]
    NoModel(String),
    /// None of the models of the namespace can be called, for example because a key is missing.
    #[error("{text}")]
    Unreachable { text: String, seen: Seen },
    /// The job began with a loop that this worker does not have.
    #[error("the job began with level {recorded} of the agent loop, and this worker has level {ours}")]
    Level {
        /// The recorded level.
        recorded: u32,
        ours: u32,
    },
    /// The images or messages of the input are malformed.
    #[error("Input validation: {0}")]
    Input(String),
    /// A tool of the agent was not found.
    #[error("{0}")]
    Tools(String),
    /// The run of a graph failed.
    #[error("{0}")]
    Graph(String),
    /// The definition of the agent cannot be used.
    #[error("the definition of the agent cannot be used: {0}")]
    Definition(String),
    /// A fault of the worker.
    #[error("{0}")]
    Internal(String),
}

impl From<JournalError> for Fault {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Budget(failure) => Self::Turn(failure),
            error => Self::Journal(error),
        }
    }
}

impl Fault {
    pub(in crate::provider) fn internal(text: impl Into<String>) -> Self {
        Self::Internal(text.into())
    }

    /// The code of the error. The texts of journals have theirs already.
    pub(in crate::provider) fn code(&self) -> Option<&'static str> {
        match self {
            Self::Turn(TurnFailure::Call(error)) if error.kind == CallErrorKind::Login => Some("E3207"),
            Self::Turn(TurnFailure::Call(error)) if error.kind == CallErrorKind::Filtered => Some("E3209"),
            Self::Turn(TurnFailure::Refused { .. }) => Some("E3209"),
            Self::Turn(TurnFailure::Cut(_)) => Some("E3210"),
            Self::Turn(TurnFailure::Empty { .. }) => Some("E3211"),
            Self::Turn(TurnFailure::Call(_)) => Some("E3201"),
            Self::NoModel(_) | Self::Unreachable { .. } => Some("E3202"),
            Self::Turn(TurnFailure::Budget { .. } | TurnFailure::Unpriced { .. }) => Some("E3203"),
            Self::Turn(TurnFailure::Vision { .. }) => Some("E3204"),
            Self::Level { .. } => Some("E3205"),
            Self::Input(_) => Some("E1102"),
            Self::Tools(_) => Some("E3206"),
            Self::Graph(_) => Some("E3301"),
            Self::Definition(_) => Some("E3302"),
            Self::Turn(TurnFailure::Disorder { .. }) | Self::Internal(_) => Some("E9001"),
            Self::Journal(_) => None,
        }
    }

    /// The kind of a failed call.
    pub(in crate::provider) fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Turn(TurnFailure::Call(error)) => Some(error.kind.name()),
            _ => None,
        }
    }

    /// What it says about the models of the namespace.
    pub(in crate::provider) fn seen(&self) -> Option<Value> {
        match self {
            Self::Unreachable { seen, .. } => seen.value(),
            _ => None,
        }
    }

    pub(in crate::provider) fn failure(&self) -> Failure {
        let kind = match self {
            Self::Turn(TurnFailure::Disorder { .. }) | Self::Internal(_) | Self::Level { .. } => FailureKind::Internal,
            Self::Turn(_) => FailureKind::Agent,
            Self::NoModel(_) | Self::Unreachable { .. } => FailureKind::Startup,
            Self::Tools(_) => FailureKind::Dependency,
            Self::Graph(_) => FailureKind::Agent,
            Self::Definition(_) => FailureKind::NoAgent,
            Self::Input(_) => FailureKind::InputInvalid,
            Self::Journal(
                JournalError::Differs(_)
                | JournalError::Refused { .. }
                | JournalError::Unattended(_)
                | JournalError::Program(_)
                | JournalError::Doubt(_)
                | JournalError::TooMuch(_),
            ) => FailureKind::Agent,
            Self::Journal(_) => FailureKind::Internal,
        };
        Failure { kind, error: bounded(self.to_string()).into() }
    }
}
