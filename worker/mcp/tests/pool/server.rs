//! A server over streamable HTTP and the older transport. It refuses whatever the protocol does not allow, and notes what it was sent.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use atlas_env::Env;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

/// What the server does with a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mood {
    #[default]
    Kind,
    /// Never answers.
    Hangs,
    /// Answers with more than anybody may read.
    Floods,
    /// Ends the connection in the middle of the answer.
    Dies,
    /// Sends the client to another host.
    Redirects,
    /// Refuses every credential.
    Forbids,
    /// Lists more tools than anybody may have.
    Crowds,
    /// Has a stream on which it announces changes.
    Streams,
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) mood: Mood,
    pub(crate) sessions: BTreeSet<String>,
    opened: u32,
    /// `method` of each message, and the name of the tool after it.
    pub(crate) heard: Vec<String>,
    /// The `Authorization` headers of all requests.
    pub(crate) authorizations: BTreeSet<String>,
    /// The description of the tool `add`.
    pub(crate) description: String,
    /// The stream that is open.
    stream: Option<mpsc::UnboundedSender<Result<String, std::io::Error>>>,
}

/// A running server.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    inner: Arc<Mutex<Inner>>,
    heard: Arc<Notify>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        Self::serve(url, listener)
    }

    /// A server that answers at `url`, to whoever comes to `listener`.
    pub(crate) fn serve<L: axum::serve::Listener<Addr: std::fmt::Debug>>(url: String, listener: L) -> Self {
        let server = Self { url, inner: Arc::default(), heard: Arc::default() };
        server.inner().description = "Adds two numbers.".to_owned();
        let router = Router::new().route("/mcp", any(answer)).with_state(server.clone());
        Env::system().spawn("test server", async move { axum::serve(listener, router).await });
        server
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no panic")
    }

    pub(crate) fn mood(&self, mood: Mood) {
        self.inner().mood = mood;
    }

    /// Says that the tools have changed.
    pub(crate) fn announce(&self) {
        let message = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        let inner = self.inner();
        let stream = inner.stream.as_ref().expect("an open stream");
        stream.send(Ok(format!("event: message\ndata: {message}\n\n"))).expect("a reader");
    }

    /// How often a message was heard.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.inner().heard.iter().filter(|heard| *heard == method).count()
    }

    fn hear(&self, message: String) {
        self.inner().heard.push(message);
        self.heard.notify_waiters();
    }

    /// Waits until a message was heard this often.
    pub(crate) async fn hears(&self, method: &str, count: usize) {
        loop {
            let next = self.heard.notified();
            if self.count(method) >= count {
                return;
            }
            next.await;
        }
    }
}

fn refused(status: StatusCode, why: &str) -> Response {
    (status, why.to_owned()).into_response()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn answer(State(server): State<Server>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    if let Some(credential) = header(&headers, "authorization") {
        server.inner().authorizations.insert(credential.to_owned());
    }
    let session = header(&headers, "mcp-session-id").map(str::to_owned);
    match method {
        Method::POST => {}
        Method::DELETE => {
            let ended = session.is_some_and(|session| server.inner().sessions.remove(&session));
            server.hear("DELETE".to_owned());
            return refused(if ended { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }, "");
        }
        Method::GET if server.inner().mood == Mood::Streams => {
            let (sender, receiver) = mpsc::unbounded_channel();
            server.inner().stream = Some(sender);
            server.hear("GET".to_owned());
            let pieces =
                futures::stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)));
            return ([("content-type", "text/event-stream")], Body::from_stream(pieces)).into_response();
        }
        _ => return refused(StatusCode::METHOD_NOT_ALLOWED, "no stream"),
    }
    let accept = header(&headers, "accept").unwrap_or_default();
    if !accept.contains("application/json") || !accept.contains("text/event-stream") {
        return refused(StatusCode::NOT_ACCEPTABLE, "accept both");
    }
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        return refused(StatusCode::BAD_REQUEST, "no JSON");
    };
    let (asked, params, id) = (message["method"].as_str().unwrap_or_default(), &message["params"], &message["id"]);
    let name = params["name"].as_str().map(|name| format!(" {name}")).unwrap_or_default();
    server.hear(format!("{asked}{name}"));
    let mood = server.inner().mood;
    if mood == Mood::Forbids {
        let mut response = refused(StatusCode::UNAUTHORIZED, "who are you?");
        response.headers_mut().insert("www-authenticate", "Bearer".parse().expect("a header"));
        return response;
    }
    if mood == Mood::Redirects {
        let mut response = refused(StatusCode::TEMPORARY_REDIRECT, "");
        response.headers_mut().insert("location", "http://192.0.2.1:9/mcp".parse().expect("a header"));
        return response;
    }
    if asked == "initialize" {
        return initialized(&server, params, id);
    }
    if !session.is_some_and(|session| server.inner().sessions.contains(&session)) {
        return refused(StatusCode::NOT_FOUND, "no such session");
    }
    if id.is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    match (asked, mood) {
        ("tools/list", _) => result(id, &json!({"tools": tools(&server, mood)})),
        ("tools/call", Mood::Hangs) => std::future::pending().await,
        ("tools/call", Mood::Floods) => flood(id),
        ("tools/call", Mood::Dies) => cut(),
        ("tools/call", _) => called(id, params),
        _ => result(id, &json!({})),
    }
}

fn initialized(server: &Server, params: &Value, id: &Value) -> Response {
    let version = params["protocolVersion"].as_str().unwrap_or_default();
    if version != "2025-11-25" || !params["clientInfo"]["name"].is_string() {
        return refused(StatusCode::BAD_REQUEST, "no such version");
    }
    let mut inner = server.inner();
    inner.opened += 1;
    let session = format!("session-{}", inner.opened);
    inner.sessions.insert(session.clone());
    drop(inner);
    let mut response = result(
        id,
        &json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "strict", "version": "1"}
        }),
    );
    response.headers_mut().insert("mcp-session-id", session.parse().expect("a header"));
    response
}

fn tools(server: &Server, mood: Mood) -> Vec<Value> {
    let tool = |name: &str, description: &str| {
        json!({
            "name": name, "description": description,
            "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
        })
    };
    if mood == Mood::Crowds {
        return (0..400).map(|number| tool(&format!("t{number}"), "")).collect();
    }
    vec![tool("add", &server.inner().description), tool("fail", "Fails.")]
}

fn called(id: &Value, params: &Value) -> Response {
    let arguments = &params["arguments"];
    match params["name"].as_str() {
        Some("add") => {
            let sum = arguments["a"].as_f64().unwrap_or_default() + arguments["b"].as_f64().unwrap_or_default();
            let text = sum.to_string();
            result(id, &json!({"content": [{"type": "text", "text": text}], "structuredContent": {"sum": sum}}))
        }
        Some("fail") => result(id, &json!({"content": [{"type": "text", "text": "it failed"}], "isError": true})),
        _ => error(id, -32602, "Unknown tool"),
    }
}

fn result(id: &Value, result: &Value) -> Response {
    json_response(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn error(id: &Value, code: i64, message: &str) -> Response {
    json_response(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

fn json_response(value: &Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}

/// An answer without an end.
fn flood(id: &Value) -> Response {
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
    let pieces = futures::stream::iter(std::iter::once(head).chain(std::iter::repeat_with(|| "x".repeat(64 << 10))));
    let body = Body::from_stream(futures::StreamExt::map(pieces, Ok::<_, std::io::Error>));
    ([("content-type", "application/json")], body).into_response()
}

/// An answer that breaks off.
fn cut() -> Response {
    let pieces = [Ok("{\"jsonrpc\":".to_owned()), Err(std::io::Error::other("cut"))];
    ([("content-type", "application/json")], Body::from_stream(futures::stream::iter(pieces))).into_response()
}
