//! A receiver that records requests and answers them as a test says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use atlas_env::{Connection, Env};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

/// No test waits longer for a request.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request and the status of its answer.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// How many came before.
    pub(crate) number: usize,
    pub(crate) line: String,
    head: String,
    pub(crate) body: Vec<u8>,
    /// The status; 0 if the connection was cut.
    pub(crate) answer: u16,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        let headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// The name of the event's subject.
    pub(crate) fn name(&self) -> String {
        self.json()["event"]["name"].as_str().unwrap_or_default().to_owned()
    }
}

type Script = Arc<dyn Fn(&Request) -> u16 + Send + Sync>;

pub(crate) struct Receiver {
    addr: SocketAddr,
    requests: mpsc::UnboundedReceiver<Request>,
}

impl Receiver {
    /// The answer of a receiver that gives none.
    pub(crate) const SILENT: u16 = 1;

    /// A receiver whose script gives the status of each answer, 0 to cut the connection.
    pub(crate) async fn start(script: impl Fn(&Request) -> u16 + Send + Sync + 'static) -> Self {
        let env = Env::system();
        let listener = env.net.listen(([127, 0, 0, 1], 0).into()).await.expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let (sender, requests) = mpsc::unbounded_channel();
        let (script, number): (Script, Arc<AtomicUsize>) = (Arc::new(script), Arc::default());
        let accepting = env.clone();
        let _accepting = env.spawn("receiver", async move {
            while let Ok(connection) = listener.accept().await {
                let served = serve(connection, script.clone(), sender.clone(), number.clone());
                let _connection = accepting.spawn("connection", served);
            }
        });
        Self { addr, requests }
    }

    pub(crate) fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.addr)
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Request {
        let next = tokio::time::timeout(PATIENCE, self.requests.recv()).await;
        next.expect("a request in time").expect("the receiver runs")
    }
}

async fn serve(
    mut connection: Connection,
    script: Script,
    requests: mpsc::UnboundedSender<Request>,
    number: Arc<AtomicUsize>,
) {
    while let Some((head, body)) = read(&mut connection).await {
        let line = head.lines().next().unwrap_or_default().to_owned();
        let number = number.fetch_add(1, Ordering::Relaxed);
        let mut request = Request { number, line, head, body, answer: 0 };
        let answer = script(&request);
        request.answer = answer;
        let _ = requests.send(request);
        if answer == 0 {
            return;
        }
        if answer == Receiver::SILENT {
            std::future::pending::<()>().await;
        }
        let answer = format!("HTTP/1.1 {answer} Text\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n");
        if connection.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The head and the body of a request.
async fn read(connection: &mut Connection) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
            let mut body = bytes.split_off(end + 4);
            let have = body.len();
            body.resize(length, 0);
            connection.read_exact(&mut body[have..]).await.ok()?;
            return Some((head, body));
        }
        if connection.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
