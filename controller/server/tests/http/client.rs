//! A controller in a temporary directory and a client that can also misbehave.

use std::net::SocketAddr;
use std::time::Duration;

use atlas_controller::{Controller, Options};
use atlas_env::Env;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::declared;

/// No test waits longer for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// After this a server gives a request up that never ends: short, since tests wait for it, and long enough for a busy client.
const HALF_SENT_MAX: Duration = Duration::from_secs(5);

pub(crate) struct Server {
    pub(crate) controller: Controller,
    pub(crate) dir: tempfile::TempDir,
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().filter_map(|line| line.split_once(": ")).find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_in(tempfile::tempdir().expect("a temporary directory")).await
    }

    pub(crate) async fn start_in(dir: tempfile::TempDir) -> Self {
        Self::start_with(dir, |_| {}).await
    }

    pub(crate) async fn start_with(dir: tempfile::TempDir, set: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options::new(dir.path().to_owned());
        options.http.set_port(0);
        options.grpc.set_port(0);
        options.http_limits.header_timeout = HALF_SENT_MAX;
        options.http_limits.body_timeout = HALF_SENT_MAX;
        set(&mut options);
        let controller = Controller::start(options, Env::system()).await.expect("the controller starts");
        Self { controller, dir }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.controller.http_addr()
    }

    /// Sends bytes as they are and reads what comes until the server closes.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.addr()).await.expect("connects");
        // A server that refuses early may close before all is written.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an end in time").ok();
        answer
    }

    pub(crate) async fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Reply {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
            body.len()
        );
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        let reply = parse(&self.raw(&request).await);
        declared::check(method, path, &reply);
        reply
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, "", b"").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Reply {
        self.send("POST", path, "content-type: text/plain\r\n", body.as_bytes()).await
    }

    /// Submits a job and returns its id.
    pub(crate) async fn submit(&self, body: &str) -> String {
        let reply = self.post("/api/jobs", body).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["id"].as_str().expect("an id").to_owned()
    }

    /// Registers an agent from the text of its contract.
    pub(crate) async fn register(&self, contract: &str) {
        let reply = self.upload("/api/agents", contract).await;
        assert_eq!(reply.status, 201, "{reply:?}");
    }

    /// Sends the package of a contract.
    pub(crate) async fn upload(&self, path: &str, contract: &str) -> Reply {
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(dir.path().join("agent.yaml"), contract).expect("writable");
        std::fs::write(dir.path().join("agent.py"), "").expect("writable");
        let package = atlas_package::pack(dir.path()).expect("packs");
        self.send("POST", path, "", &package.bytes).await
    }
}

/// Reads an answer with a length or in chunks.
pub(crate) fn parse(answer: &[u8]) -> Reply {
    let text = String::from_utf8_lossy(answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let chunked = head.contains("transfer-encoding: chunked");
    let body = if chunked { unchunked(body) } else { body.to_owned() };
    Reply { status, head: head.to_owned(), body }
}

fn unchunked(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || rest.len() < size {
            break;
        }
        out.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    out
}
