//! Messages of the Model Context Protocol over HTTP, as `atlasctl mcp` sends them.

use std::sync::atomic::Ordering;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::request::Request;
use super::{Client, aim};
use crate::failure::Failure;
use crate::sse::Reader;

/// The header with the id of a session.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The answer to a message: its status, and the messages in it.
pub(crate) struct McpAnswer {
    pub(crate) status: StatusCode,
    /// The session that the server opened.
    pub(crate) session: Option<String>,
    messages: Messages,
}

enum Messages {
    Stream { client: Box<Client>, pieces: Incoming, reader: Reader, ready: Vec<String> },
    One(Option<String>),
}

impl Client {
    /// Sends one message, or with `GET` opens the stream of the server's own messages. A controller that cannot be reached is passed
    /// over for the next one. An answer of any status is returned.
    pub(crate) async fn mcp(
        &self,
        method: Method,
        headers: &[(&'static str, String)],
        body: Option<String>,
    ) -> Result<McpAnswer, Failure> {
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        let mut request = self.request(method, &["mcp"])?.header(ACCEPT, accept);
        if let Some(body) = body {
            request = request.content("application/json", body.into());
        }
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                request = request.header(HeaderName::from_static(name), value);
            }
        }
        let response = self.execute(request).await?;
        let header = |name: &HeaderName| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        let (status, session) = (response.status(), header(&SESSION));
        let is_stream = header(&CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/event-stream"));
        let messages = if is_stream {
            let (client, pieces) = (Box::new(self.clone()), response.into_body());
            Messages::Stream { client, pieces, reader: Reader::default(), ready: Vec::new() }
        } else {
            let body = self.body(response).await?;
            Messages::One(Some(String::from_utf8_lossy(&body).trim().to_owned()).filter(|text| !text.is_empty()))
        };
        Ok(McpAnswer { status, session, messages })
    }

    /// Sends a request to the controller that answered last; if none can be reached there, to the others in turn. A request that may
    /// have arrived is not sent again.
    async fn execute(&self, request: Request) -> Result<Response<Incoming>, Failure> {
        let request = self.with_renewed_token(request).await?;
        let first = self.current.load(Ordering::Relaxed);
        let mut refused = None;
        for step in 0..self.servers.len() {
            let place = (first + step) % self.servers.len();
            let mut again = request.clone();
            aim(&mut again.url, &self.servers[place]);
            match self.transport.execute(&again, &None).await {
                Ok(response) => {
                    self.current.store(place, Ordering::Relaxed);
                    return Ok(response);
                }
                Err(error) if error.is_connect() => refused = Some(self.unreachable(&error)),
                Err(error) => return Err(self.unreachable(&error)),
            }
        }
        Err(refused.unwrap_or_else(|| Failure::usage("the request cannot be repeated")))
    }
}

impl McpAnswer {
    /// The next message; none at the end of the answer.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, Failure> {
        match &mut self.messages {
            Messages::One(message) => Ok(message.take()),
            Messages::Stream { client, pieces, reader, ready } => loop {
                if !ready.is_empty() {
                    return Ok(Some(ready.remove(0)));
                }
                let Some(frame) = pieces.frame().await else { return Ok(None) };
                if let Ok(piece) = frame.map_err(|error| client.unreachable(&error))?.into_data() {
                    // The server opens its streams with an empty event.
                    let events = reader.push(&piece)?.into_iter().map(|event| event.data);
                    ready.extend(events.filter(|data| !data.trim().is_empty()));
                }
            },
        }
    }
}
