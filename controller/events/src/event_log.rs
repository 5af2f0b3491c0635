//! The latest events, in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atlas_types::{EventRecord, EventSeq};
use tokio::sync::watch;

/// The latest events, in memory.
pub struct EventLog {
    recent: Mutex<Recent>,
    latest: watch::Sender<EventSeq>,
    max: usize,
}

struct Recent {
    batches: VecDeque<Arc<[EventRecord]>>,
    count: usize,
    /// The last event before those in memory.
    floor: EventSeq,
}

impl EventLog {
    /// One after this event, with at most so many.
    pub fn new(through: EventSeq, max: usize) -> Self {
        let recent = Recent { batches: VecDeque::new(), count: 0, floor: through };
        Self { recent: Mutex::new(recent), latest: watch::Sender::new(through), max }
    }

    /// Adds the events of an entry.
    pub fn push(&self, events: &Arc<[EventRecord]>) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return };
        let mut recent = self.lock();
        if last.seq <= *self.latest.borrow() {
            return;
        }
        if first.seq != self.latest.borrow().next() {
            *recent = Recent { batches: VecDeque::new(), count: 0, floor: EventSeq(first.seq.0.saturating_sub(1)) };
        }
        recent.count += events.len();
        recent.batches.push_back(events.clone());
        while recent.count > self.max && recent.batches.len() > 1 {
            let Some(dropped) = recent.batches.pop_front() else { break };
            recent.count -= dropped.len();
            recent.floor = dropped.last().map_or(recent.floor, |event| event.seq);
        }
        self.latest.send_replace(last.seq);
    }

    /// Empties the log after events were missed, because the events in memory would not be consecutive with the next
    /// ones.
    pub fn reset(&self, through: EventSeq) {
        let mut recent = self.lock();
        *recent = Recent { batches: VecDeque::new(), count: 0, floor: through };
        self.latest.send_replace(through);
    }

    /// Applies `pick` to up to `limit` events after `after`. Returns the results and the new cursor, or none if the
    /// events are no longer in memory.
    pub fn after<T>(
        &self,
        after: EventSeq,
        limit: usize,
        pick: impl Fn(&EventRecord) -> Option<T>,
    ) -> Option<(Vec<T>, EventSeq)> {
        let batches = self.batches_after(after, limit)?;
        let mut cursor = after;
        let mut found = Vec::new();
        let seen = batches.first().map_or(0, |first| first.partition_point(|event| event.seq <= after));
        for event in batches.iter().flat_map(|batch| batch.iter()).skip(seen).take(limit) {
            cursor = event.seq;
            found.extend(pick(event));
        }
        Some((found, cursor))
    }

    /// The batches with up to `limit` events after `after`, of which the first may have earlier ones too; none if they are no longer in
    /// memory. Events are examined without the lock, because thousands of readers may do so at the same time.
    fn batches_after(&self, after: EventSeq, limit: usize) -> Option<Vec<Arc<[EventRecord]>>> {
        let recent = self.lock();
        if after < recent.floor {
            return None;
        }
        let start = recent.batches.partition_point(|batch| batch.last().is_none_or(|last| last.seq <= after));
        let through = EventSeq(after.0.saturating_add(limit as u64));
        let batches = recent.batches.range(start..);
        Some(batches.take_while(|batch| batch.first().is_some_and(|first| first.seq <= through)).cloned().collect())
    }

    /// True if the events after `after` are still in memory.
    pub fn reaches(&self, after: EventSeq) -> bool {
        after >= self.lock().floor
    }

    /// The last event in it, as it changes.
    pub fn latest(&self) -> watch::Receiver<EventSeq> {
        self.latest.subscribe()
    }

    /// Whether there are readers of events.
    pub fn has_readers(&self) -> bool {
        self.latest.receiver_count() > 0
    }

    fn lock(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use atlas_types::{Event, Timestamp};

    use super::*;

    /// Events with these numbers.
    fn batch(numbers: std::ops::RangeInclusive<u64>) -> Arc<[EventRecord]> {
        let event = |seq| {
            let node = "n1".parse().expect("a name");
            EventRecord { seq: EventSeq(seq), at: Timestamp(1), event: Event::NodeRemoved { node } }
        };
        numbers.map(event).collect()
    }

    fn check(log: &EventLog, after: u64, limit: usize, expected: Option<(&[u64], u64)>) {
        let found = log.after(EventSeq(after), limit, |event| Some(event.seq.0));
        let expected = expected.map(|(numbers, cursor)| (numbers.to_vec(), EventSeq(cursor)));
        assert_eq!(found, expected, "after {after}, at most {limit}");
    }

    #[test]
    fn a_reader_continues_inside_a_batch_and_over_its_end() {
        let log = EventLog::new(EventSeq(0), 100);
        for numbers in [1..=3, 4..=4, 5..=9] {
            log.push(&batch(numbers));
        }
        check(&log, 0, 100, Some((&[1, 2, 3, 4, 5, 6, 7, 8, 9], 9)));
        check(&log, 1, 2, Some((&[2, 3], 3)));
        check(&log, 2, 3, Some((&[3, 4, 5], 5)));
        check(&log, 6, 100, Some((&[7, 8, 9], 9)));
        check(&log, 9, 100, Some((&[], 9)));
        let odd = log.after(EventSeq(2), 4, |event| (event.seq.0 % 2 == 1).then_some(event.seq.0));
        assert_eq!(odd, Some((vec![3, 5], EventSeq(6))), "the cursor passes what is not picked");
    }

    #[test]
    fn what_left_the_memory_is_not_told() {
        let log = EventLog::new(EventSeq(10), 4);
        check(&log, 9, 1, None);
        log.push(&batch(11..=13));
        log.push(&batch(14..=16));
        check(&log, 10, 9, None);
        check(&log, 13, 9, Some((&[14, 15, 16], 16)));
        // Told again, and then after a gap.
        log.push(&batch(14..=16));
        log.push(&batch(20..=20));
        check(&log, 16, 9, None);
        check(&log, 19, 9, Some((&[20], 20)));
        log.reset(EventSeq(30));
        check(&log, 20, 9, None);
        check(&log, 30, 9, Some((&[], 30)));
    }
}
