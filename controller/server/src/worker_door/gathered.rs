//! Several frames at once, as many as have come.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::{Fuse, Stream, StreamExt as _};

/// A stream in portions: what has come, up to a number. A portion has room for what is in it: one with room for the most would take 56 KiB
/// for a single frame, and each job has two.
pub(super) struct Gathered<S> {
    stream: Fuse<S>,
    most: usize,
}

impl<S: Stream> Gathered<S> {
    /// Portions of at most `most` items.
    pub(super) fn new(stream: S, most: usize) -> Self {
        Self { stream: stream.fuse(), most }
    }
}

impl<S: Stream + Unpin> Stream for Gathered<S> {
    type Item = Vec<S::Item>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut portion = Vec::new();
        while portion.len() < self.most {
            match self.stream.poll_next_unpin(context) {
                Poll::Ready(Some(item)) => portion.push(item),
                Poll::Ready(None) if portion.is_empty() => return Poll::Ready(None),
                Poll::Pending if portion.is_empty() => return Poll::Pending,
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        Poll::Ready(Some(portion))
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use futures::stream::{iter, poll_fn};

    use super::*;

    #[test]
    fn a_portion_is_what_has_come_up_to_the_most() {
        let portions: Vec<Vec<u8>> = block_on(Gathered::new(iter(0..5), 2).collect());
        assert_eq!(portions, [vec![0, 1], vec![2, 3], vec![4]]);
    }

    #[test]
    fn what_has_come_is_not_kept_back_for_what_may_come() {
        let mut polls = 0;
        let pauses_after_each = poll_fn(move |context| {
            polls += 1;
            context.waker().wake_by_ref();
            match polls {
                1 | 3 => Poll::Ready(Some(polls)),
                2 => Poll::Pending,
                _ => Poll::Ready(None),
            }
        });
        let portions: Vec<Vec<i32>> = block_on(Gathered::new(pauses_after_each, 9).collect());
        assert_eq!(portions, [[1], [3]]);
    }
}
