//! The frames of the latest changes. Many streams send the same ones, so each is built once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use atlas_service::{Change, Error, Service, View, write_frame};
use atlas_types::{EventSeq, PayloadBody};
use bytes::Bytes;

use super::portions::Portions;

/// The most frames that are kept. It covers what a stream reads at once, several times.
const FRAMES_MAX: usize = 1_024;
/// The most bytes of frames that are kept. A frame has the payloads of its job, so it can be large.
const BYTES_MAX: usize = 4 << 20;

type Key = (EventSeq, bool);

/// The frames that streams share.
#[derive(Default)]
pub(crate) struct Frames {
    kept: Mutex<Kept>,
    /// Several of them, as they are sent.
    pub(crate) portions: Portions,
}

#[derive(Default)]
struct Kept {
    frames: HashMap<Key, Bytes>,
    /// Their keys, the oldest first.
    order: VecDeque<Key>,
    bytes: usize,
    /// The last erasure that is known here.
    erased: EventSeq,
}

impl Frames {
    /// The JSON of a change. It must be one of an event, not one derived from the job's record, because its number is its key. `erased` is the
    /// last erasure before the event was read.
    pub(crate) async fn of(
        &self,
        service: &Service,
        change: &Change,
        (view, erased): (View, EventSeq),
    ) -> Result<Bytes, Error> {
        let key = (change.seq, view == View::Full);
        if let Some(frame) = self.kept().get(key, erased) {
            return Ok(frame);
        }
        let frame = build(service, change, view).await?;
        // Artifacts are large, and an erasure shall remove them at once.
        if is_inline(change) {
            self.kept().keep(key, frame.clone(), erased);
        }
        Ok(frame)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// What was kept before the last erasure is forgotten.
    fn get(&mut self, key: Key, erased: EventSeq) -> Option<Bytes> {
        if self.erased < erased {
            *self = Self { erased, ..Self::default() };
        }
        self.frames.get(&key).cloned()
    }

    fn keep(&mut self, key: Key, frame: Bytes, erased: EventSeq) {
        let size = frame.len();
        if erased < self.erased || size > BYTES_MAX || self.frames.contains_key(&key) {
            return;
        }
        self.frames.insert(key, frame);
        self.order.push_back(key);
        self.bytes += size;
        while self.order.len() > FRAMES_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.frames.remove(&oldest).map_or(0, |frame| frame.len());
        }
    }
}

/// Whether the payloads of a job are in its record.
pub(crate) fn is_inline(change: &Change) -> bool {
    let mut payloads = [Some(&change.job.input), change.job.output.as_ref()].into_iter().flatten();
    payloads.all(|payload| matches!(payload.body, PayloadBody::Inline(_)))
}

/// Builds the JSON of a change.
pub(crate) async fn build(service: &Service, change: &Change, view: View) -> Result<Bytes, Error> {
    let shown = service.show_change(change).await?;
    let mut data = Vec::with_capacity(1024);
    write_frame(&mut data, &shown, change.old_status, change.at, Some(change.change), view);
    Ok(data.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_frames_are_kept_within_both_limits() {
        let mut kept = Kept::default();
        for seq in 1..=FRAMES_MAX as u64 + 2 {
            kept.keep((EventSeq(seq), true), Bytes::from_static(b"{}"), EventSeq(0));
        }
        assert_eq!((kept.order.len(), kept.frames.len(), kept.bytes), (FRAMES_MAX, FRAMES_MAX, 2 * FRAMES_MAX));
        assert_eq!(kept.order.front(), Some(&(EventSeq(3), true)));
        kept.keep((EventSeq(9_000), false), vec![b' '; BYTES_MAX].into(), EventSeq(0));
        assert_eq!((kept.order.len(), kept.bytes), (1, BYTES_MAX));
        // A frame that is too large by itself replaces nothing.
        kept.keep((EventSeq(9_001), false), vec![b' '; BYTES_MAX + 1].into(), EventSeq(0));
        assert_eq!((kept.order.len(), kept.bytes), (1, BYTES_MAX));
    }

    #[test]
    fn frames_are_forgotten_after_an_erasure() {
        let mut kept = Kept::default();
        let (key, frame) = ((EventSeq(1), true), Bytes::from_static(b"{}"));
        kept.keep(key, frame.clone(), EventSeq(0));
        assert_eq!(kept.get(key, EventSeq(0)), Some(frame.clone()));
        assert_eq!(kept.get(key, EventSeq(5)), None);
        kept.keep(key, frame.clone(), EventSeq(0));
        assert_eq!(kept.get(key, EventSeq(5)), None, "its event was read before the erasure");
        kept.keep(key, frame.clone(), EventSeq(5));
        assert_eq!(kept.get(key, EventSeq(5)), Some(frame));
    }
}
