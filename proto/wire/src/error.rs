//! Errors between programs: one table maps an [`ErrorKind`] to a gRPC code, an HTTP status and an exit code.
//!
//! [`Error`] contains only information that a peer or a person may see; details for our own log are never put into one. The kind, code and
//! hint travel in the details of the gRPC status, so that a controller that forwards an error loses nothing.

use atlas_types::ErrorKind;
use prost::Message as _;
use tonic::{Code, Status};

use crate::ConvertError;
use crate::proto::error::v1 as pb;

/// An error as a caller may see it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What the caller can do about it.
    pub kind: ErrorKind,
    /// Names the page of the error reference, such as `E1102`; empty if a person has nothing to fix.
    pub code: String,
    /// What happened, for people.
    pub message: String,
    /// What to try; empty if there is nothing to say.
    pub hint: String,
}

impl Error {
    /// An error with neither code nor hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, code: String::new(), message: message.into(), hint: String::new() }
    }
}

/// The gRPC code of a kind.
pub fn grpc_code(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::Invalid => Code::InvalidArgument,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::Conflict => Code::Aborted,
        ErrorKind::Busy | ErrorKind::NoSpace => Code::ResourceExhausted,
        ErrorKind::Denied => Code::PermissionDenied,
        ErrorKind::TooLarge => Code::OutOfRange,
        ErrorKind::Unavailable => Code::Unavailable,
        ErrorKind::Timeout => Code::DeadlineExceeded,
        ErrorKind::Gone => Code::FailedPrecondition,
        ErrorKind::Internal => Code::Internal,
    }
}

/// The exit code of a kind. The result of a job has codes of its own, from 10.
pub fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        // A fault of the system leaves the caller where an unreachable cluster does: try again, or look at its log.
        ErrorKind::Unavailable | ErrorKind::Internal => 3,
        ErrorKind::Invalid | ErrorKind::TooLarge => 4,
        ErrorKind::Denied => 5,
        ErrorKind::NotFound | ErrorKind::Gone => 6,
        ErrorKind::Conflict => 7,
        ErrorKind::Busy | ErrorKind::NoSpace => 8,
        ErrorKind::Timeout => 9,
    }
}

/// The kind of a gRPC code, for a status without our details.
fn kind_of_code(code: Code) -> ErrorKind {
    match code {
        Code::InvalidArgument => ErrorKind::Invalid,
        Code::NotFound => ErrorKind::NotFound,
        Code::Aborted | Code::AlreadyExists => ErrorKind::Conflict,
        Code::ResourceExhausted => ErrorKind::Busy,
        Code::PermissionDenied | Code::Unauthenticated => ErrorKind::Denied,
        Code::OutOfRange => ErrorKind::TooLarge,
        Code::Unavailable => ErrorKind::Unavailable,
        // tonic's own client-side timeout ends a call with `Cancelled`.
        Code::DeadlineExceeded | Code::Cancelled => ErrorKind::Timeout,
        Code::FailedPrecondition => ErrorKind::Gone,
        Code::Ok | Code::Unknown | Code::Unimplemented | Code::Internal | Code::DataLoss => ErrorKind::Internal,
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let kind = kind_out(error.kind);
        let detail = pb::ErrorDetail { kind: kind.into(), code: error.code, hint: error.hint };
        Self::with_details(grpc_code(error.kind), error.message, detail.encode_to_vec().into())
    }
}

impl From<&Status> for Error {
    /// Reads a status of ours, or of anyone: details that are not ours leave the code to say the kind.
    fn from(status: &Status) -> Self {
        let detail = pb::ErrorDetail::decode(status.details())
            .ok()
            .filter(|detail| !status.details().is_empty() && detail.kind != 0);
        let (kind, code, hint) = match detail {
            Some(detail) => (kind_in(detail.kind), detail.code, detail.hint),
            None => (None, String::new(), String::new()),
        };
        let kind = kind.unwrap_or_else(|| kind_of_code(status.code()));
        Self { kind, code, message: status.message().to_owned(), hint }
    }
}

impl From<ConvertError> for Error {
    /// A frame that is refused says why, causes included.
    fn from(error: ConvertError) -> Self {
        let message = match std::error::Error::source(&error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        Self::new(ErrorKind::Invalid, message)
    }
}

impl From<ConvertError> for Status {
    fn from(error: ConvertError) -> Self {
        Error::from(error).into()
    }
}

fn kind_out(kind: ErrorKind) -> pb::ErrorKind {
    match kind {
        ErrorKind::Invalid => pb::ErrorKind::Invalid,
        ErrorKind::NotFound => pb::ErrorKind::NotFound,
        ErrorKind::Conflict => pb::ErrorKind::Conflict,
        ErrorKind::Busy => pb::ErrorKind::Busy,
        ErrorKind::Denied => pb::ErrorKind::Denied,
        ErrorKind::TooLarge => pb::ErrorKind::TooLarge,
        ErrorKind::Unavailable => pb::ErrorKind::Unavailable,
        ErrorKind::Timeout => pb::ErrorKind::Timeout,
        ErrorKind::Gone => pb::ErrorKind::Gone,
        ErrorKind::Internal => pb::ErrorKind::Internal,
        ErrorKind::NoSpace => pb::ErrorKind::NoSpace,
    }
}

/// None for a kind that a later version added.
fn kind_in(found: i32) -> Option<ErrorKind> {
    match pb::ErrorKind::try_from(found).unwrap_or_default() {
        pb::ErrorKind::Unspecified => None,
        pb::ErrorKind::Invalid => Some(ErrorKind::Invalid),
        pb::ErrorKind::NotFound => Some(ErrorKind::NotFound),
        pb::ErrorKind::Conflict => Some(ErrorKind::Conflict),
        pb::ErrorKind::Busy => Some(ErrorKind::Busy),
        pb::ErrorKind::Denied => Some(ErrorKind::Denied),
        pb::ErrorKind::TooLarge => Some(ErrorKind::TooLarge),
        pb::ErrorKind::Unavailable => Some(ErrorKind::Unavailable),
        pb::ErrorKind::Timeout => Some(ErrorKind::Timeout),
        pb::ErrorKind::Gone => Some(ErrorKind::Gone),
        pb::ErrorKind::Internal => Some(ErrorKind::Internal),
        pb::ErrorKind::NoSpace => Some(ErrorKind::NoSpace),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const KINDS: [ErrorKind; 11] = [
        ErrorKind::Invalid,
        ErrorKind::NotFound,
        ErrorKind::Conflict,
        ErrorKind::Busy,
        ErrorKind::Denied,
        ErrorKind::TooLarge,
        ErrorKind::Unavailable,
        ErrorKind::Timeout,
        ErrorKind::Gone,
        ErrorKind::NoSpace,
        ErrorKind::Internal,
    ];

    #[test]
    fn one_table_maps_every_kind() {
        let row = |&kind: &ErrorKind| {
            format!("{kind:?}: {:?}, HTTP {}, exit {}\n", grpc_code(kind), kind.http_status(), exit_code(kind))
        };
        expect![[r#"
            Invalid: InvalidArgument, HTTP 400, exit 4
            NotFound: NotFound, HTTP 404, exit 6
            Conflict: Aborted, HTTP 409, exit 7
            Busy: ResourceExhausted, HTTP 429, exit 8
            Denied: PermissionDenied, HTTP 403, exit 5
            TooLarge: OutOfRange, HTTP 413, exit 4
            Unavailable: Unavailable, HTTP 503, exit 3
            Timeout: DeadlineExceeded, HTTP 504, exit 9
            Gone: FailedPrecondition, HTTP 410, exit 6
            NoSpace: ResourceExhausted, HTTP 507, exit 8
            Internal: Internal, HTTP 500, exit 3
        "#]]
        .assert_eq(&KINDS.iter().map(row).collect::<String>());
    }

    #[test]
    fn an_error_survives_its_status() {
        for kind in KINDS {
            let error = Error {
                kind,
                code: "E1102".to_owned(),
                message: "no such agent".to_owned(),
                hint: "deploy it".to_owned(),
            };
            assert_eq!(Error::from(&Status::from(error.clone())), error);
            // Without its details a full disk is a limit like others.
            let told = if kind == ErrorKind::NoSpace { ErrorKind::Busy } else { kind };
            assert_eq!(kind_of_code(grpc_code(kind)), told);
        }
    }

    #[test]
    fn a_foreign_status_keeps_its_code() {
        let timeout = Error::from(&Status::cancelled("Timeout expired"));
        assert_eq!(timeout, Error::new(ErrorKind::Timeout, "Timeout expired"));
        let garbage = Status::with_details(Code::Unavailable, "gone away", vec![0xff; 64].into());
        assert_eq!(Error::from(&garbage), Error::new(ErrorKind::Unavailable, "gone away"));
    }
}
