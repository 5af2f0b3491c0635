//! A controller in a temporary directory, and requests as bytes.

use std::time::Duration;

use atlas_controller::{Controller, Options};
use atlas_env::Env;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// No case waits longer.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    controller: Controller,
    _folder: tempfile::TempDir,
}

/// An answer; its status is 0 if there was none.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) code: Option<String>,
    pub(crate) body: String,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut options = Options::new(folder.path().to_owned());
        options.http.set_port(0);
        options.grpc.set_port(0);
        // What is cut short will be given up soon.
        options.http_limits.header_timeout = Duration::from_millis(200);
        options.http_limits.body_timeout = Duration::from_millis(200);
        let controller = Controller::start(options, Env::system()).await.expect("the controller starts");
        Self { controller, _folder: folder }
    }

    /// Sends bytes as they are and reads until the server closes.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.controller.http_addr()).await.expect("connects");
        // A server that refuses early may close before all is written.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an end in time").ok();
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let code = head.lines().find_map(|line| line.strip_prefix("atlas-error-code: ")).map(str::to_owned);
        Reply { status, code, body: body.to_owned() }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.raw(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes()).await
    }

    pub(crate) async fn register(&self, package: Vec<u8>) -> Reply {
        self.post("/api/agents?replace=true", &package).await
    }

    pub(crate) async fn submit(&self, body: &[u8]) -> Reply {
        self.post("/api/jobs?validate=refuse", body).await
    }

    async fn post(&self, path: &str, body: &[u8]) -> Reply {
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        self.raw(&[head.as_bytes(), body].concat()).await
    }
}
