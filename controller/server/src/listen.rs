//! Connections to the gRPC doors in the form that tonic needs.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use atlas_env::{Connection, Env, Listener, Proof};
use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::transport::server::Connected;

/// The pause after a connection could not be accepted because of missing file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The connections of a listener, at most `max` at once. Further ones wait in the system's queue. If accepting a
/// connection fails, the error is logged and the listener continues after a pause.
pub(crate) fn connections(
    listener: Box<dyn Listener>,
    max: usize,
    env: Env,
) -> impl Stream<Item = io::Result<Counted>> {
    let open = Arc::new(Semaphore::new(max));
    futures::stream::unfold((listener, env, open), |(listener, env, open)| async move {
        // The semaphore is never closed.
        let permit = open.clone().acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok(connection) => {
                    return Some((Ok(Counted { connection, _permit: permit }), (listener, env, open)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    env.clock.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
}

/// A connection that counts towards the limit as long as it is open.
pub(crate) struct Counted {
    connection: Connection,
    _permit: OwnedSemaphorePermit,
}

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    address: SocketAddr,
    encrypted: bool,
    proof: Option<Arc<Proof>>,
}

impl Peer {
    /// True if nobody else can read the connection: it is encrypted, or does not leave this machine.
    pub(crate) fn is_private(&self) -> bool {
        self.encrypted || self.address.ip().to_canonical().is_loopback()
    }

    /// Its address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it proved; none if it showed no certificate.
    pub(crate) fn proof(&self) -> Option<&Proof> {
        self.proof.as_deref()
    }
}

impl Connected for Counted {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        let connection = &self.connection;
        let (address, encrypted) = (connection.peer(), connection.is_encrypted());
        Peer { address, encrypted, proof: connection.proof().cloned() }
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_private() {
        let peer = |text: &str, encrypted| Peer { address: text.parse().expect("an address"), encrypted, proof: None };
        let private = |text: &str| peer(text, false).is_private();
        assert!(peer("10.0.0.1:1", true).is_private(), "encrypted");
        assert!(["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"].into_iter().all(private));
        assert!(!["10.0.0.1:1", "0.0.0.0:1", "[::]:1", "[fe80::1]:1", "[::ffff:10.0.0.1]:1"].into_iter().any(private));
    }
}
