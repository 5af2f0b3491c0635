//! Servers that are programs: one message a line.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;

use crate::bounds::MESSAGE_BYTES_MAX;
use crate::reading;
use crate::waiting::Waiting;

type Stdin = Box<dyn AsyncWrite + Send + Unpin>;

/// The streams of a program.
pub(crate) struct Lines {
    stdout: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    stdin: Arc<Mutex<Option<Stdin>>>,
    /// The line so far. It is kept here because a reader may be dropped in the middle of a line.
    line: Vec<u8>,
    /// The rest of the line is too much.
    skips: bool,
    /// Read, and not asked for yet.
    ready: VecDeque<ServerJsonRpcMessage>,
    waiting: Arc<Waiting>,
}

impl Lines {
    pub(crate) fn new(stdout: Box<dyn AsyncRead + Send + Unpin>, stdin: Stdin) -> Self {
        Self {
            stdout: BufReader::new(stdout),
            stdin: Arc::new(Mutex::new(Some(stdin))),
            line: Vec::new(),
            skips: false,
            ready: VecDeque::new(),
            waiting: Arc::default(),
        }
    }

    /// Reads the next line into `line`; a longer one than allowed leaves it empty. False at the end.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let piece = self.stdout.fill_buf().await?;
            if piece.is_empty() {
                return Ok(false);
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(piece.len(), |end| end + 1);
            if !self.skips && self.line.len() + count > MESSAGE_BYTES_MAX {
                tracing::warn!(bytes_max = MESSAGE_BYTES_MAX, "a line of an MCP server is too long and is skipped");
                self.line = Vec::new();
                self.skips = true;
            }
            if !self.skips {
                self.line.extend_from_slice(&piece[..count]);
            }
            self.stdout.consume(count);
            if end.is_some() {
                self.skips = false;
                return Ok(true);
            }
        }
    }
}

impl Transport<RoleClient> for Lines {
    type Error = io::Error;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (stdin, waiting) = (Arc::clone(&self.stdin), Arc::clone(&self.waiting));
        waiting.sent(&item);
        async move {
            let written = async {
                let mut line = serde_json::to_vec(&item)?;
                line.push(b'\n');
                let mut stdin = stdin.lock().await;
                let stdin = stdin.as_mut().ok_or(io::ErrorKind::NotConnected)?;
                stdin.write_all(&line).await?;
                stdin.flush().await
            };
            let written = written.await;
            if written.is_err() {
                waiting.failed(&item);
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            match self.read_line().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    tracing::warn!(%error, "an MCP server cannot be read");
                    return None;
                }
            }
            let line = self.line.trim_ascii();
            let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
            if !line.is_empty() {
                self.ready.extend(reading::messages(line, &|id| self.waiting.whose(id)));
            }
            self.line.clear();
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        drop(self.stdin.lock().await.take());
        Ok(())
    }
}
