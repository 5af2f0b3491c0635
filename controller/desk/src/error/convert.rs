//! Errors of the log and the state as errors of the service.

use atlas_raft::{ChangeError, ProposeError, ReadError};
use atlas_types::{IdError, Rejection};

use super::Error;

impl From<ProposeError> for Error {
    fn from(error: ProposeError) -> Self {
        match error {
            ProposeError::NotLeader { .. } | ProposeError::Stopped { .. } => Self::NoLeader,
            ProposeError::Unknown => Self::OutcomeUnknown,
            ProposeError::Overloaded => Self::Overloaded,
            ProposeError::NoSpace => Self::NoSpace,
        }
    }
}

impl From<ChangeError> for Error {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::NotLeader { .. } | ChangeError::Stopped => Self::NoLeader,
            ChangeError::UnknownMember { member } => Self::UnknownMember(member.to_string()),
            ChangeError::Late => Self::OutcomeUnknown,
            other => Self::Membership(other),
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Overloaded => Self::Overloaded,
            ReadError::NotLeader { .. } | ReadError::NoSession | ReadError::Stopped { .. } => Self::NoLeader,
        }
    }
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::QueueFull { .. } => Self::QueueFull { rejection },
            Rejection::LimitReached { .. } => Self::LimitReached(rejection),
            Rejection::RequestConflict | Rejection::MessageConflict { .. } => Self::RequestConflict,
            Rejection::UnknownAgent | Rejection::StaleAgent => Self::AgentGone,
            Rejection::UnknownJob { .. } => Self::UnknownJob,
            Rejection::UnknownRun { .. } => Self::UnknownRun,
            Rejection::WrongStatus { status } => Self::WrongStatus { status },
            Rejection::NotInDoubt { status } => Self::NotInDoubt { status },
            Rejection::JournalLength { sent, recorded } => Self::NoSuchStep { steps: sent, recorded },
            Rejection::LevelTooLow { .. } => Self::LevelTooLow(rejection),
            Rejection::SpawnForbidden
            | Rejection::SpawnTooDeep { .. }
            | Rejection::HardwareHeld
            | Rejection::Fenced => Self::SpawnRefused(rejection),
            Rejection::UnknownObject => Self::UnknownObject(rejection.to_string()),
            Rejection::ObjectChanged { revision } => Self::ObjectChanged { revision },
            Rejection::UnknownObjectKind => Self::UnknownObjectKind(rejection.to_string()),
            Rejection::ObjectRefused { .. } => {
                Self::ObjectRefused { what: rejection.to_string(), violations: Vec::new() }
            }
            Rejection::ObjectInUse { .. } => Self::ObjectInUse(rejection),
            Rejection::NamespaceLimit { .. } => Self::NamespaceLimit(rejection),
            Rejection::TokenRefused => Self::TokenRefused(rejection),
            Rejection::UnknownNode { node } => Self::UnknownNode(node.to_string()),
            Rejection::NodeBusy { leases } => Self::NodeBusy { leases },
            Rejection::VersionTaken => Self::VersionTaken(rejection.to_string()),
            Rejection::AgentInService | Rejection::AgentInUse { .. } => Self::AgentInUse(rejection),
            Rejection::LabelOfWorker { .. } => Self::LabelOfWorker(rejection),
            Rejection::PayloadTooLarge { .. } => Self::TooLarge { what: "an inline payload", limit: 64 * 1024 },
            Rejection::UnknownQuestion => Self::UnknownQuestion,
            Rejection::QuestionClosed => Self::QuestionClosed("closed"),
            Rejection::NotAnswerer => Self::NotAnswerer,
            Rejection::Unapproved => Self::Unapproved,
            other => Self::internal("carry out a command", &other),
        }
    }
}

impl From<IdError> for Error {
    fn from(error: IdError) -> Self {
        Self::Malformed(error.to_string())
    }
}
