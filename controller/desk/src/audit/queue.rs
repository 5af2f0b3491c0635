//! Records that wait to be written, and who waits for them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use atlas_audit::{Decision, Record};
use tokio::sync::oneshot;

use super::DURABLE_MAX;
use super::limit::Limit;

/// Most records that are written with one sync.
const BATCH_MAX: usize = 1_024;
/// The longest time between two syncs while records come.
const PACE_MAX: Duration = Duration::from_millis(2);

#[derive(Default)]
pub(super) struct Queue {
    /// In their order and with the time, also those that are being written.
    waiting: VecDeque<(Duration, Arc<Record>)>,
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
    /// Whether the last write failed or is too slow. Only while something waits, because it ends when that is written.
    failing: bool,
}

/// Records that are not durable yet.
pub(super) struct Unwritten {
    /// Resolves when they are.
    pub(super) durable: oneshot::Receiver<()>,
    /// How many were put into the queue up to the last of them.
    last: u64,
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

impl Queue {
    pub(super) fn push(&mut self, record: Arc<Record>, now: Duration) {
        self.waiting.push_back((now, record));
        self.queued += 1;
    }

    /// How many records are not durable.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// What was put here so far; none if it is durable.
    pub(super) fn unwritten(&mut self) -> Option<Unwritten> {
        if self.durable == self.queued {
            return None;
        }
        let (tell, durable) = oneshot::channel();
        self.waiters.push_back((self.queued, tell));
        Some(Unwritten { durable, last: self.queued })
    }

    /// Whether these records are durable by now. Whoever waits for them may be told a little later.
    pub(super) fn has_written(&self, records: &Unwritten) -> bool {
        records.last <= self.durable
    }

    /// Whether changes are refused.
    pub(super) fn is_failing(&self) -> bool {
        self.failing
    }

    /// Refuses changes until what waits is written. Returns whether they were accepted before.
    pub(super) fn fail(&mut self) -> bool {
        let failed = !self.failing && !self.waiting.is_empty();
        self.failing |= failed;
        failed
    }

    /// Whether a record waits longer than its caller.
    pub(super) fn is_late(&self, now: Duration) -> bool {
        self.waiting.front().is_some_and(|(since, _)| now.saturating_sub(*since) > DURABLE_MAX)
    }

    /// Whether there is something to write. Dropped denials are told with others, or alone if `alone`.
    pub(super) fn has_work(&mut self, alone: bool, now: Duration, at_ms: u64) -> bool {
        if self.dropped > 0 && (alone || !self.waiting.is_empty()) {
            let count = std::mem::take(&mut self.dropped);
            self.push(Arc::new(dropped(count, at_ms)), now);
        }
        !self.waiting.is_empty()
    }

    /// The next records to write. They stay here until they are durable.
    pub(super) fn batch(&self) -> Vec<Arc<Record>> {
        self.waiting.iter().take(BATCH_MAX).map(|(_, record)| record.clone()).collect()
    }

    /// Takes out so many records, which are durable. Returns who waits for them, and whether changes are accepted again.
    pub(super) fn written(&mut self, count: usize, now: Duration) -> (Vec<oneshot::Sender<()>>, bool) {
        self.waiting.drain(..count.min(self.waiting.len()));
        self.durable += count as u64;
        let told = self.waiters.partition_point(|(last, _)| *last <= self.durable);
        let recovers = self.failing && !self.is_late(now);
        self.failing &= !recovers;
        (self.waiters.drain(..told).map(|(_, waiter)| waiter).collect(), recovers)
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

    const NOW: Duration = Duration::ZERO;

    fn records(queue: &mut Queue, count: u64) {
        (0..count).for_each(|at| queue.push(Arc::new(dropped(at, 0)), NOW));
    }

    fn tell_written(queue: &mut Queue, count: usize) -> usize {
        let (told, _) = queue.written(count, NOW);
        told.into_iter().map(|waiter| waiter.send(()).expect("it waits")).count()
    }

    #[test]
    fn who_waits_is_told_when_the_last_of_its_records_is_durable() {
        let mut queue = Queue::default();
        assert!(queue.unwritten().is_none(), "there is nothing to wait for");
        records(&mut queue, 2);
        let mut first = queue.unwritten().expect("two are waiting").durable;
        records(&mut queue, 1);
        let mut second = queue.unwritten().expect("three are waiting").durable;
        assert_eq!(queue.batch().len(), 3);
        tell_written(&mut queue, 1);
        assert!(first.try_recv().is_err());
        tell_written(&mut queue, 1);
        assert!(first.try_recv().is_ok() && second.try_recv().is_err());
        assert_eq!((tell_written(&mut queue, 1), queue.len()), (1, 0));
        assert!(queue.unwritten().is_none());
    }

    #[test]
    fn many_records_are_several_batches_and_drops_are_told_with_them() {
        let mut queue = Queue { dropped: 7, ..Queue::default() };
        assert!(!queue.has_work(false, NOW, 1));
        records(&mut queue, BATCH_MAX as u64);
        assert!(queue.has_work(false, NOW, 1) && queue.dropped == 0);
        assert_eq!(queue.batch().len(), BATCH_MAX);
        tell_written(&mut queue, BATCH_MAX);
        assert_eq!(queue.batch().iter().map(|record| record.count).collect::<Vec<_>>(), [7]);
        let mut alone = Queue { dropped: 1, ..Queue::default() };
        assert!(alone.has_work(true, NOW, 1) && alone.len() == 1);
    }

    #[test]
    fn changes_are_refused_only_while_something_waits() {
        let mut queue = Queue::default();
        assert!(!queue.fail() && !queue.is_failing(), "no write would end it");
        records(&mut queue, 1);
        queue.push(Arc::new(dropped(1, 0)), DURABLE_MAX);
        assert!(queue.fail() && !queue.fail() && queue.is_failing());
        assert!(!queue.is_late(DURABLE_MAX));
        let late = DURABLE_MAX + Duration::from_nanos(1);
        assert!(queue.is_late(late));
        let (told, recovers) = queue.written(1, 3 * DURABLE_MAX);
        assert!(told.is_empty() && !recovers && queue.is_failing(), "the second waits too long by now");
        assert!(queue.written(1, 3 * DURABLE_MAX).1 && !queue.is_failing() && !queue.is_late(3 * DURABLE_MAX));
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
