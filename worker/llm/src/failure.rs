//! What an answer that reports an error means.
//!
//! Providers and servers in front of them know about six shapes of errors. The text of the provider becomes the message; its
//! code, the HTTP status and at last the words of the message decide the kind.

use atlas_http::sse::TooLarge;
use atlas_model::{CallError, CallErrorKind};
use http::StatusCode;
use serde_json::Value;

use crate::assembly::Assembly;
use crate::bounds::MESSAGE_BYTES_MAX;
use crate::json::{self, JsonError};
use crate::redact::Redactor;

/// An answer that does not follow the protocol.
pub fn answer(problem: impl AsRef<str>) -> CallError {
    CallError::new(CallErrorKind::Answer, bounded(problem.as_ref()))
}

/// A connection that ended before the answer was complete.
pub fn cut_off() -> CallError {
    CallError::new(CallErrorKind::Connection, "the connection ended before the answer was complete")
}

/// Whether an error says that the provider is down for everyone, or overloaded, and that waiting helps: no connection, an answer
/// of a gateway without its server, a limit of calls.
pub fn is_outage(error: &CallError) -> bool {
    match error.kind {
        // Where an answer began, the provider may have worked for it, and another try may break off at the same place.
        CallErrorKind::Connection => error.status.is_none(),
        CallErrorKind::RateLimited => !error.status.is_some_and(|status| (200..300).contains(&status)),
        CallErrorKind::Provider => matches!(error.status, Some(502..=504 | 529)),
        _ => false,
    }
}

/// Refuses an answer with nothing in it that does not say why the model stopped either. With a reason it is an answer, which
/// whoever asked judges: a model may have nothing to add.
pub fn refuse_nothing(assembly: &Assembly, has_reason: bool) -> Result<(), CallError> {
    if assembly.is_empty() && !has_reason {
        return Err(answer("invalid response: the answer has no text and no tool calls"));
    }
    Ok(())
}

/// An answer with a status other than success.
pub fn of_response(status: StatusCode, body: &[u8]) -> CallError {
    let parsed = json::parse(body).ok();
    let report = parsed.as_ref().and_then(Report::read);
    let (codes, message) = match report {
        Some(report) => (report.codes, report.message),
        None => (String::new(), raw(status, body)),
    };
    let message = bounded(&message);
    CallError {
        kind: kind(Some(status.as_u16()), &codes, &message),
        status: Some(status.as_u16()),
        message,
        retry_after: None,
    }
}

/// An error inside of an answer whose status was success, for example as an event of a stream.
pub fn of_value(value: &Value) -> CallError {
    let report = Report::read(value).unwrap_or_else(|| Report::plain(value.to_string()));
    let message = bounded(&report.message);
    CallError::new(kind(report.status, &report.codes, &message), message)
}

/// Words of a server where JSON belongs.
pub fn of_text(text: &str) -> CallError {
    let message = bounded(text);
    let kind = kind(None, &message.to_lowercase().replace(' ', "_"), &message);
    CallError::new(kind, bounded(&format!("the provider sent a text instead of an answer: {message}")))
}

/// What a server wrote between the events of a stream that then ended without an answer.
pub fn of_stray(text: &[u8]) -> CallError {
    match json::parse(text) {
        Ok(value) if Report::read(&value).is_some() => of_value(&value),
        _ => of_text(&String::from_utf8_lossy(text)),
    }
}

/// A document without what the protocol promises: what it reports, or else `problem`.
pub fn of_document(value: &Value, problem: &str) -> CallError {
    if Report::read(value).is_some() { of_value(value) } else { answer(problem) }
}

/// An error of a provider that is told apart by its code alone.
pub fn of_code(code: &str, message: &str) -> CallError {
    let message = bounded(if message.is_empty() { code } else { message });
    CallError::new(kind(None, &code.to_lowercase(), &message), message)
}

/// Whether a document reports an error. Some servers send the member with each piece and set it only when there is one.
pub fn is_report(value: &Value) -> bool {
    let has_error = match value.get("error").or_else(|| value.pointer("/0/error")) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    };
    has_error || ["object", "type"].iter().any(|name| value.get(*name).is_some_and(|kind| kind == "error"))
}

/// An event that is larger than any answer.
pub(crate) fn too_large(error: TooLarge) -> CallError {
    answer(error.to_string())
}

impl From<JsonError> for CallError {
    fn from(error: JsonError) -> Self {
        answer(error.to_string())
    }
}

/// What a provider says about its error.
struct Report {
    message: String,
    /// Codes, types and states, in lower case and separated by spaces.
    codes: String,
    /// A code that is an HTTP status.
    status: Option<u16>,
}

impl Report {
    fn plain(message: String) -> Self {
        Self { message, codes: String::new(), status: None }
    }

    fn read(value: &Value) -> Option<Self> {
        let object = |value: &Value| value.is_object().then(|| value.clone());
        let inner = value.get("error").and_then(object).or_else(|| value.pointer("/errors/0").and_then(object));
        let inner = inner.or_else(|| value.pointer("/0/error").and_then(object));
        let source = inner.as_ref().unwrap_or(value);
        let texts = ["/message", "/detail", "/error", "/Message", "/detail/0/msg", "/msg"];
        let message = texts.iter().find_map(|pointer| json::text(source, pointer));
        let fields = ["code", "type", "status", "__type", "reason"].map(|name| source.get(name));
        let inner_code = source.pointer("/innererror/code");
        let fields: Vec<&Value> = fields.into_iter().chain([inner_code]).flatten().collect();
        let words: Vec<String> = fields.iter().filter_map(|field| field.as_str().map(str::to_lowercase)).collect();
        let numbers = fields.iter().filter_map(|field| field.as_u64().and_then(|code| u16::try_from(code).ok()));
        let status = numbers.into_iter().find(|code| (400..600).contains(code));
        let message = match message {
            Some(message) => message.to_owned(),
            // An object without a known text is shown as it is, so that nothing is lost.
            None if inner.is_some() || is_report(value) => {
                format!("the provider reported an error and did not say which: {source}")
            }
            None => return None,
        };
        Some(Self { message, codes: words.join(" "), status })
    }
}

/// Bytes of a page that are repeated.
const TITLE_BYTES_MAX: usize = 100;

fn raw(status: StatusCode, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if let Some(title) = page(text) {
        let title = if title.is_empty() { String::new() } else { format!(": {title}") };
        return format!("the provider answered {status} with a page for people{title}");
    }
    if text.is_empty() { format!("the provider answered {status} without a text") } else { text.to_owned() }
}

/// What a page of HTML says at its beginning: its title, or else its words. None for other texts.
fn page(text: &str) -> Option<String> {
    let begins = |start: &str| text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start));
    if !["<!doctype", "<html", "<head", "<body", "<?xml"].into_iter().any(begins) {
        return None;
    }
    let head = cut(text, 2 * MESSAGE_BYTES_MAX);
    // Lower case of ASCII alone, so that places stay the same.
    let lower = head.to_ascii_lowercase();
    let title = lower.find("<title>").map(|at| at + "<title>".len());
    let title = title.and_then(|start| head[start..].split('<').next()).filter(|title| !title.trim().is_empty());
    let words: Vec<&str> = match title {
        Some(title) => title.split_whitespace().collect(),
        None => head
            .split('<')
            .filter_map(|tag| tag.split_once('>'))
            .flat_map(|(_, said)| said.split_whitespace())
            .collect(),
    };
    Some(cut(&words.join(" "), TITLE_BYTES_MAX).to_owned())
}

/// `text` without control characters and what looks like a key, cut to [`MESSAGE_BYTES_MAX`].
pub(crate) fn bounded(text: &str) -> String {
    // Cut with room before the search, so that a huge text costs little, and again after it.
    let head = cut(text, 2 * MESSAGE_BYTES_MAX);
    let clean: String = head.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    cut(&Redactor::default().redact(&clean), MESSAGE_BYTES_MAX).trim().to_owned()
}

fn cut(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// Codes of providers. The first row that has a word of the codes decides.
const CODES: &[(CallErrorKind, &[&str])] = &[
    (
        CallErrorKind::TooLong,
        &[
            "context_length_exceeded",
            "exceed_context_size",
            "string_above_max_length",
            "request_too_large",
            "context_window",
        ],
    ),
    (
        CallErrorKind::Quota,
        &[
            "insufficient_quota",
            "billing",
            "insufficient_balance",
            "exceeded_current_quota",
            "payment_required",
            "credit",
        ],
    ),
    (
        CallErrorKind::Filtered,
        &["content_filter", "content_policy", "responsibleai", "data_inspection", "safety", "moderation"],
    ),
    (
        CallErrorKind::UnknownModel,
        &["model_not_found", "deploymentnotfound", "invalid_model", "model_not_available", "resourcenotfound"],
    ),
    (
        CallErrorKind::Credentials,
        &[
            "invalid_api_key",
            "authentication",
            "unauthenticated",
            "unauthorized",
            "permission",
            "accessdenied",
            "access_denied",
            "unrecognizedclient",
            "invalidsignature",
            "expiredtoken",
        ],
    ),
    (CallErrorKind::RateLimited, &["rate_limit", "resource_exhausted", "throttling", "too_many_requests"]),
    (CallErrorKind::Timeout, &["timeout", "deadline_exceeded"]),
    (CallErrorKind::Provider, &["overloaded", "server_error", "internal", "unavailable", "api_error"]),
    (CallErrorKind::UnknownModel, &["not_found"]),
    (CallErrorKind::Request, &["invalid_request", "invalid_argument", "invalid_prompt", "validation", "bad_request"]),
];

/// Phrases of messages, for refused requests whose code does not say what is wrong.
const PHRASES: &[(CallErrorKind, &[&str])] = &[
    (
        CallErrorKind::TooLong,
        &[
            "context length",
            "context window",
            "prompt is too long",
            "input is too long",
            "too many tokens",
            "input token count",
            "maximum number of tokens",
            "context size",
        ],
    ),
    (CallErrorKind::Quota, &["credit balance", "insufficient balance"]),
    (CallErrorKind::Filtered, &["content management policy", "content policy", "safety system"]),
    (CallErrorKind::Credentials, &["api key not valid", "invalid api key", "incorrect api key"]),
    (CallErrorKind::UnknownModel, &["not a valid model", "model not found", "unknown model"]),
];

fn kind(status: Option<u16>, codes: &str, message: &str) -> CallErrorKind {
    use CallErrorKind as Kind;
    let row = |table: &[(Kind, &[&str])], text: &str| {
        table.iter().find(|(_, words)| words.iter().any(|word| text.contains(word))).map(|(kind, _)| *kind)
    };
    let by_code = row(CODES, codes);
    match status {
        Some(400 | 404 | 413 | 422) => {
            // The code of most refused requests says only that they were refused.
            let by_code = by_code.filter(|kind| *kind != Kind::Request);
            let by_text = || row(PHRASES, &message.to_lowercase());
            by_code.or_else(by_text).unwrap_or(match status {
                Some(404) => Kind::UnknownModel,
                Some(413) => Kind::TooLong,
                _ => Kind::Request,
            })
        }
        Some(401 | 403) => by_code.filter(|kind| *kind != Kind::Request).unwrap_or(Kind::Credentials),
        Some(402) => Kind::Quota,
        Some(408) => Kind::Timeout,
        Some(409 | 425) => Kind::Provider,
        Some(429) if by_code == Some(Kind::Quota) => Kind::Quota,
        Some(429) => Kind::RateLimited,
        Some(500..) => Kind::Provider,
        Some(405..) => Kind::Request,
        // Redirects are not followed: the key would go to another server.
        Some(_) => Kind::Answer,
        None => by_code.or_else(|| row(PHRASES, &message.to_lowercase())).unwrap_or(Kind::Provider),
    }
}

#[cfg(test)]
mod tests;
