//! A provider of models on this machine, for tests. It speaks the messages protocol of Anthropic, is strict about requests,
//! answers what the test says, and records what it was asked. It runs on a thread of its own, so that tests without an async
//! runtime can use it.

pub mod chats;
pub mod downstream;
pub mod guarded;
pub mod issuer;
pub mod people;
pub mod searches;
mod stream;
mod thread;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::thread::Running;

/// What the server answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A message: its blocks, and the tokens of the request and of the answer.
    Message { content: Vec<Value>, tokens: [u64; 2] },
    /// An error with a status and a text.
    Error { status: u16, text: String },
    /// Nothing: the request waits until its client gives up.
    Never,
    /// Another answer, once [`Server::release`] is called.
    Held(Box<Reply>),
    /// Another answer after a while.
    After(Duration, Box<Reply>),
}

impl Reply {
    /// An answer that is one text.
    pub fn text(text: &str) -> Self {
        Self::Message { content: vec![json!({"type": "text", "text": text})], tokens: [10, 5] }
    }

    /// An answer that calls one tool.
    pub fn call(id: &str, name: &str, input: &Value) -> Self {
        Self::Message {
            content: vec![json!({"type": "tool_use", "id": id, "name": name, "input": input})],
            tokens: [10, 5],
        }
    }
}

/// Answers a request, which has a number from 0.
type Answer = dyn Fn(&Value, usize) -> Reply + Send + Sync;

/// A running server. It stops when it is dropped.
pub struct Server {
    running: Running,
    shared: Arc<Shared>,
}

/// Whether the key or the token of a request counts.
type Accepts = dyn Fn(&str) -> bool + Send + Sync;

struct Shared {
    answer: Box<Answer>,
    accepts: Box<Accepts>,
    requests: Mutex<Requests>,
    released: watch::Sender<bool>,
}

#[derive(Default)]
struct Requests {
    arrived: Vec<Value>,
    answered: Vec<Value>,
    keys: Vec<String>,
    in_flight: usize,
    most: usize,
}

/// A request under way. It also ends when its client gives up.
struct InFlight(Arc<Shared>);

impl InFlight {
    fn begin(shared: &Arc<Shared>) -> Self {
        let mut requests = shared.requests();
        requests.in_flight += 1;
        requests.most = requests.most.max(requests.in_flight);
        Self(Arc::clone(shared))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.requests().in_flight -= 1;
    }
}

impl Server {
    /// Starts a server on a free port of the loopback interface.
    pub fn start(answer: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static) -> io::Result<Self> {
        Self::guarded(answer, |_| true)
    }

    /// Starts a server that refuses keys and tokens for which `accepts` is false, and repeats them in its error.
    pub fn guarded(
        answer: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static,
        accepts: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::started(SocketAddr::from(([127, 0, 0, 1], 0)), answer, accepts)
    }

    /// Starts a server on a given address, for example that of one that was dropped.
    pub fn start_on(
        address: SocketAddr,
        answer: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::started(address, answer, |_| true)
    }

    fn started(
        address: SocketAddr,
        answer: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static,
        accepts: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            accepts: Box::new(accepts),
            requests: Mutex::default(),
            released: watch::Sender::new(false),
        });
        let router = Router::new()
            .route("/v1/messages", post(messages))
            .route("/v1/models/{model}", get(model))
            .with_state(Arc::clone(&shared));
        let running = Running::start_on(address, |_| router)?;
        Ok(Self { running, shared })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.running.address
    }

    /// The address for `ANTHROPIC_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.running.address)
    }

    /// The bodies of all requests so far, in the order in which they arrived.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.requests().arrived.clone()
    }

    /// The keys of all requests so far, as their headers had them.
    pub fn keys(&self) -> Vec<String> {
        self.shared.requests().keys.clone()
    }

    /// The bodies of the requests that were answered.
    pub fn answered(&self) -> Vec<Value> {
        self.shared.requests().answered.clone()
    }

    /// The most requests that were under way at the same time.
    pub fn most_in_flight(&self) -> usize {
        self.shared.requests().most
    }

    /// Answers what is held, now and from now on.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }
}

impl Shared {
    fn requests(&self) -> MutexGuard<'_, Requests> {
        // Each change is complete while the lock is held.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn messages(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let request = match check(&headers, &body) {
        Ok(request) => request,
        Err(text) => return error(StatusCode::BAD_REQUEST, &text),
    };
    let key = key_of(&headers).to_owned();
    if !(shared.accepts)(&key) {
        return error(StatusCode::UNAUTHORIZED, &format!("invalid token: {key}"));
    }
    let number = {
        let mut requests = shared.requests();
        requests.arrived.push(request.clone());
        requests.keys.push(key);
        requests.arrived.len() - 1
    };
    let mut next = (shared.answer)(&request, number);
    let _in_flight = InFlight::begin(&shared);
    let reply = loop {
        next = match next {
            Reply::Held(held) => {
                // The sender lives as long as the server.
                let _ = shared.released.subscribe().wait_for(|released| *released).await;
                *held
            }
            Reply::After(pause, later) => {
                // Nothing ends the wait but its time.
                let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
                *later
            }
            reply => break reply,
        };
    };
    if reply == Reply::Never {
        return std::future::pending().await;
    }
    shared.requests().answered.push(request.clone());
    answer(&request, number, reply)
}

/// What a provider says about a model. It has all but those whose names begin with `unknown`.
async fn model(Path(model): Path<String>, headers: HeaderMap) -> Response {
    if let Err(text) = check_headers(&headers) {
        return error(StatusCode::BAD_REQUEST, &text);
    }
    if model.starts_with("unknown") {
        return error(StatusCode::NOT_FOUND, &format!("model: {model}"));
    }
    let body = json!({"type": "model", "id": model, "display_name": model, "created_at": "2026-01-01T00:00:00Z"});
    ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn answer(request: &Value, number: usize, reply: Reply) -> Response {
    match reply {
        Reply::Error { status, text } => {
            error(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &text)
        }
        Reply::Message { content, tokens } => {
            let message = message(request, number, &content, tokens);
            if request["stream"] == true {
                return ([(header::CONTENT_TYPE, "text/event-stream")], stream::events(&message)).into_response();
            }
            ([(header::CONTENT_TYPE, "application/json")], message.to_string()).into_response()
        }
        // These are handled before.
        Reply::Never | Reply::Held(_) | Reply::After(..) => error(StatusCode::INTERNAL_SERVER_ERROR, "no answer"),
    }
}

/// The key or the token of a request.
fn key_of(headers: &HeaderMap) -> &str {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match header("x-api-key") {
        "" => header("authorization").strip_prefix("Bearer ").unwrap_or_default(),
        key => key,
    }
}

/// What a provider would refuse.
fn check_headers(headers: &HeaderMap) -> Result<(), String> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if key_of(headers).is_empty() {
        return Err("x-api-key: the header is missing".to_owned());
    }
    if headers.contains_key("x-api-key") && headers.contains_key("authorization") {
        return Err("x-api-key: there is a token as well".to_owned());
    }
    if header("anthropic-version") != "2023-06-01" {
        return Err("anthropic-version: the header is missing".to_owned());
    }
    Ok(())
}

fn check(headers: &HeaderMap, body: &[u8]) -> Result<Value, String> {
    check_headers(headers)?;
    let request: Value = serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
    for (member, is_valid) in [
        ("model", request["model"].is_string()),
        ("max_tokens", request["max_tokens"].as_u64().is_some_and(|tokens| tokens > 0)),
        ("messages", request["messages"].as_array().is_some_and(|messages| !messages.is_empty())),
    ] {
        if !is_valid {
            return Err(format!("{member}: field required"));
        }
    }
    unanswered(&request["messages"])?;
    Ok(request)
}

/// Every tool call needs a result in the next message.
fn unanswered(messages: &Value) -> Result<(), String> {
    let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let ids = |message: &Value, kind: &str, member: &str| -> Vec<Value> {
        let blocks = message["content"].as_array().into_iter().flatten();
        blocks.filter(|block| block["type"] == kind).map(|block| block[member].clone()).collect()
    };
    for pair in messages.windows(2) {
        let (calls, results) = (ids(&pair[0], "tool_use", "id"), ids(&pair[1], "tool_result", "tool_use_id"));
        if calls != results {
            return Err(format!("messages: the calls {calls:?} have the results {results:?}"));
        }
    }
    Ok(())
}

fn error(status: StatusCode, text: &str) -> Response {
    let kind = match status.as_u16() {
        401 => "authentication_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    };
    let body = json!({"type": "error", "error": {"type": kind, "message": text}});
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn message(request: &Value, number: usize, content: &[Value], [input, output]: [u64; 2]) -> Value {
    let calls = content.iter().any(|block| block["type"] == "tool_use");
    json!({
        "id": format!("msg_{number}"),
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": if calls { "tool_use" } else { "end_turn" },
        "stop_sequence": null,
        "usage": {"input_tokens": input, "output_tokens": output},
    })
}
