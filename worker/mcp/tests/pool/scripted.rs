//! A server over HTTP whose answers a test writes itself.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atlas_env::{Env, Task};
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use serde_json::{Value, json};

/// What a server answers to a request; none for the usual answer.
pub(crate) type Script = dyn Fn(&str, &Value) -> Option<Response> + Send + Sync;

/// What tests look at and change.
#[derive(Default)]
pub(crate) struct Seen {
    /// Methods of requests, in order.
    pub(crate) heard: Vec<String>,
    /// The sessions that the server knows.
    pub(crate) sessions: BTreeSet<String>,
    /// What the server answers to a session that it does not know.
    pub(crate) forgotten: Option<fn() -> Response>,
    /// The description of the tool.
    pub(crate) description: String,
    opened: u32,
}

/// A running server. It ends with the value.
pub(crate) struct Scripted {
    pub(crate) url: String,
    seen: Arc<Mutex<Seen>>,
    serving: Task<std::io::Result<()>>,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Scripted {
    /// A server that opens sessions.
    pub(crate) async fn start(script: impl Fn(&str, &Value) -> Option<Response> + Send + Sync + 'static) -> Self {
        Self::begin(true, script).await
    }

    pub(crate) async fn begin(
        in_sessions: bool,
        script: impl Fn(&str, &Value) -> Option<Response> + Send + Sync + 'static,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let seen = Arc::<Mutex<Seen>>::default();
        let (shared, script): (_, Arc<Script>) = (Arc::clone(&seen), Arc::new(script));
        let answer = move |method: Method, headers: HeaderMap, body: Bytes| {
            let response = answer(&mut lock(&shared), in_sessions, &*script, (&method, &headers, &body));
            async { response }
        };
        let router = Router::new().route("/mcp", any(answer));
        let serving = Env::system().spawn("test server", async move { axum::serve(listener, router).await });
        Self { url, seen, serving }
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }

    /// How often a request was heard.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.seen().heard.iter().filter(|heard| *heard == method).count()
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(
    seen: &mut Seen,
    in_sessions: bool,
    script: &Script,
    (method, headers, body): (&Method, &HeaderMap, &Bytes),
) -> Response {
    if *method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let asked = message["method"].as_str().unwrap_or_default();
    seen.heard.push(asked.to_owned());
    let session = headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
    if let Some(session) = session.filter(|session| !seen.sessions.contains(*session)) {
        return seen.forgotten.map_or_else(|| (StatusCode::NOT_FOUND, session.to_owned()).into_response(), |say| say());
    }
    if let Some(response) = script(asked, &message) {
        return response;
    }
    let description = &seen.description;
    let result = match asked {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}
        }),
        "tools/list" => {
            json!({"tools": [{"name": "add", "description": description, "inputSchema": {"type": "object"}}]})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let mut response = result_of(&message, &result);
    if asked == "initialize" && in_sessions {
        seen.opened += 1;
        let session = format!("session-{}", seen.opened);
        response.headers_mut().insert("mcp-session-id", session.parse().expect("a header"));
        seen.sessions.insert(session);
    }
    response
}

/// The answer with a result.
pub(crate) fn result_of(message: &Value, result: &Value) -> Response {
    document(StatusCode::OK, &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

pub(crate) fn document(status: StatusCode, value: &Value) -> Response {
    (status, [("content-type", "application/json")], value.to_string()).into_response()
}

/// A stream of events.
pub(crate) fn events(text: String) -> Response {
    ([("content-type", "text/event-stream")], text).into_response()
}
