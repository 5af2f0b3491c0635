//! The requests: which path, method and headers are answered, and how (compatibility §19.1).

use std::convert::Infallible;

use atlas_service::Caller;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::message::{self, INVALID_REQUEST, Message, RpcError, VERSIONS};
use super::sessions::Found;
use super::{Compatible, GatewayResponse, auth};
use crate::owners::Owner;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

impl Compatible {
    /// Answers a request whose body was read.
    pub async fn answer(&self, parts: &Parts, body: &[u8], caller: Caller) -> GatewayResponse {
        let path = parts.uri.path();
        if path == "/health" {
            return match self.tools_count(&caller).await {
                Ok(tools) => document(StatusCode::OK, &json!({ "status": "ok", "tools": tools })),
                Err(error) => document(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": error.to_string() })),
            };
        }
        if let Err((status, text)) = auth::check(self.options.token.as_ref(), &parts.headers) {
            return document(status, &json!({ "error": text }));
        }
        match (path, &parts.method) {
            ("/mcp" | "/mcp/", _) => self.streamable(parts, body, &caller).await,
            ("/sse", &Method::GET) => self.open_events(&caller),
            ("/messages" | "/messages/", &Method::POST) => self.take_message(caller, parts.uri.query(), body),
            _ => document(StatusCode::NOT_FOUND, &json!({ "error": "not found" })),
        }
    }

    async fn streamable(&self, parts: &Parts, body: &[u8], caller: &Caller) -> GatewayResponse {
        let session = parts.headers.get(SESSION).and_then(|id| id.to_str().ok());
        let is_own = |id| matches!(self.sessions.find(id, &Owner::new(caller, None)), Found::Known(None));
        if !session.is_none_or(is_own) {
            return refused(StatusCode::NOT_FOUND, "Session not found");
        }
        match parts.method {
            Method::POST => self.post(parts, body, caller, session).await,
            Method::GET => {
                if !accepts(&parts.headers, EVENTS) {
                    return refused(StatusCode::NOT_ACCEPTABLE, "Not Acceptable: Client must accept text/event-stream");
                }
                session.map_or_else(no_session, |_| silence())
            }
            Method::DELETE => session.map_or_else(no_session, |id| {
                self.sessions.end(id);
                empty(StatusCode::OK)
            }),
            _ => {
                let mut answer = refused(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
                answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
                answer
            }
        }
    }

    async fn post(&self, parts: &Parts, body: &[u8], caller: &Caller, session: Option<&str>) -> GatewayResponse {
        if !accepts(&parts.headers, JSON) {
            return refused(StatusCode::NOT_ACCEPTABLE, "Not Acceptable: Client must accept application/json");
        }
        if media_type(parts.headers.get(header::CONTENT_TYPE)) != Some(JSON) {
            let text = "Unsupported Media Type: Content-Type must be application/json";
            return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
        }
        let message = match message::read(body) {
            Ok(message) => message,
            Err(error) => return document(StatusCode::BAD_REQUEST, &error.answer(None)),
        };
        if let Message::Request { id, method, params } = &message
            && method == "initialize"
            && session.is_none()
        {
            return self.initialize(caller, id, params).await;
        }
        let Some(session) = session else { return no_session() };
        let version = parts.headers.get(VERSION).and_then(|version| version.to_str().ok());
        if let Some(version) = version.filter(|version| !VERSIONS.contains(version)) {
            let version: String = version.chars().take(40).collect();
            let known = VERSIONS.join(", ");
            let text = format!("Bad Request: Unsupported protocol version: {version}. Supported versions: {known}");
            return refused(StatusCode::BAD_REQUEST, &text);
        }
        let mut answer = match message {
            Message::Cancelled { request } => {
                self.calls.cancel(session, &request);
                empty(StatusCode::ACCEPTED)
            }
            Message::Other => empty(StatusCode::ACCEPTED),
            Message::Request { id, method, params } => {
                let running = self.calls.begin(session, &id);
                let (server, caller) = (self.clone(), caller.clone());
                let (answered, answer) = oneshot::channel();
                // A client that cancels closes this request as well, maybe before its cancellation is read.
                self.env.spawn("mcp-call", async move {
                    // The client may be gone.
                    let _ = answered.send(server.answer_to(&caller, (&id, running), &method, &params).await);
                });
                match answer.await {
                    Ok(answer) => document(StatusCode::OK, &answer),
                    Err(_) => refused(StatusCode::SERVICE_UNAVAILABLE, "the controller stops"),
                }
            }
        };
        in_session(&mut answer, session);
        answer
    }

    async fn initialize(
        &self,
        caller: &Caller,
        id: &Value,
        params: &serde_json::Map<String, Value>,
    ) -> GatewayResponse {
        let running = self.calls.begin("", id);
        let answer = self.answer_to(caller, (id, running), "initialize", params).await;
        if answer.get("error").is_some() {
            return document(StatusCode::OK, &answer);
        }
        let Some(session) = self.sessions.open(Owner::new(caller, None)) else { return too_many() };
        let mut answer = document(StatusCode::OK, &answer);
        in_session(&mut answer, &session);
        answer
    }
}

fn in_session(answer: &mut GatewayResponse, session: &str) {
    if let Ok(id) = HeaderValue::from_str(session) {
        answer.headers_mut().insert(SESSION, id);
    }
}

/// Whether a media type is named. `*/*` is not enough.
fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.split(';').next().is_some_and(|part| part.trim().eq_ignore_ascii_case(wanted)))
}

fn media_type(value: Option<&HeaderValue>) -> Option<&str> {
    value?.to_str().ok()?.split(';').next().map(str::trim)
}

fn refused(status: StatusCode, text: &str) -> GatewayResponse {
    document(status, &RpcError::new(INVALID_REQUEST, text).answer(None))
}

fn no_session() -> GatewayResponse {
    refused(StatusCode::BAD_REQUEST, "Bad Request: Missing session ID")
}

/// The refusal of a session beyond the limit.
pub(super) fn too_many() -> GatewayResponse {
    let mut answer =
        refused(StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open; idle ones end by themselves");
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
    answer
}

fn document(status: StatusCode, value: &Value) -> GatewayResponse {
    with(status, JSON, value.to_string())
}

/// A plain text.
pub(super) fn words(status: StatusCode, text: &'static str) -> GatewayResponse {
    with(status, "text/plain; charset=utf-8", text.to_owned())
}

fn empty(status: StatusCode) -> GatewayResponse {
    with(status, JSON, String::new())
}

fn with(status: StatusCode, media_type: &'static str, text: String) -> GatewayResponse {
    let mut answer = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}

/// The stream of messages that the server sends by itself: it sends none.
fn silence() -> GatewayResponse {
    let stream = futures::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>();
    let body: UnsyncBoxBody<Bytes, Infallible> = StreamBody::new(stream).boxed_unsync();
    let mut answer = Response::new(body);
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_must_be_named() {
        let headers = |accept: &'static str| HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
        assert!(accepts(&headers("text/event-stream, application/json;q=0.9"), JSON));
        assert!(accepts(&headers("Application/JSON"), JSON));
        assert!(!accepts(&headers("*/*"), JSON));
        assert!(!accepts(&headers("application/*"), JSON));
        assert!(!accepts(&HeaderMap::new(), JSON));
    }
}
