//! What stands behind agents: an MCP server with a tool, and a model of the protocol of OpenAI that calls it. Both note what they get.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::thread::Running;

/// A running server. It stops when it is dropped.
pub struct Downstream {
    running: Running,
    shared: Arc<Shared>,
}

/// A request as it came in.
#[derive(Debug, Clone, Default)]
pub struct Noted {
    /// The method of the protocol, `DELETE`, or `model`.
    pub method: String,
    pub authorization: String,
    pub traceparent: String,
    /// The body.
    pub body: Value,
}

#[derive(Default)]
struct Shared {
    noted: Mutex<Vec<Noted>>,
    /// Calls of `hold` end when this becomes true.
    released: watch::Sender<bool>,
}

const SESSION: &str = "mcp-session-id";

impl Downstream {
    /// Starts on a free port of the loopback interface.
    pub fn start() -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let router = Router::new()
            .route("/mcp", any(serve))
            .route("/v1/chat/completions", post(complete))
            .route("/v1/models", get(models))
            .with_state(Arc::clone(&shared));
        Ok(Self { running: Running::start(|_| router)?, shared })
    }

    /// The address of the MCP server.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.running.address)
    }

    /// The address of the model.
    pub fn model_url(&self) -> String {
        format!("http://{}/v1", self.running.address)
    }

    /// What came in so far.
    pub fn noted(&self) -> Vec<Noted> {
        self.shared.noted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The requests of one method.
    pub fn of(&self, method: &str) -> Vec<Noted> {
        self.noted().into_iter().filter(|noted| noted.method == method).collect()
    }
}

impl Shared {
    fn note(&self, method: &str, headers: &HeaderMap, body: &Value) {
        let header =
            |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).push(Noted {
            method: method.to_owned(),
            authorization: header("authorization"),
            traceparent: header("traceparent"),
            body: body.clone(),
        });
    }
}

async fn serve(State(shared): State<Arc<Shared>>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    if method != Method::POST {
        shared.note(method.as_str(), &headers, &message);
        let is_end = method == Method::DELETE;
        return if is_end { StatusCode::OK } else { StatusCode::METHOD_NOT_ALLOWED }.into_response();
    }
    let called = message["method"].as_str().unwrap_or_default();
    shared.note(called, &headers, &message);
    if message["id"].is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    let answer = |result: Value| Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
    let tool = |name: &str, about: &str| json!({"name": name, "description": about, "inputSchema": {"type": "object"}});
    let tools = json!([tool("tell", "Tells."), tool("hold", "Never answers.")]);
    match (called, message["params"]["name"].as_str()) {
        ("initialize", _) => {
            let server = json!({"name": "downstream", "version": "1"});
            let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server});
            ([(SESSION, "s-1")], answer(hello)).into_response()
        }
        ("tools/list", _) => answer(json!({ "tools": tools })).into_response(),
        ("tools/call", Some("hold")) => {
            // The sender lives as long as the server.
            let _ = shared.released.subscribe().wait_for(|released| *released).await;
            answer(json!({})).into_response()
        }
        ("tools/call", _) => answer(json!({"content": [{"type": "text", "text": "told"}]})).into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "unknown method"});
            Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error})).into_response()
        }
    }
}

/// The models that there are: one.
async fn models() -> Json<Value> {
    Json(json!({"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "tests"}]}))
}

/// Calls the first tool that it is offered, and then answers.
async fn complete(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    shared.note("model", &headers, &request);
    let has_called = request["messages"].as_array().into_iter().flatten().any(|message| message["role"] == "tool");
    let tool = request["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|tool| tool["function"]["name"].as_str().is_some_and(|name| name.ends_with("tell")));
    let (message, reason) = match tool.filter(|_| !has_called) {
        Some(tool) => {
            let function = json!({"name": tool["function"]["name"], "arguments": "{}"});
            let call = json!({"id": "call_1", "type": "function", "function": function});
            (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
        }
        None => (json!({"role": "assistant", "content": "said"}), "stop"),
    };
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    let choice = json!({"index": 0, "message": message, "finish_reason": reason});
    let model = &request["model"];
    let answer = json!({
        "id": "c-1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": usage,
    });
    Json(answer).into_response()
}
