//! A provider that speaks OpenAI's chat completions and embeddings on this machine, for tests. It answers what the test says, in pieces or as one
//! value, can stop in the middle of an answer, and records requests.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::thread::Running;

/// What the server answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The members `delta` of the chunks, such as `{"content": "Hel"}`.
    pub deltas: Vec<Value>,
    /// Why the model stopped: `stop`, `tool_calls`, `length`.
    pub finish: &'static str,
    /// A stream waits after so many chunks until [`Chats::release`] is called. An answer that is no stream waits before it begins.
    pub held_after: Option<usize>,
    /// An error with a status instead of an answer.
    pub error: Option<u16>,
}

impl Said {
    /// A text, word by word.
    pub fn text(text: &str) -> Self {
        let deltas = text.split_inclusive(' ').map(|word| json!({"content": word})).collect();
        Self { deltas, finish: "stop", held_after: None, error: None }
    }

    /// A tool call.
    pub fn call(id: &str, name: &str, arguments: &str) -> Self {
        let begin = json!({"tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]});
        let rest = json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]});
        Self { deltas: vec![begin, rest], finish: "tool_calls", held_after: None, error: None }
    }

    /// The same, held after some chunks.
    #[must_use]
    pub fn held(self, after: usize) -> Self {
        Self { held_after: Some(after), ..self }
    }

    /// An error.
    pub fn error(status: u16) -> Self {
        Self { error: Some(status), ..Self::text("") }
    }
}

type Answer = dyn Fn(&Value, usize) -> Said + Send + Sync;

/// A running server. It stops when it is dropped.
pub struct Chats {
    running: Running,
    shared: Arc<Shared>,
}

struct Shared {
    answer: Box<Answer>,
    arrived: Mutex<Vec<Value>>,
    released: watch::Sender<bool>,
}

impl Chats {
    /// Starts a server. `answer` gets the request and its number from 0.
    pub fn start(answer: impl Fn(&Value, usize) -> Said + Send + Sync + 'static) -> io::Result<Self> {
        let released = watch::Sender::new(false);
        let shared = Arc::new(Shared { answer: Box::new(answer), arrived: Mutex::default(), released });
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/v1/embeddings", post(embed))
            .with_state(Arc::clone(&shared));
        Ok(Self { running: Running::start(|_| router)?, shared })
    }

    /// The address of the API.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.running.address)
    }

    /// The bodies of the chats so far, in the order in which they arrived.
    pub fn arrived(&self) -> Vec<Value> {
        self.shared.arrived().clone()
    }

    /// Goes on with what is held, now and from now on.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }
}

impl Shared {
    fn arrived(&self) -> MutexGuard<'_, Vec<Value>> {
        // Each change is complete while the lock is held.
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn wait(shared: &Shared) {
    // The sender lives as long as the server.
    let _ = shared.released.subscribe().wait_for(|released| *released).await;
}

fn refused(status: StatusCode, text: &str) -> Response {
    let body = json!({"error": {"message": text, "type": "invalid_request_error", "param": null, "code": null}});
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

async fn complete(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return refused(StatusCode::BAD_REQUEST, "no JSON");
    };
    let number = {
        let mut arrived = shared.arrived();
        arrived.push(request.clone());
        arrived.len() - 1
    };
    let said = (shared.answer)(&request, number);
    if let Some(status) = said.error {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        return refused(status, "the server was asked to refuse it");
    }
    if request["stream"] == true {
        return streamed(shared, &request, &said);
    }
    if said.held_after.is_some() {
        wait(&shared).await;
    }
    let mut message = json!({"role": "assistant", "content": null});
    for delta in &said.deltas {
        if let Some(text) = delta["content"].as_str() {
            let before = message["content"].as_str().unwrap_or_default();
            message["content"] = json!(format!("{before}{text}"));
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            match message["tool_calls"].get_mut(0) {
                Some(begun) => begun["function"]["arguments"] = call["function"]["arguments"].clone(),
                None => message["tool_calls"] = json!([call]),
            }
        }
    }
    let answer = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": said.finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    });
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}

fn streamed(shared: Arc<Shared>, request: &Value, said: &Said) -> Response {
    let model = request["model"].clone();
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices, "usage": usage,
        });
        format!("data: {chunk}\n\n")
    };
    let mut frames: Vec<String> = said
        .deltas
        .iter()
        .map(|delta| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null))
        .collect();
    frames.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": said.finish}]), Value::Null));
    frames.push(chunk(json!([]), json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})));
    frames.push("data: [DONE]\n\n".to_owned());
    let rest = stream::unfold((frames.into_iter(), 0, said.held_after, shared), |state| async move {
        let (mut frames, sent, held, shared) = state;
        if held == Some(sent) {
            wait(&shared).await;
        }
        let frame = frames.next()?;
        Some((Ok::<_, Infallible>(frame), (frames, sent + 1, held, shared)))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(rest)).into_response()
}

/// Vectors of two numbers: the length of the text, and 1.
async fn embed(body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return refused(StatusCode::BAD_REQUEST, "no JSON");
    };
    let texts = match &request["input"] {
        Value::Array(texts) => texts.clone(),
        one => vec![one.clone()],
    };
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": [text.as_str().unwrap_or_default().len(), 1.0]}))
        .collect();
    let answer = json!({
        "object": "list", "data": data, "model": request["model"], "usage": {"prompt_tokens": 4, "total_tokens": 4},
    });
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}
