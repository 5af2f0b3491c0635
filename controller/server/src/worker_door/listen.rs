//! Connections of workers, as tonic takes them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use atlas_env::{Connection, Env, Listener};
use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::transport::server::Connected;

/// Most workers connected at once, with room for reconnects; beyond it new connections wait in the system's queue.
const CONNECTIONS_MAX: usize = 20_000;
/// The pause after a connection could not be accepted, for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The connections of a listener. A failure to accept one is told and waited out, it does not end the listener.
pub(super) fn connections(listener: Box<dyn Listener>, env: Env) -> impl Stream<Item = io::Result<Peer>> {
    let open = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    futures::stream::unfold((listener, env, open), |(listener, env, open)| async move {
        // The semaphore is never closed.
        let permit = open.clone().acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok(connection) => {
                    return Some((Ok(Peer { connection, _permit: permit }), (listener, env, open)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a worker's connection was not accepted");
                    env.clock.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
}

/// A connection that counts against the bound as long as it is open.
pub(super) struct Peer {
    connection: Connection,
    _permit: OwnedSemaphorePermit,
}

impl Connected for Peer {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Peer {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(cx, buf)
    }
}

impl AsyncWrite for Peer {
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
