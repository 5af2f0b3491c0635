//! What issuers answer: JSON with what was asked for, or why not.

use atlas_model::{CallError, CallErrorKind};
use atlas_secrets::Redactor;
use atlas_types::SecretText;
use serde_json::Value;

/// Most bytes of an issuer's words that are passed on.
const MESSAGE_BYTES_MAX: usize = 500;

/// An answer that is not what the standard says.
pub(crate) fn malformed(problem: impl AsRef<str>) -> CallError {
    CallError::new(CallErrorKind::Answer, problem.as_ref())
}

/// The answer as JSON; null if it is none.
pub(crate) fn parse(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}

/// A member that is a text.
pub(crate) fn text<'a>(answer: &'a Value, member: &str) -> Option<&'a str> {
    answer.get(member).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Why an issuer refused a request, in its words and without `secrets`. It is an error of credentials unless it may pass.
pub(crate) fn refusal(status: u16, body: &[u8], secrets: &[(&str, &SecretText)]) -> CallError {
    let answer = parse(body);
    let words = match text(&answer, "error") {
        Some(code) => {
            let detail = text(&answer, "error_description").map(|text| format!(": {text}"));
            format!("{code}{}", detail.unwrap_or_default())
        }
        None => match answer.pointer("/error/message").or_else(|| answer.get("message")).and_then(Value::as_str) {
            Some(message) => message.to_owned(),
            None => format!("the issuer answered with the HTTP status {status}"),
        },
    };
    let kind = match status {
        429 => CallErrorKind::RateLimited,
        500.. => CallErrorKind::Provider,
        _ => CallErrorKind::Credentials,
    };
    let message = bounded(&Redactor::new(secrets.iter().copied()).text(&words));
    CallError { kind, status: Some(status), message, retry_after: None }
}

/// A text of limited length without control characters.
pub(crate) fn bounded(text: &str) -> String {
    let end = (0..=MESSAGE_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
