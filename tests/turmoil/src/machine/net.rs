//! The simulated network behind the interface of `atlas-env`.
//!
//! A machine that goes down drops its connections in the order in which they were opened. Otherwise the order would be
//! that of tokio's task list, which depends on the number of tasks that the process has ever had. Each closed
//! connection draws a delay, so the same seed would lead to another run.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use atlas_env::{Connection, Listener};
use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;
use turmoil::net::{TcpListener, TcpStream};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// turmoil's network.
pub(crate) struct Net(pub(crate) Sockets);

/// The connections of one run of a machine. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Sockets(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    streams: BTreeMap<u64, TcpStream>,
    opened: u64,
    /// Set before the machine goes down: the first dropped connection then closes all others.
    ending: bool,
}

impl Sockets {
    /// Prepares the machine's connections to close together when it goes down.
    pub(crate) fn end(&self) {
        self.open().ending = true;
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, stream: TcpStream) -> Socket {
        let mut open = self.open();
        open.opened += 1;
        let number = open.opened;
        open.streams.insert(number, stream);
        Socket { sockets: self.clone(), number }
    }
}

/// One connection.
struct Socket {
    sockets: Sockets,
    number: u64,
}

impl Socket {
    fn poll<T>(&self, poll: impl FnOnce(Pin<&mut TcpStream>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match self.sockets.open().streams.get_mut(&self.number) {
            Some(stream) => poll(Pin::new(stream)),
            None => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut open = self.sockets.open();
        if open.ending {
            std::mem::take(&mut open.streams).into_values().for_each(drop);
        } else {
            open.streams.remove(&self.number);
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll(|stream| stream.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_shutdown(cx))
    }
}

struct Bound(TcpListener, Sockets);

impl Listener for Bound {
    fn accept(&self) -> BoxFuture<'_, io::Result<Connection>> {
        Box::pin(async move {
            let (stream, peer) = self.0.accept().await?;
            Ok(Connection::new(self.1.add(stream), peer))
        })
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl atlas_env::Net for Net {
    fn listen(&self, addr: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(
            async move { Ok(Box::new(Bound(TcpListener::bind(addr).await?, self.0.clone())) as Box<dyn Listener>) },
        )
    }

    fn connect<'a>(&'a self, authority: &'a str) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let stream = TcpStream::connect(authority).await?;
            let peer = stream.peer_addr()?;
            Ok(Connection::new(self.0.add(stream), peer))
        })
    }
}

/// A connection in the form that tonic needs.
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
