//! Errors as clients of OpenAI's interface read them.

use atlas_model::CallErrorKind;
use serde_json::{Value, json};

/// A refusal or a failure: the status of HTTP, and what is in the body.
///
/// ```
/// use atlas_openai::WireError;
///
/// let error = WireError::invalid("a temperature is at most 2").at("temperature");
/// assert_eq!(error.status, 400);
/// assert_eq!(error.body()["error"]["param"], "temperature");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WireError {
    /// The status of HTTP.
    pub status: u16,
    /// The member `type`: a class of errors, such as `invalid_request_error`.
    pub kind: &'static str,
    /// What clients compare with: `model_not_found`, `rate_limit_exceeded`.
    pub code: Option<String>,
    /// The member of the request that is refused, such as `messages[3].content`.
    pub param: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

/// The class of requests that no retry helps.
const INVALID: &str = "invalid_request_error";
/// The class of failures that are not the client's.
const SERVER: &str = "server_error";

impl WireError {
    fn new(status: u16, kind: &'static str, code: Option<&str>, message: impl Into<String>) -> Self {
        Self { status, kind, code: code.map(str::to_owned), param: None, message: message.into() }
    }

    /// 400: the request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, INVALID, None, message)
    }

    /// 400: a parameter that is not known.
    pub fn unknown_parameter(name: &str) -> Self {
        let text = format!(
            "unknown parameter {:?}; docs/reference/openai.md lists those that this server takes",
            bounded(name)
        );
        Self::new(400, INVALID, Some("unknown_parameter"), text).at(name)
    }

    /// 400: a parameter that is known and not served. `why` goes on after the name.
    pub fn unsupported(param: &str, why: &str) -> Self {
        let text = format!("{:?} is not supported: {why}", bounded(param));
        Self::new(400, INVALID, Some("unsupported_parameter"), text).at(param)
    }

    /// 400: the request is larger than the context of the model.
    pub fn too_long(message: impl Into<String>) -> Self {
        Self::new(400, INVALID, Some("context_length_exceeded"), message)
    }

    /// 401: there is no valid token.
    pub fn authentication(message: impl Into<String>) -> Self {
        Self::new(401, "authentication_error", Some("invalid_api_key"), message)
    }

    /// 403: the token lacks a right.
    pub fn permission(message: impl Into<String>) -> Self {
        Self::new(403, "permission_error", Some("insufficient_permissions"), message)
    }

    /// 404: there is no such model, or the caller may not see it.
    pub fn model_not_found(model: &str) -> Self {
        let text = format!("the model {:?} does not exist or you do not have access to it", bounded(model));
        Self::new(404, INVALID, Some("model_not_found"), text).at("model")
    }

    /// 404: there is no such thing, such as a response with an id.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, INVALID, Some("not_found"), message)
    }

    /// 409: the thing is in a state that does not allow this.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, INVALID, Some("conflict"), message)
    }

    /// 413: the body is larger than the door takes.
    pub fn too_large(bytes_max: usize) -> Self {
        let text = format!("the body is larger than {bytes_max} bytes");
        Self::new(413, INVALID, Some("request_too_large"), text)
    }

    /// 429: too many requests or tokens for now. The door sends `Retry-After` where it knows a time.
    pub fn rate_limited(message: impl Into<String>) -> Self {
        Self::new(429, "rate_limit_error", Some("rate_limit_exceeded"), message)
    }

    /// 429: a budget is used up. Clients do not try again.
    pub fn quota(message: impl Into<String>) -> Self {
        Self::new(429, "insufficient_quota", Some("insufficient_quota"), message)
    }

    /// 500: a fault of this server.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, SERVER, Some("server_error"), message)
    }

    /// 502: the provider of the model failed.
    pub fn provider(message: impl Into<String>) -> Self {
        Self::new(502, SERVER, Some("provider_error"), message)
    }

    /// 503: no controller or worker can serve the request now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, SERVER, Some("service_unavailable"), message)
    }

    /// 504: the time of the request is over.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(504, SERVER, Some("timeout"), message)
    }

    /// A failed model call. `model` is the name in the request, `message` the text of the failure.
    pub fn of_call(kind: CallErrorKind, model: &str, message: &str) -> Self {
        match kind {
            CallErrorKind::TooLong => Self::too_long(message).at("messages"),
            CallErrorKind::Request => Self::invalid(message),
            CallErrorKind::Filtered => Self::new(400, INVALID, Some("content_filter"), message),
            CallErrorKind::UnknownModel => Self { message: message.to_owned(), ..Self::model_not_found(model) },
            CallErrorKind::RateLimited => Self::rate_limited(message),
            CallErrorKind::Quota => Self::quota(message),
            CallErrorKind::Timeout => Self::timeout(message),
            // The keys are those of the cluster: the client can do nothing about them.
            CallErrorKind::Credentials | CallErrorKind::Login => Self::provider(message),
            CallErrorKind::Provider | CallErrorKind::Connection | CallErrorKind::Answer => Self::provider(message),
        }
    }

    /// The same with the member of the request that it is about.
    #[must_use]
    pub fn at(mut self, param: impl Into<String>) -> Self {
        self.param = Some(bounded(&param.into()));
        self
    }

    /// The same with another code.
    #[must_use]
    pub fn with_code(mut self, code: &str) -> Self {
        self.code = Some(code.to_owned());
        self
    }

    /// The body of the answer. In a stream that has begun, it is the last event, because the status was sent.
    pub fn body(&self) -> Value {
        json!({ "error": { "message": self.message, "type": self.kind, "param": self.param, "code": self.code } })
    }
}

/// Longest name of a member that errors repeat, in characters.
const NAME_CHARS_MAX: usize = 128;

/// What a client sent, so that an error is never much longer than its explanation.
pub(crate) fn bounded(text: &str) -> String {
    match text.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_all_members() {
        assert_eq!(
            WireError::model_not_found("m").body(),
            json!({"error": {
                "message": "the model \"m\" does not exist or you do not have access to it",
                "type": "invalid_request_error", "param": "model", "code": "model_not_found",
            }})
        );
        assert_eq!(
            WireError::invalid("no").body(),
            json!({"error": {"message": "no", "type": "invalid_request_error", "param": null, "code": null}})
        );
        let long = WireError::unknown_parameter(&"x".repeat(9_999));
        assert!(long.message.len() < 300 && long.param.is_some_and(|param| param.len() < 200));
    }

    #[test]
    fn failures_of_calls_have_statuses_that_clients_act_on() {
        let status = |kind| {
            let error = WireError::of_call(kind, "m", "why");
            (error.status, error.code.unwrap_or_default())
        };
        let all: Vec<String> = CallErrorKind::ALL
            .into_iter()
            .map(|kind| format!("{} {} {}", kind.name(), status(kind).0, status(kind).1))
            .collect();
        expect_test::expect![[r#"
            credentials 502 provider_error
            login 502 provider_error
            unknown_model 404 model_not_found
            too_long 400 context_length_exceeded
            request 400 
            rate_limited 429 rate_limit_exceeded
            quota 429 insufficient_quota
            filtered 400 content_filter
            provider 502 provider_error
            connection 502 provider_error
            timeout 504 timeout
            answer 502 provider_error"#]]
        .assert_eq(&all.join("\n"));
    }
}
