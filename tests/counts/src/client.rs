//! A client that allocates nothing once its buffer is large enough, so that what is counted is the cluster's.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context as _, Result, ensure};

/// The room for an answer.
pub(crate) const ANSWER_BYTES: usize = 4 << 20;

/// A connection that is kept.
pub(crate) struct Client {
    stream: TcpStream,
    answer: Vec<u8>,
}

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    request_with(method, path, "", body)
}

/// The bytes of a request with more headers, each a line.
pub(crate) fn request_with(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, answer: Vec::with_capacity(ANSWER_BYTES) })
    }

    /// The body of the answer to a request, with the marks of its chunks if it has no length. A status other than success is an error.
    pub(crate) fn send(&mut self, request: &[u8]) -> Result<&[u8]> {
        self.stream.write_all(request)?;
        self.answer.clear();
        let head = loop {
            self.read()?;
            if let Some(end) = self.answer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let text = std::str::from_utf8(&self.answer[..head]).context("the head of the answer is no text")?;
        let is_success = text.starts_with("HTTP/1.1 2");
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        match length.map(str::parse::<usize>).transpose()? {
            Some(length) => {
                while self.answer.len() < head + length {
                    self.read()?;
                }
            }
            None => {
                while !self.answer[head..].ends_with(b"0\r\n\r\n") {
                    self.read()?;
                }
            }
        }
        ensure!(is_success, "refused: {}", String::from_utf8_lossy(&self.answer));
        Ok(&self.answer[head..])
    }

    fn read(&mut self) -> Result<()> {
        let mut part = [0; 16 << 10];
        let read = self.stream.read(&mut part)?;
        ensure!(read > 0, "the connection was closed");
        self.answer.extend_from_slice(&part[..read]);
        Ok(())
    }
}

/// Whether a text is part of an answer.
pub(crate) fn contains(answer: &[u8], text: &str) -> bool {
    answer.windows(text.len()).any(|window| window == text.as_bytes())
}
