//! A network in memory: servers by `host:port`.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use atlas_env::{Connection, Listener, Net};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Bytes that a connection holds in each direction.
const BUFFER: usize = 64 << 10;

/// The network. Hosts that nobody serves refuse connections; those of [`Memory::silence`] never answer.
#[derive(Default)]
pub(crate) struct Memory {
    servers: Mutex<BTreeMap<String, mpsc::UnboundedSender<DuplexStream>>>,
    silent: Mutex<Vec<String>>,
    pub(crate) connections: AtomicUsize,
}

/// Where a server's connections arrive.
pub(crate) struct Arrivals(pub(crate) mpsc::UnboundedReceiver<DuplexStream>);

impl Memory {
    /// Becomes the server of `authority`.
    pub(crate) fn serve(&self, authority: &str) -> Arrivals {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.servers.lock().expect("a lock").insert(authority.to_owned(), sender);
        Arrivals(receiver)
    }

    /// Connections to `authority` are never made and never refused.
    pub(crate) fn silence(&self, authority: &str) {
        self.silent.lock().expect("a lock").push(authority.to_owned());
    }

    /// A connection to a server.
    pub(crate) fn open(&self, authority: &str) -> io::Result<DuplexStream> {
        let refused = || io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
        let server = self.servers.lock().expect("a lock").get(authority).cloned().ok_or_else(refused)?;
        let (near, far) = tokio::io::duplex(BUFFER);
        server.send(far).map_err(|_| refused())?;
        self.connections.fetch_add(1, Ordering::Relaxed);
        Ok(near)
    }
}

impl Net for Memory {
    fn listen(&self, addr: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async move { Err(io::Error::other(format!("{addr}: tests serve by name"))) })
    }

    fn connect<'a>(&'a self, authority: &'a str) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let is_silent = self.silent.lock().expect("a lock").iter().any(|silent| silent == authority);
            if is_silent {
                std::future::pending::<()>().await;
            }
            Ok(Connection::new(self.open(authority)?, SocketAddr::from(([127, 0, 0, 1], 1))))
        })
    }
}

impl axum::serve::Listener for Arrivals {
    type Io = DuplexStream;
    type Addr = ();

    async fn accept(&mut self) -> (DuplexStream, ()) {
        match self.0.recv().await {
            Some(stream) => (stream, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}
