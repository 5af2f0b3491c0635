//! The older transport: one event stream from the server, and an address for messages to it that the stream names first.

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use ::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use atlas_env::{Env, Task};
use atlas_http::body::beginning;
use atlas_http::sse::{Parser, ServerEvent};
use bytes::Bytes;
use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use url::Url;

use crate::bounds::{ERROR_BYTES_MAX, MESSAGE_BYTES_MAX};
use crate::error::{McpError, McpErrorKind, chain};
use crate::network::{self, Caller, Network};
use crate::reading;
use crate::target::Target;
use crate::waiting::Waiting;
use crate::words::words;

/// How long the server may take to name the address for messages.
const ENDPOINT_MAX: Duration = Duration::from_secs(30);
/// Messages that wait for this side.
const QUEUE_MAX: usize = 64;

/// A message could not be sent.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SendError(String);

/// An open event stream.
pub(crate) struct SseTransport {
    post: Arc<Post>,
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    waiting: Arc<Waiting>,
    reader: Task<()>,
}

/// Where messages go.
struct Post {
    caller: Caller,
    url: Url,
    headers: HeaderMap,
}

/// Opens the event stream, and waits for the address.
pub(crate) async fn connect(env: &Env, network: &Network, target: &Target) -> Result<SseTransport, McpError> {
    let failed = |why: String| {
        let text = format!("the MCP server {} cannot be reached: {why}", target.name);
        McpError::new(McpErrorKind::Unreachable, text)
    };
    let caller = network.caller(env, target)?;
    let headers: HeaderMap = target.headers.iter().cloned().collect();
    let mut asking = headers.clone();
    asking.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let opening = caller.send(Method::GET, caller.url(), asking, Bytes::new());
    let response = opening.await.map_err(|error| failed(chain(&error)))?;
    if response.status() == StatusCode::UNAUTHORIZED {
        let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        return Err(McpError::unauthorized(&target.name, challenge.unwrap_or_default()));
    }
    if !response.status().is_success() {
        let status = response.status().as_u16();
        let words = words(&beginning(&mut response.into_body(), ERROR_BYTES_MAX, None).await);
        return Err(failed(network::SendError::Status { status, words }.to_string()));
    }
    let base = caller.url().clone();
    let (events, mut endpoints, messages) = channels();
    let waiting = Arc::new(Waiting::default());
    let reader = env.spawn("mcp-sse", read(response, events, Arc::clone(&waiting)));
    let named = tokio::select! {
        named = endpoints.recv() => named,
        () = env.clock.sleep(ENDPOINT_MAX) => None,
    };
    let Some(endpoint) = named else {
        reader.abort();
        return Err(failed("its event stream does not begin with the address for messages".to_owned()));
    };
    let url = base.join(&endpoint).map_err(|error| failed(format!("its address for messages is wrong: {error}")))?;
    if url.origin() != base.origin() {
        reader.abort();
        return Err(failed("its address for messages is on another host, which is not used".to_owned()));
    }
    Ok(SseTransport { post: Arc::new(Post { caller, url, headers }), messages, waiting, reader })
}

/// What comes out of the stream.
struct Events {
    endpoints: mpsc::Sender<String>,
    messages: mpsc::Sender<ServerJsonRpcMessage>,
}

fn channels() -> (Events, mpsc::Receiver<String>, mpsc::Receiver<ServerJsonRpcMessage>) {
    let (endpoints, named) = mpsc::channel(1);
    let (messages, received) = mpsc::channel(QUEUE_MAX);
    (Events { endpoints, messages }, named, received)
}

/// Reads the stream until it ends or an event is too large. Events of other names, and those that cannot be read, are skipped.
async fn read(response: Response<Incoming>, events: Events, waiting: Arc<Waiting>) {
    let (mut pieces, mut parser) = (response.into_body().into_data_stream(), Parser::new(MESSAGE_BYTES_MAX));
    while let Some(Ok(piece)) = pieces.next().await {
        let mut found: Vec<ServerEvent> = Vec::new();
        let fits = parser.push(&piece, &mut found).is_ok();
        for event in found {
            match event.name.as_str() {
                // Only the first one counts.
                "endpoint" => _ = events.endpoints.try_send(event.data),
                "" | "message" => {
                    for message in reading::messages(event.data.as_bytes(), &|id| waiting.whose(id)) {
                        if events.messages.send(message).await.is_err() {
                            return;
                        }
                    }
                }
                other => tracing::debug!(event = other, "an event of an MCP server is skipped"),
            }
        }
        if !fits {
            return;
        }
    }
}

impl Post {
    async fn send(&self, item: &ClientJsonRpcMessage) -> Result<(), SendError> {
        let Self { caller, url, headers } = self;
        let failed = |error: &dyn std::error::Error| SendError(atlas_env::chain(error));
        let message = serde_json::to_vec(item).map_err(|error| failed(&error))?;
        let mut headers = headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let sent = caller.send(Method::POST, url, headers, Bytes::from(message)).await;
        let response = sent.map_err(|error| failed(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let words = words(&beginning(&mut response.into_body(), ERROR_BYTES_MAX, None).await);
        Err(failed(&network::SendError::Status { status: status.as_u16(), words }))
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = SendError;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (post, waiting) = (Arc::clone(&self.post), Arc::clone(&self.waiting));
        waiting.sent(&item);
        async move {
            let sent = post.send(&item).await;
            if sent.is_err() {
                waiting.failed(&item);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.reader.abort();
        Ok(())
    }
}

impl Drop for SseTransport {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
