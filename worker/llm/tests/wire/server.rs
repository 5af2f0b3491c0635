//! A server that checks each request and gives prepared replies, good and bad ones.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atlas_env::Env;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use futures::{StreamExt, stream};
use serde_json::Value;

use crate::machine::wait;
use crate::network::Memory;

/// What is wrong with a request, or nothing.
pub(crate) type Check = fn(&Seen) -> Result<(), String>;

/// A request that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// Null if it is no JSON.
    pub(crate) body: Value,
    pub(crate) bytes: Bytes,
}

/// A prepared reply.
#[derive(Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    /// Time before the head of the reply.
    delay: Duration,
    pieces: Vec<Piece>,
    /// Sent again and again once the pieces are through.
    endless: Option<(Bytes, Duration)>,
}

#[derive(Clone)]
enum Piece {
    Bytes(Bytes),
    Wait(Duration),
    /// The connection ends.
    Break,
}

impl Reply {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        let pieces = vec![Piece::Bytes(body.into())];
        Self { status, headers, delay: Duration::ZERO, pieces, endless: None }
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// Server-sent events.
    pub(crate) fn events(data: &[Value]) -> Self {
        let text: String = data.iter().map(|value| format!("data: {value}\n\n")).collect();
        Self::new(200, "text/event-stream", text)
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    pub(crate) fn wait(mut self, time: Duration) -> Self {
        self.pieces.push(Piece::Wait(time));
        self
    }

    pub(crate) fn then(mut self, bytes: impl Into<Bytes>) -> Self {
        self.pieces.push(Piece::Bytes(bytes.into()));
        self
    }

    pub(crate) fn cut(mut self) -> Self {
        // What came before arrives first.
        self.pieces.extend([Piece::Wait(Duration::from_millis(1)), Piece::Break]);
        self
    }

    pub(crate) fn endless(mut self, bytes: impl Into<Bytes>, each: Duration) -> Self {
        self.endless = Some((bytes.into(), each));
        self
    }

    fn response(self, sent: Arc<AtomicUsize>) -> Response {
        let more = self.endless.map(|(bytes, each)| {
            stream::repeat([Piece::Wait(each), Piece::Bytes(bytes)]).flat_map(stream::iter).boxed()
        });
        let pieces = stream::iter(self.pieces).chain(more.unwrap_or_else(|| stream::empty().boxed()));
        let body = pieces.filter_map(move |piece| {
            let sent = Arc::clone(&sent);
            async move {
                match piece {
                    Piece::Bytes(bytes) => {
                        sent.fetch_add(1, Ordering::Relaxed);
                        Some(Ok(bytes))
                    }
                    Piece::Wait(time) => {
                        wait(time).await;
                        None
                    }
                    Piece::Break => Some(Err(io::Error::other("cut"))),
                }
            }
        });
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        response.body(Body::from_stream(body)).expect("a response")
    }
}

/// The server. It answers requests that its check refuses with 400 and the problem.
#[derive(Clone)]
pub(crate) struct Server {
    check: Check,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    sent: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn new(check: Check, replies: Vec<Reply>) -> Self {
        Self { check, replies: Arc::new(Mutex::new(replies.into())), seen: Arc::default(), sent: Arc::default() }
    }

    pub(crate) fn start(env: &Env, network: &Memory, authority: &str, check: Check, replies: Vec<Reply>) -> Self {
        let server = Self::new(check, replies);
        let router = Router::new().fallback(reply).with_state(server.clone());
        let arrivals = network.serve(authority);
        env.spawn("test server", async move { axum::serve(arrivals, router).await.expect("serves") });
        server
    }

    /// The same server on a socket of this machine; the result is its address.
    pub(crate) async fn on_socket(self, env: &Env) -> String {
        let listener = env.net.listen(([127, 0, 0, 1], 0).into()).await.expect("a socket");
        let address = listener.local_addr().expect("an address").to_string();
        let router = Router::new().fallback(reply).with_state(self);
        let socket = Socket(listener);
        env.spawn("test server", async move { axum::serve(socket, router).await.expect("serves") });
        address
    }

    /// The requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("a lock").clone()
    }

    /// The pieces that were sent so far.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    /// How many replies are left.
    pub(crate) fn left(&self) -> usize {
        self.replies.lock().expect("a lock").len()
    }
}

struct Socket(Box<dyn atlas_env::Listener>);

impl axum::serve::Listener for Socket {
    type Io = atlas_env::Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        let connection = self.0.accept().await.expect("a connection");
        let peer = connection.peer();
        (connection, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

async fn reply(State(server): State<Server>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let (bytes, body) = (body.clone(), serde_json::from_slice(&body).unwrap_or(Value::Null));
    let seen = Seen { method, uri, headers, body, bytes };
    server.seen.lock().expect("a lock").push(seen.clone());
    if let Err(problem) = (server.check)(&seen) {
        let error =
            serde_json::json!({"error": {"message": format!("strict: {problem}"), "type": "invalid_request_error"}});
        return Reply::json(400, &error).response(server.sent);
    }
    let next = server.replies.lock().expect("a lock").pop_front();
    match next {
        Some(reply) => {
            wait(reply.delay).await;
            reply.response(server.sent)
        }
        None => Reply::new(StatusCode::IM_A_TEAPOT.as_u16(), "text/plain", "no reply is left").response(server.sent),
    }
}
