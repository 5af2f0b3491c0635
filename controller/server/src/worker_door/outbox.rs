//! Frames to be sent to one worker: a bounded queue that can be closed, immediately or after its last frame.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use atlas_wire::proto::worker::v1::SessionResponse;
use atlas_wire::session::ToWorker;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_stream::Stream;
use tonic::Status;

/// Frames that wait for one worker. More means that it does not read: it is disconnected, and gets the whole set when it returns.
const FRAMES_WAITING_MAX: usize = 4_096;

/// How a stream ends.
enum End {
    /// With a reason, and without what still waits.
    Now(Status),
    /// In order, after what waits.
    Drained,
}

/// The door's end of a stream.
pub(super) struct Outbox {
    frames: mpsc::Sender<SessionResponse>,
    end: Mutex<Option<oneshot::Sender<End>>>,
    ended: Notify,
}

/// The worker's end, which tonic reads. It takes all frames that are ready into one write.
pub(crate) struct Outgoing {
    frames: mpsc::Receiver<SessionResponse>,
    end: Option<oneshot::Receiver<End>>,
    over: bool,
}

/// A stream's two ends.
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
            // A stream that is gone is noticed by its session.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.fail(Status::resource_exhausted("the worker does not read its stream fast enough"));
            }
        }
    }

    /// Ends the stream at once, with a reason. Only the first end counts.
    pub(super) fn fail(&self, reason: Status) {
        self.end(End::Now(reason));
    }

    /// Ends the stream after what waits.
    pub(super) fn finish(&self) {
        self.end(End::Drained);
    }

    /// Completes when the stream has ended, by either side. For one task only.
    pub(super) async fn ended(&self) {
        tokio::select! {
            () = self.ended.notified() => {}
            () = self.frames.closed() => {}
        }
    }

    fn end(&self, end: End) {
        let sender = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // A reader that is gone needs no reason.
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
