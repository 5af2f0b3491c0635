//! A client with minimal cost: one connection, requests sent in one write, answers read by their length.
//!
//! The client shares two cores with the server, so its own CPU time is taken from the server.

use std::io;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A kept-alive connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("could not connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(8 << 10) })
    }

    /// Sends a request and returns the body of its answer. A status other than success is an error.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<&[u8]> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let (head, length) = loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break (end + 4, content_length(&self.buffer[..end])?);
            }
        };
        while self.buffer.len() < head + length {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
        if !self.buffer.starts_with(b"HTTP/1.1 2") {
            bail!("the server answered {}", String::from_utf8_lossy(&self.buffer));
        }
        Ok(&self.buffer[head..])
    }
}

fn content_length(head: &[u8]) -> Result<usize> {
    let text = std::str::from_utf8(head).context("the head of the answer is not text")?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    length.context("the answer has no length")
}
