//! The older transport: `GET /sse` is the stream of answers, `POST /messages/` takes requests.

use std::convert::Infallible;

use atlas_service::Caller;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::Value;

use super::http::{too_many, words};
use super::message::{self, Message};
use super::sessions::Found;
use super::{Compatible, GatewayResponse};
use crate::owners::Owner;

impl Compatible {
    /// Opens a session whose first event says where requests go.
    pub(super) fn open_events(&self, caller: &Caller) -> GatewayResponse {
        let Some((id, messages)) = self.sessions.open_stream(Owner::new(caller, None)) else { return too_many() };
        let first = event("endpoint", &format!("/messages/?session_id={id}"));
        let stream = futures::stream::unfold((Some(first), messages), |(first, mut messages)| async move {
            let text = match first {
                Some(first) => first,
                None => event("message", &messages.recv().await?.to_string()),
            };
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from(text))), (None, messages)))
        });
        let mut response = Response::new(StreamBody::new(stream).boxed_unsync());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// Takes a request; its answer goes to the stream of the session.
    pub(super) fn take_message(&self, caller: Caller, query: Option<&str>, body: &[u8]) -> GatewayResponse {
        let id = query.unwrap_or_default().split('&').find_map(|part| part.strip_prefix("session_id="));
        let Some(id) = id else { return words(StatusCode::BAD_REQUEST, "session_id is required") };
        let Found::Known(Some(stream)) = self.sessions.find(id, &Owner::new(&caller, None)) else {
            return words(StatusCode::NOT_FOUND, "Could not find session");
        };
        let session = id.to_owned();
        match message::read(body) {
            Ok(Message::Cancelled { request }) => {
                self.calls.cancel(&session, &request);
                words(StatusCode::ACCEPTED, "Accepted")
            }
            Err(_) => words(StatusCode::BAD_REQUEST, "Could not parse message"),
            Ok(Message::Other) => words(StatusCode::ACCEPTED, "Accepted"),
            Ok(Message::Request { id, method, params }) => {
                let server = self.clone();
                // Known before the client reads that its request was accepted: a cancellation may come at once.
                let running = self.calls.begin(&session, &id);
                self.env.spawn("mcp-message", async move {
                    let answer: Value = server.answer_to(&caller, (&id, running), &method, &params).await;
                    // The client may be gone.
                    let _ = stream.send(answer).await;
                });
                words(StatusCode::ACCEPTED, "Accepted")
            }
        }
    }
}

fn event(name: &str, data: &str) -> String {
    format!("event: {name}\r\ndata: {data}\r\n\r\n")
}
