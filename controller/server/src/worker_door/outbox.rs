//! Frames to be sent to one worker: a bounded queue that can be closed, immediately or after its last frame.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use atlas_wire::proto::worker::v1::SessionResponse;
use atlas_wire::session::ToWorker;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_stream::Stream;
use tonic::Status;

/// The most frames that wait for one worker. A worker with more does not read: it is disconnected, and gets the whole
/// lease set when it reconnects.
const FRAMES_WAITING_MAX: usize = 4_096;

/// How a stream ends.
enum End {
    /// At once with a reason. Waiting frames are dropped.
    Now(Status),
    /// After the waiting frames.
    Drained,
}

/// The door's end of a stream.
pub(super) struct Outbox {
    frames: mpsc::Sender<SessionResponse>,
    end: Mutex<Option<oneshot::Sender<End>>>,
    ended: Notify,
}

/// The end that tonic reads to send frames to the worker. All frames that are ready go into one write.
pub(crate) struct Outgoing {
    frames: mpsc::Receiver<SessionResponse>,
    end: Option<oneshot::Receiver<End>>,
    over: bool,
}

/// Creates both ends of a stream.
pub(super) fn outbox() -> (Outbox, Outgoing) {
    let (sender, frames) = mpsc::channel(FRAMES_WAITING_MAX);
    let (end, ends) = oneshot::channel();
    let outbox = Outbox { frames: sender, end: Mutex::new(Some(end)), ended: Notify::new() };
    (outbox, Outgoing { frames, end: Some(ends), over: false })
}

impl Outbox {
    /// Queues a frame. A worker that does not keep up is disconnected.
    pub(super) fn send(&self, frame: ToWorker) {
        match self.frames.try_send(frame.into()) {
            // The session notices that its stream has closed.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.fail(Status::resource_exhausted("the worker does not read its stream fast enough"));
            }
        }
    }

    /// How many frames may be queued that can also wait elsewhere. Half of the queue is for those that cannot.
    pub(super) fn room(&self) -> usize {
        self.frames.capacity().saturating_sub(FRAMES_WAITING_MAX / 2)
    }

    /// Ends the stream at once with a reason. Only the first call has an effect.
    pub(super) fn fail(&self, reason: Status) {
        self.end(End::Now(reason));
    }

    /// Ends the stream after the waiting frames.
    pub(super) fn finish(&self) {
        self.end(End::Drained);
    }

    /// Completes when either side has ended the stream. Only one task may wait.
    pub(super) async fn ended(&self) {
        tokio::select! {
            () = self.ended.notified() => {}
            () = self.frames.closed() => {}
        }
    }

    fn end(&self, end: End) {
        let sender = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // A reader that was dropped needs no reason.
            let _ = sender.send(end);
            self.ended.notify_one();
        }
    }
}

impl Stream for Outgoing {
    type Item = Result<SessionResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        if let Some(end) = &mut self.end
            && let Poll::Ready(end) = Pin::new(end).poll(cx)
        {
            self.end = None;
            self.frames.close();
            if let Ok(End::Now(reason)) = end {
                self.over = true;
                return Poll::Ready(Some(Err(reason)));
            }
        }
        self.frames.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn a_finished_stream_sends_what_waits() {
        let (outbox, outgoing) = outbox();
        outbox.send(ToWorker::RenewAck { number: 1 });
        outbox.send(ToWorker::Shutdown);
        outbox.finish();
        outbox.fail(Status::aborted("too late"));
        outbox.ended().await;
        let frames: Vec<_> = outgoing.collect().await;
        assert_eq!(frames.len(), 2);
        assert!(frames.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn a_worker_that_does_not_read_is_disconnected() {
        let (outbox, outgoing) = outbox();
        for number in 0..=FRAMES_WAITING_MAX as u64 {
            outbox.send(ToWorker::RenewAck { number });
        }
        outbox.ended().await;
        let frames: Vec<_> = outgoing.collect().await;
        let [Err(reason)] = &frames[..] else { panic!("{} frames", frames.len()) };
        assert_eq!(reason.message(), "the worker does not read its stream fast enough");
    }

    #[tokio::test]
    async fn a_worker_that_goes_is_noticed() {
        let (outbox, outgoing) = outbox();
        drop(outgoing);
        outbox.ended().await;
    }
}
