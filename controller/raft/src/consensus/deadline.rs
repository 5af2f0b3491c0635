//! A deadline for a stream that lasts as long as a leadership: each request is answered in time, or the stream ends with an error.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use tokio::sync::Notify;

/// Requests that were sent on a stream and need an answer.
#[derive(Clone, Default)]
pub(super) struct Sent(Arc<(AtomicU64, Notify)>);

impl Sent {
    /// Counts one request more.
    pub(super) fn count(&self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
        self.0.1.notify_one();
    }

    fn total(&self) -> u64 {
        self.0.0.load(Ordering::Relaxed)
    }
}

struct Waiting<'s, T> {
    answers: Pin<Box<dyn Stream<Item = T> + Send + 's>>,
    answered: u64,
    over: bool,
}

/// Passes on `answers`, one for each request, until an answer takes longer than `patience`, counted from the previous
/// answer or from the request, whichever is later. Then it yields `late()` and ends.
pub(super) fn in_time<'s, T: Send + 's>(
    answers: impl Stream<Item = T> + Send + 's,
    sent: Sent,
    patience: Duration,
    late: fn() -> T,
) -> impl Stream<Item = T> + Send + 's {
    let waiting = Waiting { answers: Box::pin(answers), answered: 0, over: false };
    stream::unfold(waiting, move |mut waiting| {
        let sent = sent.clone();
        async move {
            if waiting.over {
                return None;
            }
            let next = loop {
                if sent.total() > waiting.answered {
                    break tokio::time::timeout(patience, waiting.answers.next()).await;
                }
                tokio::select! {
                    biased;
                    answer = waiting.answers.next() => break Ok(answer),
                    () = sent.0.1.notified() => {}
                }
            };
            // A peer may also answer requests that need no answer.
            waiting.answered = sent.total().min(waiting.answered + 1);
            waiting.over = next.is_err();
            let answer = next.unwrap_or_else(|_| Some(late()))?;
            Some((answer, waiting))
        }
    })
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(3);

    #[tokio::test(start_paused = true)]
    async fn a_missing_answer_ends_the_stream() {
        let sent = Sent::default();
        (0..3).for_each(|_| sent.count());
        let start = Instant::now();
        let answers = stream::iter([1, 3]).then(|second| async move {
            tokio::time::timeout_at(start + Duration::from_secs(second), std::future::pending::<()>()).await.ok();
            Some(second)
        });
        let got: Vec<_> = in_time(answers.chain(stream::pending()), sent, PATIENCE, || None).collect().await;
        assert_eq!((got, start.elapsed()), (vec![Some(1), Some(3), None], Duration::from_secs(6)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_requests_waits_for_ever() {
        let sent = Sent::default();
        let mut answers = std::pin::pin!(in_time(stream::pending::<u8>(), sent.clone(), PATIENCE, || 7));
        assert!(tokio::time::timeout(PATIENCE * 100, answers.next()).await.is_err());
        sent.count();
        assert_eq!(tokio::time::timeout(PATIENCE * 2, answers.next()).await, Ok(Some(7)));
        assert_eq!(answers.next().await, None);
    }
}
