//! A website on this machine, whose pages a test sets.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What is at a path.
#[derive(Clone)]
enum Reply {
    /// Status, headers and body.
    Page(u16, String, Vec<u8>),
    /// A body that never ends.
    Endless,
}

#[derive(Default)]
struct Site {
    pages: BTreeMap<String, Reply>,
    /// The paths that were asked for.
    asked: Vec<String>,
    /// The folder with repositories, below `/git`.
    repositories: Option<PathBuf>,
}

/// The server. It ends with this value.
pub(crate) struct Website {
    pub(crate) address: SocketAddr,
    site: Arc<Mutex<Site>>,
    server: tokio::task::AbortHandle,
}

impl Drop for Website {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Website {
    #[expect(clippy::disallowed_methods, reason = "the test's own server")]
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let site = Arc::<Mutex<Site>>::default();
        let shared = Arc::clone(&site);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that goes away is no failure.
                drop(tokio::spawn(serve(stream, Arc::clone(&shared))));
            }
        });
        Self { address, site, server: server.abort_handle() }
    }

    /// The address of a path.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn html(&self, path: &str, body: &str) {
        self.reply(path, 200, "content-type: text/html", body.as_bytes());
    }

    /// Sets what is at a path; headers are lines.
    pub(crate) fn reply(&self, path: &str, status: u16, headers: &str, body: &[u8]) {
        let headers = headers.lines().map(|line| format!("{line}\r\n")).collect();
        let reply = Reply::Page(status, headers, body.to_vec());
        self.site.lock().expect("not poisoned").pages.insert(path.to_owned(), reply);
    }

    pub(crate) fn endless(&self, path: &str) {
        self.site.lock().expect("not poisoned").pages.insert(path.to_owned(), Reply::Endless);
    }

    pub(crate) fn repositories(&self, folder: PathBuf) {
        self.site.lock().expect("not poisoned").repositories = Some(folder);
    }

    /// The paths that were asked for since the last look.
    pub(crate) fn asked(&self) -> Vec<String> {
        let mut asked = std::mem::take(&mut self.site.lock().expect("not poisoned").asked);
        asked.sort();
        asked
    }
}

/// Answers one request and closes the connection. None if the client went away.
async fn serve(stream: TcpStream, site: Arc<Mutex<Site>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let (reply, repositories) = {
        let mut site = site.lock().expect("not poisoned");
        site.asked.push(path.clone());
        (site.pages.get(&path).cloned(), site.repositories.clone())
    };
    if let Some(folder) = repositories.filter(|_| path.starts_with("/git/")) {
        let answer = git(&folder, (&method, &path), &headers, &body).await?;
        return stream.write_all(&answer).await.ok();
    }
    match reply.unwrap_or(Reply::Page(404, String::new(), b"nothing".to_vec())) {
        Reply::Page(status, headers, body) => {
            let head =
                format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).await.ok()?;
            stream.write_all(&body).await.ok()
        }
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n").await.ok()?;
            loop {
                stream.write_all(&[b'x'; 64 << 10]).await.ok()?;
            }
        }
    }
}

/// The answer of git's own server.
async fn git(
    folder: &std::path::Path,
    (method, path): (&str, &str),
    headers: &BTreeMap<String, String>,
    body: &[u8],
) -> Option<Vec<u8>> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut command = tokio::process::Command::new("git");
    command.arg("http-backend").env("GIT_PROJECT_ROOT", folder).env("GIT_HTTP_EXPORT_ALL", "1");
    command.env("REQUEST_METHOD", method).env("PATH_INFO", path.strip_prefix("/git")?).env("QUERY_STRING", query);
    for (header, variable) in [
        ("content-type", "CONTENT_TYPE"),
        ("content-encoding", "HTTP_CONTENT_ENCODING"),
        ("git-protocol", "GIT_PROTOCOL"),
        ("content-length", "CONTENT_LENGTH"),
    ] {
        if let Some(value) = headers.get(header) {
            command.env(variable, value);
        }
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().ok()?;
    child.stdin.take()?.write_all(body).await.ok()?;
    let printed = child.wait_with_output().await.ok()?.stdout;
    let mut answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\n".to_vec();
    answer.extend_from_slice(&printed);
    Some(answer)
}
