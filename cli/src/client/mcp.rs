//! Messages of the Model Context Protocol over HTTP, as `atlasctl mcp` sends them.

use std::sync::atomic::Ordering;

use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode};

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
    Stream { pieces: BoxStream<'static, Result<Vec<u8>, Failure>>, reader: Reader, ready: Vec<String> },
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
        let accept = "application/json, text/event-stream";
        let mut request = self.request(method, &["mcp"])?.header("Accept", accept);
        if let Some(body) = body {
            request = request.header("Content-Type", "application/json").body(body);
        }
        let named = headers
            .iter()
            .filter_map(|(name, value)| Some((HeaderName::from_static(name), HeaderValue::from_str(value).ok()?)));
        let response = self.execute(request.headers(named.collect::<HeaderMap>())).await?;
        let header = |name: &HeaderName| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        let (status, session) = (response.status(), header(&SESSION));
        let is_stream =
            header(&reqwest::header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/event-stream"));
        let messages = if is_stream {
            let client = self.clone();
            let pieces = response.bytes_stream().map_ok(|piece| piece.to_vec());
            let pieces = pieces.map_err(move |error| client.unreachable(&error)).boxed();
            Messages::Stream { pieces, reader: Reader::default(), ready: Vec::new() }
        } else {
            let body = self.body(response).await?;
            Messages::One(Some(String::from_utf8_lossy(&body).trim().to_owned()).filter(|text| !text.is_empty()))
        };
        Ok(McpAnswer { status, session, messages })
    }

    /// Sends a request to the controller that answered last; if none can be reached there, to the others in turn. A request that may
    /// have arrived is not sent again.
    async fn execute(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let request = self.with_renewed_token(request.build().map_err(|error| self.unreachable(&error))?).await?;
        let first = self.current.load(Ordering::Relaxed);
        let mut refused = None;
        for step in 0..self.servers.len() {
            let place = (first + step) % self.servers.len();
            let Some(mut again) = request.try_clone() else { break };
            aim(again.url_mut(), &self.servers[place]);
            match self.transport.execute(again).await {
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
            Messages::Stream { pieces, reader, ready } => loop {
                if !ready.is_empty() {
                    return Ok(Some(ready.remove(0)));
                }
                match pieces.next().await {
                    // The server opens its streams with an empty event.
                    Some(piece) => {
                        let frames = reader.push(&piece?)?;
                        ready.extend(frames.into_iter().map(|frame| frame.data).filter(|data| !data.trim().is_empty()));
                    }
                    None => return Ok(None),
                }
            },
        }
    }
}
