//! The simulated network behind the seam of `atlas-env`.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use atlas_env::{Connection, Listener};
use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;
use turmoil::net::{TcpListener, TcpStream};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// turmoil's network.
pub(crate) struct Net;

struct Bound(TcpListener);

impl Listener for Bound {
    fn accept(&self) -> BoxFuture<'_, io::Result<Connection>> {
        Box::pin(async move {
            let (stream, peer) = self.0.accept().await?;
            Ok(Connection::new(stream, peer))
        })
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl atlas_env::Net for Net {
    fn listen(&self, addr: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async move { Ok(Box::new(Bound(TcpListener::bind(addr).await?)) as Box<dyn Listener>) })
    }

    fn connect<'a>(&'a self, authority: &'a str) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let stream = TcpStream::connect(authority).await?;
            let peer = stream.peer_addr()?;
            Ok(Connection::new(stream, peer))
        })
    }
}

/// A connection as tonic takes it.
pub(crate) struct Accepted(Connection);

impl Accepted {
    /// The connections of a listener.
    pub(crate) fn all(listener: Box<dyn Listener>) -> impl Stream<Item = io::Result<Self>> {
        futures::stream::unfold(listener, |listener| async move {
            let accepted = listener.accept().await.map(Self);
            Some((accepted, listener))
        })
    }
}

impl Connected for Accepted {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Accepted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
