//! Delivers applied entries to subscribers on other threads.
//!
//! Most entries concern few subscribers: the history can wait, waiters need the ends of jobs, and the worker door needs
//! leases. Waking their threads costs more than applying the entry, on every member. Therefore a subscriber names the
//! entries for which it is woken ([`Batches::subscribe_to`]). The others are delivered together, after [`HELD`] or with
//! the next entry that a subscriber needs at once. All subscribers receive the same entries in the same order.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_env::Clock;
use atlas_state::State;
use atlas_types::{EventRecord, EventSeq, Seq};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast};

/// An entry that this member has applied: its events and the resulting state.
#[derive(Debug, Clone)]
pub struct AppliedBatch {
    /// The Raft index of the entry.
    pub index: u64,
    /// The number of entries in the state, including this one.
    pub seq: Seq,
    /// The events of the entry, in order. Empty for an entry that changed nothing and for a state installed from a
    /// snapshot.
    pub events: Arc<[EventRecord]>,
    /// The state after the entry.
    pub state: State,
}

/// The longest delay of an entry that no subscriber needs at once.
const HELD: Duration = Duration::from_millis(4);
/// The most entries that are delayed together.
const HELD_MAX: usize = 64;
/// The most entries that are stored for the history. A history that is further behind after a crash has a gap and
/// reports it.
const EARLY_MAX: usize = 4_096;

/// Decides whether a subscriber needs an entry at once.
type Urgent = Box<dyn Fn(&AppliedBatch) -> bool + Send + Sync>;

/// Distributes applied entries to subscribers, and stores entries for the history until the history subscribes. Cheap
/// to clone.
#[derive(Clone)]
pub(crate) struct Batches {
    shared: Arc<Shared>,
}

struct Shared {
    sender: broadcast::Sender<Arc<AppliedBatch>>,
    inner: Mutex<Inner>,
    /// Notified when an entry is delayed.
    holds: Notify,
    /// Entries up to this event are not stored for the history.
    from: EventSeq,
}

struct Inner {
    early: Option<VecDeque<Arc<AppliedBatch>>>,
    held: Vec<Arc<AppliedBatch>>,
    /// The filters of subscribers that accept delayed entries, by subscriber number.
    urgent: Vec<(u64, Urgent)>,
    next: u64,
}

impl Batches {
    /// Stores entries after `from` for the history, if this member has one.
    pub(crate) fn new(capacity: usize, history: bool, from: EventSeq) -> Self {
        let (sender, _) = broadcast::channel(capacity);
        let inner = Inner { early: history.then(VecDeque::new), held: Vec::new(), urgent: Vec::new(), next: 0 };
        Self { shared: Arc::new(Shared { sender, inner: Mutex::new(inner), holds: Notify::new(), from }) }
    }

    /// Sends an entry to subscribers, at once or after a delay.
    pub(crate) fn send(&self, batch: AppliedBatch) {
        let batch = Arc::new(batch);
        let Shared { sender, holds, from, .. } = &*self.shared;
        // The lock is held while sending, so that a history that reads the stored entries misses none and sees none
        // twice.
        let mut inner = self.lock();
        if let Some(early) = inner.early.as_mut()
            && follows(&batch.events, *from)
        {
            if early.len() == EARLY_MAX {
                early.pop_front();
            }
            early.push_back(Arc::clone(&batch));
        }
        // A subscriber without a filter gets every entry at once.
        let patient = sender.receiver_count() <= inner.urgent.len();
        let waits = patient && inner.held.len() < HELD_MAX && !inner.urgent.iter().any(|(_, urgent)| urgent(&batch));
        inner.held.push(batch);
        if !waits {
            inner.tell(sender);
        } else if inner.held.len() == 1 {
            holds.notify_one();
        }
    }

    /// True if the history lacks an entry with these events. Nobody else has subscribed while the log is replayed.
    pub(crate) fn keeps_early(&self, events: &[EventRecord]) -> bool {
        follows(events, self.shared.from) && self.lock().early.is_some()
    }

    /// Sends the delayed entries.
    pub(crate) fn flush(&self) {
        self.lock().tell(&self.shared.sender);
    }

    /// Sends delayed entries after [`HELD`]. Never completes.
    pub(crate) async fn flush_in_time(self, clock: Arc<dyn Clock>) {
        loop {
            self.shared.holds.notified().await;
            clock.sleep(HELD).await;
            self.flush();
        }
    }

    /// Subscribes to entries from now on. Each entry is sent at once.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<AppliedBatch>> {
        let mut inner = self.lock();
        inner.tell(&self.shared.sender);
        self.shared.sender.subscribe()
    }

    /// Subscribes to entries from now on. Entries that are not `urgent` may be delayed.
    pub(crate) fn subscribe_to(&self, urgent: impl Fn(&AppliedBatch) -> bool + Send + Sync + 'static) -> Subscription {
        self.patient(&mut self.lock(), Box::new(urgent))
    }

    /// The stored entries that the history does not have yet, and a subscription to later entries, which may be
    /// delayed.
    pub(crate) fn subscribe_from_start(&self) -> (Vec<Arc<AppliedBatch>>, Subscription) {
        let mut inner = self.lock();
        let early = inner.early.take().unwrap_or_default().into();
        (early, self.patient(&mut inner, Box::new(|_| false)))
    }

    fn patient(&self, inner: &mut Inner, urgent: Urgent) -> Subscription {
        // The delayed entries are older than this subscription.
        inner.tell(&self.shared.sender);
        let number = inner.next;
        inner.next += 1;
        inner.urgent.push((number, urgent));
        Subscription { receiver: self.shared.sender.subscribe(), batches: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if some of `events` come after `from`.
fn follows(events: &[EventRecord], from: EventSeq) -> bool {
    events.last().is_some_and(|event| event.seq > from)
}

impl Inner {
    fn tell(&mut self, sender: &broadcast::Sender<Arc<AppliedBatch>>) {
        for batch in self.held.drain(..) {
            // Sending fails only when there are no subscribers.
            let _ = sender.send(batch);
        }
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batches({} kept back)", self.lock().held.len())
    }
}

/// Applied entries for a subscriber that needs only some of them.
#[derive(Debug)]
pub struct Subscription {
    receiver: broadcast::Receiver<Arc<AppliedBatch>>,
    batches: Batches,
    number: u64,
}

impl Subscription {
    /// The next entry; [`RecvError::Lagged`] if it was missed.
    pub async fn recv(&mut self) -> Result<Arc<AppliedBatch>, RecvError> {
        self.receiver.recv().await
    }

    /// True if every entry applied so far has been received.
    pub fn is_empty(&self) -> bool {
        self.batches.flush();
        self.receiver.is_empty()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut inner = self.batches.lock();
        let at = inner.urgent.iter().position(|(number, _)| *number == self.number);
        let gone = at.map(|at| inner.urgent.swap_remove(at));
        // The filter is dropped outside the lock, because dropping the values it captured may run other code.
        drop(inner);
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use atlas_env::Env;
    use tokio::sync::broadcast::error::TryRecvError;
    use tokio::time::Instant;

    use super::*;

    fn batch(index: u64) -> AppliedBatch {
        AppliedBatch { index, seq: Seq(index), events: Arc::from([]), state: State::new(7) }
    }

    fn batches() -> Batches {
        Batches::new(2 * HELD_MAX, false, EventSeq(0))
    }

    fn told(subscription: &mut Subscription) -> Vec<u64> {
        std::iter::from_fn(|| subscription.receiver.try_recv().ok()).map(|batch| batch.index).collect()
    }

    #[test]
    fn what_nobody_wants_comes_with_what_somebody_wants() {
        let batches = batches();
        let mut patient = batches.subscribe_to(|_| false);
        let mut urgent = batches.subscribe_to(|batch| batch.index.is_multiple_of(3));
        (1..=2).for_each(|index| batches.send(batch(index)));
        assert_eq!((told(&mut patient), told(&mut urgent)), (vec![], vec![]));
        (3..=4).for_each(|index| batches.send(batch(index)));
        assert_eq!((told(&mut patient), told(&mut urgent)), (vec![1, 2, 3], vec![1, 2, 3]));
        drop(urgent);
        (5..=6).for_each(|index| batches.send(batch(index)));
        assert_eq!(told(&mut patient), [0; 0], "who wanted it is gone");
        assert!(!patient.is_empty(), "whoever asks is told everything");
        assert_eq!(told(&mut patient), [4, 5, 6]);
    }

    #[test]
    fn a_new_subscriber_is_told_nothing_of_before_and_one_that_did_not_say_is_told_at_once() {
        let batches = batches();
        let mut patient = batches.subscribe_to(|_| false);
        batches.send(batch(1));
        let mut plain = batches.subscribe();
        assert_eq!((told(&mut patient), plain.try_recv().err()), (vec![1], Some(TryRecvError::Empty)));
        batches.send(batch(2));
        assert_eq!((told(&mut patient), plain.try_recv().map(|batch| batch.index)), (vec![2], Ok(2)));
        drop(plain);
        batches.send(batch(3));
        let mut later = batches.subscribe_to(|_| true);
        batches.send(batch(4));
        assert_eq!((told(&mut patient), told(&mut later)), (vec![3, 4], vec![4]));
    }

    #[test]
    fn only_so_many_are_kept_back() {
        let batches = batches();
        let mut patient = batches.subscribe_to(|_| false);
        (0..=HELD_MAX as u64).for_each(|index| batches.send(batch(index)));
        assert_eq!(told(&mut patient).len(), HELD_MAX + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_wants_comes_soon() {
        let batches = batches();
        let wanted = Arc::new(AtomicBool::new(false));
        let urgent = {
            let wanted = Arc::clone(&wanted);
            move |_: &AppliedBatch| wanted.load(Ordering::Relaxed)
        };
        let mut patient = batches.subscribe_to(urgent);
        let env = Env::system();
        let flushing = env.spawn("flush", batches.clone().flush_in_time(Arc::clone(&env.clock)));
        let begun = Instant::now();
        batches.send(batch(1));
        batches.send(batch(2));
        assert_eq!(patient.recv().await.map(|batch| batch.index), Ok(1));
        assert_eq!(patient.recv().await.map(|batch| batch.index), Ok(2));
        assert!(begun.elapsed() >= HELD && begun.elapsed() < 2 * HELD);
        wanted.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        batches.send(batch(3));
        assert_eq!(patient.recv().await.map(|batch| batch.index), Ok(3));
        assert_eq!(begun.elapsed(), Duration::ZERO);
        flushing.abort();
    }
}
