//! One small set of error kinds; each maps once to a gRPC code, an HTTP status and an exit code.

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// The request is malformed or breaks a contract: change it.
    Invalid,
    /// No object has that name.
    NotFound,
    /// It exists with other content, or was changed meanwhile.
    Conflict,
    /// A limit is reached: try again later.
    Busy,
    /// Refused by policy or for lack of a permission.
    Denied,
    /// The request or payload is too large.
    TooLarge,
    /// No leader, or the cluster cannot be reached: try again.
    Unavailable,
    /// The time given has passed.
    Timeout,
    /// The disk is nearly full: try again when there is room.
    NoSpace,
    /// It existed and has been dropped.
    Gone,
    /// A fault of ours.
    Internal,
}

impl ErrorKind {
    /// The HTTP status of a kind.
    pub fn http_status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::Busy => 429,
            Self::Denied => 403,
            Self::TooLarge => 413,
            Self::Unavailable => 503,
            Self::Timeout => 504,
            Self::Gone => 410,
            Self::NoSpace => 507,
            Self::Internal => 500,
        }
    }
}
