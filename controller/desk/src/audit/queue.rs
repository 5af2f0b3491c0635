//! Records that wait to be written, and who waits for them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use atlas_audit::{Decision, Record};
use tokio::sync::oneshot;

use super::limit::Limit;

/// Most records that are written with one sync.
const BATCH_MAX: usize = 1_024;
/// The longest time between two syncs while records come.
const PACE_MAX: Duration = Duration::from_millis(2);

#[derive(Default)]
pub(super) struct Queue {
    /// In their order, also those that are being written.
    waiting: VecDeque<Arc<Record>>,
    /// How many were ever put here.
    queued: u64,
    /// How many of them are durable.
    durable: u64,
    /// Who waits until so many are durable, in this order.
    waiters: VecDeque<(u64, oneshot::Sender<()>)>,
    pub(super) limit: Limit,
    /// Denials that were not recorded since the last record about them.
    pub(super) dropped: u64,
    pub(super) writing: Writing,
}

/// What the writer does.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// Nothing was written for a while: the task starts a thread.
    #[default]
    Rests,
    /// The thread waits for more.
    Waits,
    /// It writes, and looks here afterwards.
    Writes,
}

/// Resolves when records are durable; none if they are already.
pub(super) type Durable = Option<oneshot::Receiver<()>>;

impl Queue {
    pub(super) fn push(&mut self, record: Arc<Record>) {
        self.waiting.push_back(record);
        self.queued += 1;
    }

    /// How many records are not durable.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Waits for what was put here so far.
    pub(super) fn durable(&mut self) -> Durable {
        if self.durable == self.queued {
            return None;
        }
        let (tell, told) = oneshot::channel();
        self.waiters.push_back((self.queued, tell));
        Some(told)
    }

    /// Whether there is something to write. Dropped denials are told with others, or alone if `alone`.
    pub(super) fn has_work(&mut self, alone: bool, at_ms: u64) -> bool {
        if self.dropped > 0 && (alone || !self.waiting.is_empty()) {
            let count = std::mem::take(&mut self.dropped);
            self.push(Arc::new(dropped(count, at_ms)));
        }
        !self.waiting.is_empty()
    }

    /// The next records to write. They stay here until they are durable.
    pub(super) fn batch(&self) -> Vec<Arc<Record>> {
        self.waiting.iter().take(BATCH_MAX).cloned().collect()
    }

    /// Takes out so many records, which are durable. Returns who waits for them.
    pub(super) fn written(&mut self, count: usize) -> Vec<oneshot::Sender<()>> {
        self.waiting.drain(..count.min(self.waiting.len()));
        self.durable += count as u64;
        let told = self.waiters.partition_point(|(last, _)| *last <= self.durable);
        self.waiters.drain(..told).map(|(_, waiter)| waiter).collect()
    }
}

/// A record of denials that were not recorded one by one.
fn dropped(count: u64, at_ms: u64) -> Record {
    Record {
        at_ms,
        principal: String::new(),
        on_behalf_of: String::new(),
        namespace: String::new(),
        door: String::new(),
        verb: String::new(),
        object: String::new(),
        decision: Decision::Dropped,
        code: String::new(),
        request_id: String::new(),
        count,
    }
}

/// The time between two syncs: about as long as a request takes to be committed, so that a record is durable when its request is.
///
/// A sync costs as much processor time as dozens of records, and a client that has one request at a time never waits: when it comes
/// again, that much time has passed.
#[derive(Debug, Default)]
pub(super) struct Pace(AtomicU64);

impl Pace {
    /// Counts how long a request took, into an average of about eight of them.
    pub(super) fn took(&self, took: Duration) {
        let took = u64::try_from(took.min(PACE_MAX).as_nanos()).unwrap_or(0);
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before - before / 8 + took / 8, Ordering::Relaxed);
    }

    pub(super) fn between_syncs(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed)).min(PACE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(queue: &mut Queue, count: u64) {
        (0..count).for_each(|at| queue.push(Arc::new(dropped(at, 0))));
    }

    #[test]
    fn who_waits_is_told_when_the_last_of_its_records_is_durable() {
        let mut queue = Queue::default();
        assert!(queue.durable().is_none(), "there is nothing to wait for");
        records(&mut queue, 2);
        let mut first = queue.durable().expect("two are waiting");
        records(&mut queue, 1);
        let mut second = queue.durable().expect("three are waiting");
        assert_eq!(queue.batch().len(), 3);
        queue.written(1).into_iter().for_each(|waiter| waiter.send(()).expect("it waits"));
        assert!(first.try_recv().is_err());
        queue.written(1).into_iter().for_each(|waiter| waiter.send(()).expect("it waits"));
        assert!(first.try_recv().is_ok() && second.try_recv().is_err());
        assert_eq!((queue.written(1).len(), queue.len()), (1, 0));
        assert!(queue.durable().is_none());
    }

    #[test]
    fn many_records_are_several_batches_and_drops_are_told_with_them() {
        let mut queue = Queue { dropped: 7, ..Queue::default() };
        assert!(!queue.has_work(false, 1));
        records(&mut queue, BATCH_MAX as u64);
        assert!(queue.has_work(false, 1) && queue.dropped == 0);
        assert_eq!(queue.batch().len(), BATCH_MAX);
        queue.written(BATCH_MAX);
        assert_eq!(queue.batch().iter().map(|record| record.count).collect::<Vec<_>>(), [7]);
        let mut alone = Queue { dropped: 1, ..Queue::default() };
        assert!(alone.has_work(true, 1) && alone.len() == 1);
    }

    #[test]
    fn the_pace_follows_what_requests_take_up_to_a_bound() {
        let pace = Pace::default();
        assert_eq!(pace.between_syncs(), Duration::ZERO);
        (0..64).for_each(|_| pace.took(Duration::from_micros(800)));
        let now = pace.between_syncs();
        assert!((Duration::from_micros(700)..=Duration::from_micros(800)).contains(&now), "{now:?}");
        (0..64).for_each(|_| pace.took(Duration::from_secs(5)));
        assert!(pace.between_syncs() <= PACE_MAX && pace.between_syncs() > Duration::from_micros(1_900));
    }
}
