//! Why a resource is not what the cluster has.

use serde_json::Value;

/// Most characters of a message, so that it fits an event.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// The word for it, as conditions and events show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// The resource says nothing that could be sent.
    Invalid,
    /// The resource may not change what it names.
    NotPermitted,
    /// The cluster has an object of this name that the resource did not make.
    Conflict,
    /// The cluster refused it.
    Refused,
    /// The cluster does not accept the token.
    Unauthorized,
    /// The object cannot be deleted because others use it.
    InUse,
    /// Another change was faster.
    Changed,
    /// No controller answered, or none could.
    Unreachable,
}

impl Reason {
    /// Its word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid",
            Self::NotPermitted => "NotPermitted",
            Self::Conflict => "Conflict",
            Self::Refused => "Refused",
            Self::Unauthorized => "Unauthorized",
            Self::InUse => "InUse",
            Self::Changed => "Changed",
            Self::Unreachable => "Unreachable",
        }
    }

    /// Whether the state of the cluster is unknown, rather than known to be wrong.
    pub(crate) fn is_unknown(self) -> bool {
        matches!(self, Self::Unreachable | Self::Unauthorized | Self::Changed)
    }
}

/// Why a resource is not what the cluster has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Problem {
    /// The word.
    pub(crate) reason: Reason,
    /// The sentence.
    pub(crate) message: String,
}

impl Problem {
    /// A problem; a long message is cut.
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        let mut message: String = message.into();
        if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
            message.truncate(end);
            message.push('…');
        }
        Self { reason, message }
    }

    /// What a controller's refusal means.
    pub(crate) fn of_answer(status: u16, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |member: &str| body[member].as_str().unwrap_or_default();
        let code = text("code");
        let reason = match (status, code) {
            (401 | 403, _) => Reason::Unauthorized,
            (_, "E1119") => Reason::InUse,
            (_, "E1116") => Reason::Changed,
            (408 | 429 | 500.., _) => Reason::Unreachable,
            _ => Reason::Refused,
        };
        let detail = [text("detail"), text("error"), text("title")].into_iter().find(|text| !text.is_empty());
        let mut message = match (code, detail) {
            ("", None) => format!("a controller answered {status}"),
            ("", Some(detail)) => detail.to_owned(),
            (code, detail) => format!("{code}: {}", detail.unwrap_or_default()),
        };
        for place in body["errors"].as_array().into_iter().flatten().take(8) {
            let text = |member: &str| place[member].as_str().unwrap_or_default();
            message.push_str(&format!("; {} {}", text("pointer"), text("message")));
        }
        Self::new(reason, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_they_mean() {
        let read = |status, body: &str| {
            let Problem { reason, message } = Problem::of_answer(status, body.as_bytes());
            format!("{}: {message}", reason.as_str())
        };
        let body =
            r#"{"code":"E1118","detail":"the object is refused","errors":[{"pointer":"/spec","message":"is empty"}]}"#;
        assert_eq!(read(400, body), "Refused: E1118: the object is refused; /spec is empty");
        assert_eq!(read(409, r#"{"code":"E1119","detail":"a tier uses it"}"#), "InUse: E1119: a tier uses it");
        assert_eq!(read(409, r#"{"code":"E1116"}"#), "Changed: E1116: ");
        assert_eq!(read(503, "no JSON"), "Unreachable: a controller answered 503");
        assert_eq!(read(403, r#"{"error":"no"}"#), "Unauthorized: no");
        let long = format!(r#"{{"error":"{}"}}"#, "ä".repeat(5_000));
        assert_eq!(Problem::of_answer(400, long.as_bytes()).message.chars().count(), MESSAGE_CHARS_MAX + 1);
    }
}
