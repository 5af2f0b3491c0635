//! Answers: JSON (compatibility §0.4), and errors in two forms.

use std::fmt;
use std::io::Write as _;

use atlas_api::{status_of, types};
use atlas_service::json as text;
use axum::body::Body;
use http::StatusCode;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WARNING, WWW_AUTHENTICATE};
use serde::Serialize;
use serde_json::Value;

/// The answer of a handler.
pub(crate) type Response = http::Response<Body>;
/// The result of a handler: an answer or a problem.
pub(crate) type Answer = Result<Response, Problem>;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const ERROR_CODE: HeaderName = HeaderName::from_static("atlas-error-code");

/// Why a request was not carried out.
#[derive(Debug)]
pub(crate) enum Problem {
    /// An error of the service.
    Service(atlas_service::Error),
    /// The path supports only other methods.
    NoMethod(String),
    /// The body did not arrive in time.
    Late,
}

impl Problem {
    pub(crate) fn malformed(text: impl Into<String>) -> Self {
        Self::Service(atlas_service::Error::Malformed(text.into()))
    }

    /// The error as shown to a client.
    pub(crate) fn into_error(self) -> atlas_service::Error {
        match self {
            Self::Service(error) => error,
            Self::NoMethod(methods) => atlas_service::Error::NoMethod(methods),
            Self::Late => atlas_service::Error::Late,
        }
    }

    /// The answer: `{"error": …}` as in Atlas for Python, or a problem document.
    pub(crate) fn into_response(self, problem: bool) -> Response {
        let error = self.into_error();
        let mut response = service_error(&error, problem);
        if let atlas_service::Error::NoMethod(methods) = &error {
            response.headers_mut().extend(HeaderValue::from_str(methods).map(|allow| (ALLOW, allow)));
        }
        response
    }
}

impl From<atlas_service::Error> for Problem {
    fn from(error: atlas_service::Error) -> Self {
        Self::Service(error)
    }
}

/// An answer with a JSON text that is already ASCII.
pub(crate) fn ready_json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// An answer with a JSON value that is not of a type of the interface yet.
pub(crate) fn json(status: StatusCode, value: &Value) -> Response {
    body(status, value)
}

/// An answer with a body of the interface. Non-ASCII characters are escaped.
pub(crate) fn body<T: Serialize + ?Sized>(status: StatusCode, body: &T) -> Response {
    // A body of the interface is JSON: its names are text, so that writing it cannot fail.
    let written = serde_json::to_vec(body).unwrap_or_else(|_| b"null".to_vec());
    if written.is_ascii() {
        return ready_json(status, written);
    }
    let mut escaped = Vec::with_capacity(written.len());
    text::raw(&mut escaped, &written);
    ready_json(status, escaped)
}

/// An answer with warnings: headers, because clients of Atlas for Python know the members of its body.
pub(crate) fn with_warnings(mut answer: Response, warnings: impl IntoIterator<Item = String>) -> Response {
    for warning in warnings {
        if let Ok(value) = HeaderValue::from_str(&format!("299 atlas \"{warning}\"")) {
            answer.headers_mut().append(WARNING, value);
        }
    }
    answer
}

/// An answer with text for people.
pub(crate) fn text_page(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    response
}

/// The metrics as text.
pub(crate) fn metrics(body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(atlas_telemetry::CONTENT_TYPE));
    response
}

/// `{"error": text}` without a code, for errors without an error page.
pub(crate) fn plain_error(status: StatusCode, message: &str) -> Response {
    body(status, &types::Error { error: message.to_owned() })
}

/// After how many seconds a repeat may succeed.
pub(crate) fn retry_after_s(error: &atlas_service::Error) -> Option<u64> {
    error.retry_after().map(|after| after.as_secs().max(1))
}

fn service_error(error: &atlas_service::Error, problem: bool) -> Response {
    let entry = error.entry();
    let status = status_of(&entry);
    let mut response = match error {
        _ if problem => {
            let mut response = body(status, &problem_document(error));
            response.headers_mut().insert(CONTENT_TYPE, PROBLEM);
            response
        }
        // The same answer as the web framework of Atlas for Python gives for a request without a handler.
        atlas_service::Error::UnknownPath | atlas_service::Error::NoMethod(_) => {
            text_page(status, format!("{}: {error}", status.as_u16()))
        }
        error => plain_error(status, &error.to_string()),
    };
    let headers = response.headers_mut();
    headers.insert(ERROR_CODE, HeaderValue::from_static(entry.code));
    headers.extend(retry_after_s(error).map(|after| (RETRY_AFTER, HeaderValue::from(after))));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"atlas\""));
    }
    if matches!(status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT) {
        // The rest of the body is not read, so the client must not send another request on this connection.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// An error as a problem document.
pub(crate) fn problem_document(error: &atlas_service::Error) -> types::Problem {
    let entry = error.entry();
    let violation = |violation: &atlas_contract::Violation| types::Violation {
        pointer: violation.pointer.clone(),
        rule: violation.rule.clone(),
        message: violation.message.clone(),
    };
    types::Problem {
        kind: format!("/errors/{}", entry.code),
        title: entry.title.to_owned(),
        status: status_of(&entry).as_u16().into(),
        code: entry.code.to_owned(),
        detail: error.to_string(),
        errors: error.violations().iter().map(violation).collect(),
        hint: error.hint(),
        retry_after_s: retry_after_s(error),
    }
}

/// A server-sent event without an id: a reader that comes back does not continue after it.
pub(crate) fn sse_passing(event: &str, data: &[u8]) -> Vec<u8> {
    let mut frame = format!("event: {event}\ndata: ").into_bytes();
    frame.extend_from_slice(data);
    frame.extend_from_slice(b"\n\n");
    frame
}

/// Appends one frame of a server-sent event stream.
pub(crate) fn write_sse_frame(out: &mut Vec<u8>, id: impl fmt::Display, event: &str, data: &[u8]) {
    // A vector takes all that is written.
    let _ = write!(out, "id: {id}\nevent: {event}\ndata: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}
