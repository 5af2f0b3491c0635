//! Streamable HTTP: how rmcp's client sends messages and reads answers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use ::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use atlas_env::Env;
use atlas_http::body;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, RequestParamsMeta as _, ServerJsonRpcMessage,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use sse_stream::{Sse, SseStream};
use url::Url;

use crate::bounds::{ERROR_BYTES_MAX, MESSAGE_BYTES_MAX};
use crate::error::McpError;
use crate::network::{Caller, Network, SendError};
use crate::reading::{self, Awaited, Kind};
use crate::target::Target;
use crate::words::words;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const BOTH: HeaderValue = HeaderValue::from_static("text/event-stream, application/json");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const TRACE: HeaderName = HeaderName::from_static("traceparent");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Headers of the protocol, which a definition cannot set.
const RESERVED: [HeaderName; 3] = [ACCEPT, SESSION, LAST_EVENT];

type Failed = StreamableHttpError<SendError>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// What a server says about the session of one transport.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// It has opened one.
    pub(crate) opened: AtomicBool,
    /// It has forgotten the session, or may have: the next call needs a new one.
    pub(crate) forgotten: AtomicBool,
}

/// The transport for a server.
pub(crate) fn transport(
    env: &Env,
    network: &Network,
    target: &Target,
    session: &Arc<Session>,
) -> Result<StreamableHttpClientTransport<Requests>, McpError> {
    let uri: Arc<str> = target.spec.url.as_deref().unwrap_or_default().into();
    let config = StreamableHttpClientTransportConfig::with_uri(uri)
        .custom_headers(target.headers.iter().cloned().collect())
        .max_sse_event_size(MESSAGE_BYTES_MAX)
        .max_json_response_size(MESSAGE_BYTES_MAX)
        .max_error_response_size(ERROR_BYTES_MAX)
        // A new session is a new connection, on which pins are compared again.
        .reinit_on_expired_session(false);
    let requests = Requests {
        caller: network.caller(env, target)?,
        session: Arc::clone(session),
        last: Arc::new(AtomicI64::new(-1)),
    };
    Ok(StreamableHttpClientTransport::with_client(requests, config))
}

/// The requests of one transport.
#[derive(Clone)]
pub(crate) struct Requests {
    caller: Caller,
    session: Arc<Session>,
    /// The largest id of a request so far.
    last: Arc<AtomicI64>,
}

impl StreamableHttpClient for Requests {
    type Error = SendError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        custom: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let mut limits = StreamableHttpResponseLimits::default();
        limits.max_sse_event_size = MESSAGE_BYTES_MAX;
        limits.max_json_response_size = MESSAGE_BYTES_MAX;
        limits.max_error_response_size = ERROR_BYTES_MAX;
        self.post_message_with_response_limits(uri, message, session, token, custom, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        custom: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let mut headers = headers(session.as_deref(), None, token, custom)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        if let Some(trace) = trace_of(&message).and_then(|trace| HeaderValue::from_str(trace).ok()) {
            headers.insert(TRACE, trace);
        }
        let body = Bytes::from(serde_json::to_vec(&message)?);
        // A notification or an answer waits for nothing, so nothing in the body matters.
        let awaited = Awaited::of(&message);
        if let Some(Awaited { id: RequestId::Number(id), .. }) = &awaited {
            self.last.fetch_max(*id, Ordering::SeqCst);
        }
        let response = self.caller.send(Method::POST, &url(&uri)?, headers, body).await.map_err(Failed::Client)?;
        let status = response.status();
        if status == StatusCode::ACCEPTED
            || status == StatusCode::NO_CONTENT
            || (status.is_success() && awaited.is_none())
        {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let opened = response.headers().get(SESSION).and_then(|session| session.to_str().ok()).map(str::to_owned);
        self.session.opened.fetch_or(opened.is_some(), Ordering::Relaxed);
        if !status.is_success() {
            let error = self.refusal(response, awaited.as_ref(), session.is_some()).await?;
            return Ok(StreamableHttpPostResponse::Json(error, opened));
        }
        let Some(awaited) = awaited else { return Ok(StreamableHttpPostResponse::Accepted) };
        if is(response.headers(), EVENTS) {
            let events = events(response, Some((awaited, Arc::clone(&self.last))), limits.max_sse_event_size);
            return Ok(StreamableHttpPostResponse::Sse(events, opened));
        }
        if !is(response.headers(), JSON) {
            return Err(Failed::UnexpectedContentType(kind(response.headers()).map(str::to_owned)));
        }
        let body = whole(response, limits.max_json_response_size).await?;
        let answer = reading::answer(&body, &awaited, self.last.load(Ordering::SeqCst)).ok_or_else(|| {
            let said = words(&body).unwrap_or_default();
            Failed::UnexpectedServerResponse(Cow::Owned(format!("not an answer of the protocol: {said}")))
        })?;
        Ok(StreamableHttpPostResponse::Json(answer, opened))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        custom: Headers,
    ) -> Result<(), Failed> {
        let headers = headers(Some(&session), None, token, custom)?;
        let response =
            self.caller.send(Method::DELETE, &url(&uri)?, headers, Bytes::new()).await.map_err(Failed::Client)?;
        match response.status() {
            // The protocol lets a server end its sessions by itself alone, and this one may have ended already.
            status if status.is_success() => Ok(()),
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST => Ok(()),
            status => Err(Failed::Client(SendError::Status { status: status.as_u16(), words: None })),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        custom: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        self.get_stream_with_max_sse_event_size(uri, session, last_event, token, custom, MESSAGE_BYTES_MAX).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        custom: Headers,
        bytes_max: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let headers = headers(session.as_deref(), last_event, token, custom)?;
        let response =
            self.caller.send(Method::GET, &url(&uri)?, headers, Bytes::new()).await.map_err(Failed::Client)?;
        let status = response.status();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(Failed::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            refused(&response)?;
            return Err(Failed::Client(SendError::Status { status: status.as_u16(), words: None }));
        }
        if !is(response.headers(), EVENTS) && !is(response.headers(), JSON) {
            return Err(Failed::UnexpectedContentType(kind(response.headers()).map(str::to_owned)));
        }
        Ok(events(response, None, bytes_max))
    }
}

/// The trace context of a call, which is also in its message.
fn trace_of(message: &ClientJsonRpcMessage) -> Option<&str> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    let ClientRequest::CallToolRequest(call) = &request.request else { return None };
    call.params.traceparent()
}

fn url(uri: &str) -> Result<Url, Failed> {
    Url::parse(uri).map_err(|_| Failed::Client(SendError::Address))
}

/// The headers of a request.
fn headers(
    session: Option<&str>,
    last_event: Option<String>,
    token: Option<String>,
    custom: Headers,
) -> Result<HeaderMap, Failed> {
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| Failed::Client(SendError::Address));
    let mut headers = HeaderMap::new();
    for (name, value) in custom {
        if RESERVED.contains(&name) {
            return Err(Failed::ReservedHeaderConflict(name.to_string()));
        }
        headers.insert(name, value);
    }
    headers.insert(ACCEPT, BOTH);
    if let Some(session) = session {
        headers.insert(SESSION, value(session)?);
    }
    if let Some(last_event) = last_event {
        headers.insert(LAST_EVENT, value(&last_event)?);
    }
    if let Some(token) = token {
        let mut bearer = value(&format!("Bearer {token}"))?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    Ok(headers)
}

/// What a server says about a credential, as an error.
fn refused(response: &Response<Incoming>) -> Result<(), Failed> {
    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    match (response.status(), challenge) {
        (StatusCode::UNAUTHORIZED, challenge) => {
            Err(Failed::AuthRequired(AuthRequiredError::new(challenge.unwrap_or_default())))
        }
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            Err(Failed::InsufficientScope(InsufficientScopeError::new(challenge, None)))
        }
        _ => Ok(()),
    }
}

impl Requests {
    /// What an answer without success says: an error of the protocol, which belongs to the request whatever its id is, or a status and
    /// words. `in_session` is whether the request named a session.
    async fn refusal(
        &self,
        response: Response<Incoming>,
        awaited: Option<&Awaited>,
        in_session: bool,
    ) -> Result<ServerJsonRpcMessage, Failed> {
        refused(&response)?;
        let status = response.status();
        // A reason that is too long or breaks off is still a refusal.
        let body = whole(response, MESSAGE_BYTES_MAX).await.unwrap_or_default();
        let words = words(&body);
        let last = self.last.load(Ordering::SeqCst);
        let error = awaited.and_then(|awaited| reading::answer(&body, awaited, last));
        let error = error.filter(|error| matches!(error, JsonRpcMessage::Error(_)));
        let is_own = awaited.is_some_and(|awaited| reading::answers(&body, awaited));
        let is_lost = match status {
            StatusCode::NOT_FOUND => true,
            // What a server says that was started again. An error with the request's own id is about the request.
            StatusCode::BAD_REQUEST => {
                !is_own || words.as_ref().is_some_and(|words| words.to_ascii_lowercase().contains("session"))
            }
            _ => false,
        };
        let is_lost = in_session && is_lost;
        if is_lost {
            self.session.forgotten.store(true, Ordering::SeqCst);
        }
        let status = status.as_u16();
        // A call that the server knows by its id may have had an effect, so it is not made again.
        let is_call = awaited.is_some_and(|awaited| awaited.kind == Kind::Call);
        match error {
            _ if is_lost && !(is_own && is_call) => Err(Failed::Client(SendError::Session { status, words })),
            Some(error) => Ok(error),
            None => Err(Failed::Client(SendError::Status { status, words })),
        }
    }
}

/// The type of an answer's body, without its parameters.
fn kind(headers: &HeaderMap) -> Option<&str> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(kind.split(';').next().unwrap_or_default().trim())
}

fn is(headers: &HeaderMap, wanted: &str) -> bool {
    kind(headers).is_some_and(|kind| kind.eq_ignore_ascii_case(wanted))
}

/// A body with at most `bytes_max` bytes.
async fn whole(response: Response<Incoming>, bytes_max: usize) -> Result<Vec<u8>, Failed> {
    body::whole(&mut response.into_body(), bytes_max).await.map_err(|error| match error {
        body::BodyError::TooLarge => Failed::ResponseBodyTooLarge { max_size: bytes_max },
        body::BodyError::Broken(error) => Failed::Client(SendError::Body(error)),
    })
}

/// An event is larger than anybody may read.
#[derive(Debug, thiserror::Error)]
#[error("an event has more than {0} bytes")]
struct EventTooLarge(usize);

type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The events of a body; those of the answer to a request belong to it. The stream ends with an error at one of more than `bytes_max`
/// bytes.
fn events(
    response: Response<Incoming>,
    awaited: Option<(Awaited, Arc<AtomicI64>)>,
    bytes_max: usize,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut length = Length::default();
    let pieces = response.into_body().into_data_stream().map(move |piece| {
        let piece = piece.map_err(|error| Box::new(error) as BodyError)?;
        match length.after(&piece) {
            longest if longest > bytes_max => Err(Box::new(EventTooLarge(bytes_max)) as BodyError),
            _ => Ok(piece),
        }
    });
    let mut ended = false;
    let until_error = pieces.take_while(move |piece| {
        let go_on = !ended;
        ended = piece.is_err();
        futures::future::ready(go_on)
    });
    let events = SseStream::from_bytes_stream(until_error.map_err(Broken));
    let read = events.map(move |event| match event {
        Ok(event) => tidied(event, awaited.as_ref()).into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    });
    read.flat_map(futures::stream::iter).boxed()
}

/// An event with the messages in it, one in each. One without any is kept for its id alone.
fn tidied(event: Sse, awaited: Option<&(Awaited, Arc<AtomicI64>)>) -> Vec<Sse> {
    let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
    let data = event.data.as_deref().filter(|_| is_message).unwrap_or_default();
    let messages = match awaited {
        Some((awaited, last)) => reading::messages_for(data.as_bytes(), awaited, last.load(Ordering::SeqCst)),
        None => reading::messages(data.as_bytes(), &|_| None),
    };
    let empty = Sse { event: None, data: None, ..event };
    let mut events: Vec<Sse> = messages
        .iter()
        .filter_map(|message| serde_json::to_string(message).ok())
        .map(|text| Sse { data: Some(text), ..empty.clone() })
        .collect();
    if events.is_empty() {
        events.push(empty);
    }
    events
}

/// The stream of events broke off.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Broken(#[source] BodyError);

/// Counts the bytes of the event under way. Comments count as well: nobody sends megabytes of them without an empty line.
#[derive(Default)]
struct Length {
    bytes: usize,
    /// The last line is empty so far.
    at_start: bool,
}

impl Length {
    /// The longest length that the event under way had within these bytes.
    fn after(&mut self, piece: &[u8]) -> usize {
        let mut longest = 0;
        for byte in piece {
            match byte {
                b'\r' => {}
                b'\n' if self.at_start => self.bytes = 0,
                b'\n' => self.at_start = true,
                _ => self.at_start = false,
            }
            self.bytes += 1;
            longest = longest.max(self.bytes);
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use ::http::header::ALLOW;

    use super::*;

    #[test]
    fn the_length_of_an_event_begins_again_after_an_empty_line() {
        let mut length = Length::default();
        assert_eq!(length.after(b"data: 1"), 7);
        assert_eq!(length.after(b"\n\nda"), 8);
        assert_eq!(length.after(b"ta: 2\r\n\r\n: a"), 11);
        assert_eq!(length.bytes, 4);
    }

    #[test]
    fn a_definition_cannot_set_headers_of_the_protocol() {
        let own = |name: HeaderName| Headers::from([(name, HeaderValue::from_static("x"))]);
        assert!(headers(None, None, None, own(SESSION)).is_err());
        let set = headers(Some("s"), None, None, own(ALLOW)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((set[SESSION].as_bytes(), &set[ACCEPT]), (&b"s"[..], &BOTH));
        assert!(headers(Some("s\n"), None, None, Headers::new()).is_err());
    }
}
