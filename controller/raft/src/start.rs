//! Starting and stopping a member.

use std::sync::Arc;

use atlas_env::Env;
use tokio::sync::watch;

use crate::error::{Leadership, StartError};
use crate::handle::Handle;
use crate::options::Options;

/// The running member. Dropping it stops the member without waiting.
#[derive(Debug)]
pub struct Service {
    leadership: watch::Receiver<Leadership>,
}

impl Service {
    /// Completes when the member stops by itself: its log or its state failed, and the process must exit with this reason.
    pub async fn failed(&mut self) -> Arc<str> {
        let stopped = self.leadership.wait_for(|leadership| matches!(leadership, Leadership::Stopped { .. })).await;
        match stopped.as_deref() {
            Ok(Leadership::Stopped { reason }) => Arc::clone(reason),
            _ => "its thread ended".into(),
        }
    }

    /// Stops the member in order and waits until its log is closed.
    pub async fn shutdown(self) {}
}

/// Starts a member on what its data directory holds, or on a new one.
pub async fn start(options: Options, env: Env) -> Result<(Handle, Service), StartError> {
    let _ = (options, env);
    Err(StartError::Raft { reason: String::new() })
}
