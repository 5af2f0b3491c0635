//! A server on a thread of its own, at a free port of the loopback interface. It stops when it is dropped.

use std::io;
use std::net::{SocketAddr, TcpListener};

use axum::Router;
use tokio::sync::oneshot;

/// A running server.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
}

impl Running {
    /// Starts a server that answers with the router for its address.
    pub(crate) fn start(router: impl FnOnce(SocketAddr) -> Router) -> io::Result<Self> {
        Self::start_on(SocketAddr::from(([127, 0, 0, 1], 0)), router)
    }

    /// The same on a given address.
    pub(crate) fn start_on(address: SocketAddr, router: impl FnOnce(SocketAddr) -> Router) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let router = router(address);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        #[expect(clippy::disallowed_methods, reason = "the server of a test has a thread of its own")]
        std::thread::spawn(move || {
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                tokio::select! {
                    served = axum::serve(listener, router) => served,
                    _ = stopped => Ok(()),
                }
            })
        });
        Ok(Self { address, stop: Some(stop) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // If the thread has ended, nothing must be stopped.
        let _ = self.stop.take().map(|stop| stop.send(()));
    }
}
