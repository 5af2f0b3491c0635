//! A transport that ends when its server sends messages without end: each one costs work, also those that nobody asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atlas_env::Env;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;

use crate::bounds::{MESSAGES_MAX, MESSAGES_TIME};

pub(crate) struct Bounded<T> {
    inner: T,
    env: Env,
    /// Since when messages are counted, and how many came.
    since: Duration,
    count: usize,
    flooded: Arc<AtomicBool>,
}

impl<T> Bounded<T> {
    /// `flooded` becomes true when the server has sent too much.
    pub(crate) fn new(inner: T, env: &Env, flooded: &Arc<AtomicBool>) -> Self {
        let since = env.clock.monotonic();
        Self { inner, env: env.clone(), since, count: 0, flooded: Arc::clone(flooded) }
    }

    /// Whether one more message is one too many.
    fn is_flooded(&mut self) -> bool {
        self.count += 1;
        if self.count <= MESSAGES_MAX {
            return false;
        }
        let now = self.env.clock.monotonic();
        let passed = now.saturating_sub(self.since);
        (self.since, self.count) = (now, 0);
        passed < MESSAGES_TIME
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Bounded<T> {
    type Error = T::Error;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let message = self.inner.receive().await?;
        if !self.is_flooded() {
            return Some(message);
        }
        self.flooded.store(true, Ordering::Relaxed);
        None
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
