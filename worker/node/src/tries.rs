//! The tries' side of the limits of models: each waits until the pump lets it begin.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use atlas_types::{FencingToken, JobId, Namespace};
use tokio::sync::{mpsc, oneshot};

/// A limited model of an attempt.
#[derive(Debug, Clone)]
pub(crate) struct LimitedModel {
    pub(crate) token: FencingToken,
    pub(crate) job: JobId,
    pub(crate) namespace: Namespace,
    /// The name of its object.
    pub(crate) name: String,
}

/// What a try says to the pump.
#[derive(Debug)]
pub(crate) enum TryEvent {
    /// It asks whether it may begin, with the most tokens that it may use.
    Ask { number: u64, model: LimitedModel, tokens: u64, begin: oneshot::Sender<()> },
    /// It has ended, with the tokens that it used; none if it did not begin.
    Done { number: u64, tokens: Option<u64> },
}

/// The tries' side of the pump.
#[derive(Debug, Clone)]
pub(crate) struct TryDoor {
    /// Unbounded, because the end of a try that is dropped cannot wait. Each try says two things.
    events: mpsc::UnboundedSender<TryEvent>,
    last: Arc<AtomicU64>,
}

impl TryDoor {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<TryEvent>) {
        let (events, heard) = mpsc::unbounded_channel();
        (Self { events, last: Arc::default() }, heard)
    }

    /// Waits until a try may begin. None if its attempt is being stopped.
    pub(crate) async fn begin(&self, model: LimitedModel, tokens: u64) -> Option<Try> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        // From now on the end of the future is the end of the try.
        let mut tried = Try { events: self.events.clone(), number, tokens: None };
        let (begin, begun) = oneshot::channel();
        self.events.send(TryEvent::Ask { number, model, tokens, begin }).ok()?;
        begun.await.ok()?;
        tried.tokens = Some(tokens);
        Some(tried)
    }
}

/// A try. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Try {
    events: mpsc::UnboundedSender<TryEvent>,
    number: u64,
    /// What it used, as far as it is known; none before it begins.
    tokens: Option<u64>,
}

impl Try {
    /// Ends it, with the tokens that it used.
    pub(crate) fn end(mut self, tokens: u64) {
        self.tokens = Some(tokens);
    }
}

impl Drop for Try {
    fn drop(&mut self) {
        // If the pump has ended, nothing counts any more.
        let _ = self.events.send(TryEvent::Done { number: self.number, tokens: self.tokens });
    }
}
