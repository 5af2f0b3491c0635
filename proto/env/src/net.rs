//! Sockets: listeners and connections as trait objects, so that a simulated network can replace them.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}

/// What the other end of a connection proved by its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Who it is, as its certificate says.
    pub name: String,
    /// The SHA-256 of its public key.
    pub key: [u8; 32],
}

/// A byte stream to a peer.
pub struct Connection {
    stream: Box<dyn Stream>,
    peer: SocketAddr,
    encrypted: bool,
    proof: Option<Arc<Proof>>,
}

impl Connection {
    /// Wraps a stream.
    pub fn new(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, peer: SocketAddr) -> Self {
        Self { stream: Box::new(stream), peer, encrypted: false, proof: None }
    }

    /// Wraps an encrypted stream, with what its other end proved.
    pub fn encrypted(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        peer: SocketAddr,
        proof: Option<Proof>,
    ) -> Self {
        Self { stream: Box::new(stream), peer, encrypted: true, proof: proof.map(Arc::new) }
    }

    /// The other end's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Whether the stream is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// What the other end proved; none if it showed no certificate.
    pub fn proof(&self) -> Option<&Arc<Proof>> {
        self.proof.as_ref()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A bound socket.
pub trait Listener: Send + Sync + 'static {
    /// The next connection.
    fn accept(&self) -> BoxFuture<'_, io::Result<Connection>>;

    /// The bound address; for port 0, it has the port that the system chose.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

/// Opens sockets.
pub trait Net: Send + Sync + 'static {
    /// Binds a listening socket.
    fn listen(&self, addr: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>>;

    /// Connects to `host:port`.
    fn connect<'a>(&'a self, authority: &'a str) -> BoxFuture<'a, io::Result<Connection>>;
}

/// The machine's network. Small frames are sent immediately (`TCP_NODELAY`).
#[derive(Debug, Clone, Copy)]
pub struct SystemNet;

impl Listener for TcpListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<Connection>> {
        Box::pin(async move {
            let (stream, peer) = Self::accept(self).await?;
            stream.set_nodelay(true)?;
            Ok(Connection::new(stream, peer))
        })
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Self::local_addr(self)
    }
}

impl Net for SystemNet {
    fn listen(&self, addr: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async move { Ok(Box::new(TcpListener::bind(addr).await?) as Box<dyn Listener>) })
    }

    fn connect<'a>(&'a self, authority: &'a str) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let stream = TcpStream::connect(authority).await?;
            stream.set_nodelay(true)?;
            let peer = stream.peer_addr()?;
            Ok(Connection::new(stream, peer))
        })
    }
}
