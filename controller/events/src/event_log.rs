//! The latest events, in memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atlas_types::{Event, EventRecord, EventSeq, JobId};
use tokio::sync::watch;

/// The latest events, in memory.
pub struct EventLog {
    recent: Mutex<Recent>,
    latest: watch::Sender<EventSeq>,
    /// The last event that erased others.
    erased: AtomicU64,
    max: usize,
}

struct Recent {
    batches: VecDeque<Arc<[EventRecord]>>,
    count: usize,
    /// The last event before those in memory.
    floor: EventSeq,
}

impl Recent {
    /// Forgets what an event erases: the events of one job, or all before it, because an event of a step does not tell its namespace. Readers
    /// find the others in the history, where the same is erased.
    fn erase(&mut self, by: EventSeq, job: Option<JobId>) {
        let Some(job) = job else {
            self.keep(|event| event.seq >= by);
            self.floor = self.floor.max(EventSeq(by.0.saturating_sub(1)));
            return;
        };
        self.keep(|event| event.seq >= by || job_of(&event.event) != Some(job));
    }

    /// The numbers of what is kept have gaps then. The last event is never in one: it is what erases, or comes after it.
    fn keep(&mut self, kept: impl Fn(&EventRecord) -> bool) {
        for batch in &mut self.batches {
            if !batch.iter().all(&kept) {
                *batch = batch.iter().filter(|event| kept(event)).cloned().collect();
            }
        }
        self.batches.retain(|batch| !batch.is_empty());
        self.count = self.batches.iter().map(|batch| batch.len()).sum();
    }
}

/// The job whose data an event contains.
fn job_of(event: &Event) -> Option<JobId> {
    match event {
        Event::Job { job, .. } => Some(job.id),
        Event::QuestionAsked { question } | Event::QuestionEnded { question } => Some(question.job),
        Event::StepsRecorded { job, .. } | Event::StepsFolded { job, .. } | Event::MessageDelivered { job, .. } => {
            Some(*job)
        }
        Event::ObjectPut { object } | Event::ObjectDeleted { object } => object.writer(),
        _ => None,
    }
}

impl EventLog {
    /// One after this event, with at most so many.
    pub fn new(through: EventSeq, max: usize) -> Self {
        let recent = Recent { batches: VecDeque::new(), count: 0, floor: through };
        Self { recent: Mutex::new(recent), latest: watch::Sender::new(through), erased: AtomicU64::new(0), max }
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
        for event in events.iter() {
            if let Event::Erased { job, .. } = &event.event {
                recent.erase(event.seq, *job);
                self.erased.fetch_max(event.seq.0, Ordering::Release);
            }
        }
        self.latest.send_replace(last.seq);
    }

    /// The last event that erased others; 0 if there was none. What was made of events that were read before it has to be forgotten.
    pub fn erased(&self) -> EventSeq {
        EventSeq(self.erased.load(Ordering::Acquire))
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
        // The numbers of events have gaps after an erasure, so they are counted. The first batch may have only one that comes later.
        let mut left = limit.saturating_add(1);
        let batches = recent.batches.range(start..).enumerate().take_while(|(place, batch)| {
            let is_wanted = left > 0;
            left = left.saturating_sub(if *place == 0 { 1 } else { batch.len() });
            is_wanted
        });
        Some(batches.map(|(_, batch)| Arc::clone(batch)).collect())
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
    use atlas_types::{MessageId, Namespace, Timestamp};

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

    fn delivered(seq: u64, job: u64) -> Arc<[EventRecord]> {
        let message = MessageId::new("m1").expect("an id");
        let event = Event::MessageDelivered { job: JobId(job), message, number: 0 };
        [EventRecord { seq: EventSeq(seq), at: Timestamp(1), event }].into()
    }

    fn erasing(seq: u64, job: Option<u64>) -> Arc<[EventRecord]> {
        let event = Event::Erased { namespace: Namespace::default_namespace(), job: job.map(JobId) };
        [EventRecord { seq: EventSeq(seq), at: Timestamp(1), event }].into()
    }

    #[test]
    fn events_of_an_erased_job_are_forgotten() {
        let log = EventLog::new(EventSeq(0), 100);
        for events in [delivered(1, 7), delivered(2, 8), delivered(3, 7)] {
            log.push(&events);
        }
        assert_eq!(log.erased(), EventSeq(0));
        log.push(&erasing(4, Some(7)));
        log.push(&delivered(5, 7));
        check(&log, 0, 100, Some((&[2, 4, 5], 5)));
        check(&log, 2, 1, Some((&[4], 4)));
        assert_eq!(log.erased(), EventSeq(4));
    }

    #[test]
    fn all_events_before_the_erasure_of_a_namespace_are_forgotten() {
        let log = EventLog::new(EventSeq(0), 100);
        log.push(&batch(1..=3));
        log.push(&erasing(4, None));
        log.push(&batch(5..=6));
        check(&log, 2, 100, None);
        check(&log, 3, 100, Some((&[4, 5, 6], 6)));
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
