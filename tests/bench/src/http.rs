//! A client with minimal cost: one connection, requests sent in one write, answers read by their length.
//!
//! The client shares two cores with the server, so its own CPU time is taken from the server.

use std::io;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Bytes both ways, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A kept-alive connection.
pub(crate) struct Connection {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
}

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    request_with(method, path, &[], body)
}

/// The bytes of a request with more headers.
pub(crate) fn request_with(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nContent-Length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        Self::open_with(address, None).await
    }

    /// Like [`Self::open`], encrypted if there is a connector.
    pub(crate) async fn open_with(address: SocketAddr, encrypt: Option<&TlsConnector>) -> Result<Self> {
        let plain = TcpStream::connect(address).await.with_context(|| format!("could not connect to {address}"))?;
        plain.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match encrypt {
            None => Box::new(plain),
            Some(encrypt) => Box::new(encrypt.connect(ServerName::from(address.ip()), plain).await?),
        };
        Ok(Self { stream, buffer: Vec::with_capacity(8 << 10) })
    }

    /// Sends a request and returns the body of its answer, with the marks of its chunks if it has some. A status other than success
    /// is an error.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<&[u8]> {
        self.exchange(request).await.map(|(_, body)| body)
    }

    /// Like [`send`](Self::send), with the head of the answer.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<(&str, &[u8])> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let head = loop {
            self.read().await?;
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let (length, chunked) = {
            let text = std::str::from_utf8(&self.buffer[..head]).context("the head of the answer is not text")?;
            (
                header(text, "content-length").and_then(|value| value.parse::<usize>().ok()),
                header(text, "transfer-encoding"),
            )
        };
        match (length, chunked) {
            (Some(length), _) => {
                while self.buffer.len() < head + length {
                    self.read().await?;
                }
            }
            (None, Some(_)) => {
                while !self.buffer[head..].ends_with(b"0\r\n\r\n") {
                    self.read().await?;
                }
            }
            (None, None) => bail!("the answer has no length"),
        }
        if !self.buffer.starts_with(b"HTTP/1.1 2") {
            bail!("the server answered {}", String::from_utf8_lossy(&self.buffer));
        }
        let (head, body) = self.buffer.split_at(head);
        Ok((std::str::from_utf8(head)?, body))
    }

    async fn read(&mut self) -> Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            _ => Ok(()),
        }
    }
}

/// The value of a header in the head of an answer.
pub(crate) fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
