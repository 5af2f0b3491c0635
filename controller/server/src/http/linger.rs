//! Closes connections so that the client can read the last answer.
//!
//! Closing a socket with unread bytes resets the connection, and the client loses an answer that it has not read yet. A
//! client that sends a body far over the limit would then see a broken connection instead of the reason. Therefore the
//! write side is shut down first, and further input is read and discarded until the client closes, within bounds.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use atlas_env::{Connection, Env};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes that are discarded.
const BYTES_MAX: u64 = 1 << 30;

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// True if the body of the request that is being answered was not read completely. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unread(Arc<AtomicBool>);

impl Unread {
    pub(crate) fn set(&self, unread: bool) {
        self.0.store(unread, Ordering::Relaxed);
    }
}

/// A connection that is closed as described above.
pub(crate) struct Lingering {
    connection: Connection,
    unread: Unread,
    env: Env,
    max: Duration,
    /// Set after the write side is shut down: the timeout for the client to close, and the number of discarded bytes.
    ending: Option<(Sleep, u64)>,
}

impl Lingering {
    /// Waits at most `max` for the client to close.
    pub(crate) fn new(connection: Connection, unread: Unread, env: Env, max: Duration) -> Self {
        Self { connection, unread, env, max, ending: None }
    }
}

impl AsyncRead for Lingering {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(cx, buf)
    }
}

impl AsyncWrite for Lingering {
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
        let Self { connection, unread, env, max, ending } = &mut *self;
        let (over, bytes) = match ending {
            Some(ending) => ending,
            None => {
                ready!(Pin::new(&mut *connection).poll_shutdown(cx))?;
                if !unread.0.load(Ordering::Relaxed) {
                    return Poll::Ready(Ok(()));
                }
                ending.insert((Box::pin(env.clock.sleep(*max)), 0))
            }
        };
        if over.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut space = [0; 16 << 10];
        while *bytes < BYTES_MAX {
            let mut buf = ReadBuf::new(&mut space);
            let read = ready!(Pin::new(&mut *connection).poll_read(cx, &mut buf));
            if read.is_err() || buf.filled().is_empty() {
                break;
            }
            *bytes += buf.filled().len() as u64;
        }
        Poll::Ready(Ok(()))
    }
}
