//! The journal of a run whose work ends in any order. A result is found by the key of its work, which depends on the work alone; so it
//! does not matter in which order a later attempt asks. The job parks when all its open work waits for jobs or people.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_env::Clock;
use atlas_types::{SpawnStep, StepKey, StepKind, StepUsage, Timestamp, Wait};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, Notify};

use super::steps::{self, Steps};
use super::{Asker, Begun, ChildCall, Journal, JournalError, Made, Received, hashed};
use crate::mailbox::Answer;

/// The journal of a run.
pub(crate) struct Book {
    journal: AsyncMutex<Journal>,
    asker: Asker,
    clock: Arc<dyn Clock>,
    slept_until: Timestamp,
    inside: Mutex<Inside>,
    /// Told when the open work or its waits have changed.
    changed: Notify,
    /// Told when the journal has failed.
    failed: Notify,
}

#[derive(Default)]
struct Inside {
    known: BTreeMap<StepKey, Arc<[u8]>>,
    /// How often equal requests were made.
    repeats: BTreeMap<StepKey, u32>,
    /// Pieces of work that were begun and do not wait.
    active: usize,
    /// How many of these are model calls.
    calls: usize,
    /// For how long all active work called models, until `seen`.
    only_called: Duration,
    /// The monotonic clock when `active` or `calls` last changed.
    seen: Duration,
    /// How much of `only_called` has passed that is left out because calls in it were in vain, or came before such a part.
    left_out: Duration,
    waits: BTreeMap<u64, Awaited>,
    last: u64,
    failure: Option<JournalError>,
}

impl Inside {
    /// Counts the time that has passed. Before each change of `active` and `calls`.
    fn see(&mut self, now: Duration) {
        if self.calls > 0 && self.calls >= self.active {
            self.only_called = self.only_called.saturating_add(now.saturating_sub(self.seen));
        }
        self.seen = self.seen.max(now);
    }
}

/// What a piece of work waits for.
struct Awaited {
    waits: Vec<Wait>,
    /// Since when, if it waited before it said so.
    since: Option<Duration>,
}

/// A step that an earlier attempt recorded: its kind, its key and its outcome.
pub(crate) type RecordedStep = (StepKind, StepKey, Arc<[u8]>);

/// Most waits of a parked job.
const WAITS_MAX: usize = 64;

/// How long the run waits for the news of a wait that is over, before it asks again.
const PAUSE: Duration = Duration::from_millis(100);

impl Book {
    /// The book of an attempt, and what earlier attempts recorded, in its order.
    pub(crate) async fn open(
        mut journal: Journal,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Vec<RecordedStep>), JournalError> {
        let recorded = journal.drain().await?;
        let known = recorded.iter().map(|(_, key, outcome)| (*key, Arc::clone(outcome))).collect();
        let book = Self {
            asker: journal.asker(),
            clock,
            slept_until: journal.slept_until(),
            journal: AsyncMutex::new(journal),
            inside: Mutex::new(Inside { known, ..Inside::default() }),
            changed: Notify::new(),
            failed: Notify::new(),
        };
        Ok((book, recorded))
    }

    /// Notes that recorded steps have read so many messages.
    pub(crate) async fn note_read(&self, read: u64) {
        self.journal.lock().await.note_read(read);
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        // Every change is complete while the lock is held.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is inside, before active work or its calls change.
    fn changing(&self) -> MutexGuard<'_, Inside> {
        let mut inside = self.inside();
        inside.see(self.clock.monotonic());
        inside
    }

    /// The outcome of a step: the recorded one, or that of `make`, once it is recorded.
    pub(crate) async fn step<F, E>(
        &self,
        kind: StepKind,
        key: StepKey,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<[u8]>, E>
    where
        F: Future<Output = Result<Made, E>>,
        E: From<JournalError>,
    {
        let mut steps = self;
        steps::once(&mut steps, (kind, key), make).await
    }

    /// A recorded outcome.
    pub(crate) fn known(&self, key: StepKey) -> Option<Arc<[u8]>> {
        self.inside().known.get(&key).cloned()
    }

    pub(crate) async fn record(
        &self,
        kind: StepKind,
        key: StepKey,
        outcome: Vec<u8>,
        usage: StepUsage,
    ) -> Result<Arc<[u8]>, JournalError> {
        let outcome = self.journal.lock().await.record(kind, key, outcome, usage).await?;
        self.inside().known.insert(key, Arc::clone(&outcome));
        Ok(outcome)
    }

    /// Records an outcome that has read the next message of the job.
    pub(crate) async fn record_read(
        &self,
        kind: StepKind,
        key: StepKey,
        outcome: Vec<u8>,
        usage: StepUsage,
    ) -> Result<Arc<[u8]>, JournalError> {
        let mut journal = self.journal.lock().await;
        let outcome = journal.record(kind, key, outcome, usage).await?;
        journal.note_read(1);
        self.inside().known.insert(key, Arc::clone(&outcome));
        Ok(outcome)
    }

    /// How long it is until a time; none if it has come, here or at the leader.
    pub(crate) fn left(&self, until: Timestamp) -> Option<Duration> {
        let left = u64::try_from(until.0.saturating_sub(self.clock.wall().0)).ok().filter(|left| *left > 0);
        left.filter(|_| until > self.slept_until).map(Duration::from_micros)
    }

    /// Takes all messages that the job has now, and records what `make` says of them.
    pub(crate) async fn read_messages(
        &self,
        key: StepKey,
        make: impl FnOnce(Vec<Received>) -> Result<Vec<u8>, JournalError>,
    ) -> Result<Arc<[u8]>, JournalError> {
        let mut journal = self.journal.lock().await;
        let received = journal.unread().await?;
        let read = received.len() as u64;
        let outcome = journal.record(StepKind::Effect, key, make(received)?, StepUsage::default()).await?;
        journal.note_read(read);
        self.inside().known.insert(key, Arc::clone(&outcome));
        Ok(outcome)
    }

    /// Begins waits for jobs and people.
    pub(crate) fn asker(&self) -> &Asker {
        &self.asker
    }

    /// The key of a request. An equal request of the same work has another one.
    pub(crate) fn key(&self, asked: &impl Serialize) -> StepKey {
        let key = hashed(asked);
        let count = {
            let mut inside = self.inside();
            let count = inside.repeats.entry(key).or_default();
            *count += 1;
            *count
        };
        if count == 1 { key } else { hashed(&(key.0, count)) }
    }

    /// Begins a piece of work, which goes on until what is returned is dropped. Before the only one, the job may leave a node that drains.
    pub(crate) async fn begin(&self) -> Result<Working<'_>, JournalError> {
        let mut working = Working { book: self, counts: false };
        working.count(true);
        let alone = {
            let inside = self.inside();
            inside.active == 1 && inside.waits.is_empty()
        };
        // Not before the leader has answered, if it was asked to park the job for the waits of other work.
        let mut journal = self.journal.lock().await;
        if alone {
            journal.may_leave().await?;
        }
        Ok(working)
    }

    /// Runs a job, and waits for its end.
    pub(crate) async fn child(&self, key: StepKey, call: ChildCall) -> Result<Answer, JournalError> {
        self.answer(self.asker.child(SpawnStep { number: 0, key }, call).await?).await
    }

    /// Cancels a job that [`child`](Self::child) waited for.
    pub(crate) async fn cancel(&self, key: StepKey) -> Result<(), JournalError> {
        self.asker.cancel(SpawnStep { number: 0, key }).await
    }

    /// Asks people, and waits for the answer.
    pub(crate) async fn question(&self, key: StepKey, tool: &str, arguments: &Value) -> Result<Answer, JournalError> {
        self.answer(self.asker.question(key, tool, arguments).await?).await
    }

    async fn answer(&self, Begun { wait, end }: Begun) -> Result<Answer, JournalError> {
        self.wait(vec![wait], end).await.map_err(|_| JournalError::Stopped)
    }

    /// A piece of work calls a model, as long as it keeps what is returned.
    pub(crate) fn calling(&self) -> Calling<'_> {
        let mut inside = self.changing();
        inside.calls += 1;
        Calling { book: self, began: inside.only_called }
    }

    /// A piece of work waits for `over`, which is one of these. It goes on only if the job is not parked meanwhile.
    pub(crate) async fn wait<T>(&self, waits: Vec<Wait>, over: impl Future<Output = T>) -> T {
        self.awaited(Awaited { waits, since: None }, over).await
    }

    /// The same, for a wait that began at a time of the monotonic clock.
    pub(crate) async fn wait_since<T>(&self, waits: Vec<Wait>, since: Duration, over: impl Future<Output = T>) -> T {
        self.awaited(Awaited { waits, since: Some(since) }, over).await
    }

    async fn awaited<T>(&self, awaited: Awaited, over: impl Future<Output = T>) -> T {
        let waiting = self.waiting(awaited);
        let over = over.await;
        drop(waiting);
        // The leader may have been asked to park the job. If it does, the next attempt does what follows.
        drop(self.journal.lock().await);
        over
    }

    fn waiting(&self, awaited: Awaited) -> Waiting<'_> {
        let mut inside = self.changing();
        inside.last += 1;
        let id = inside.last;
        inside.waits.insert(id, awaited);
        inside.active = inside.active.saturating_sub(1);
        self.changed.notify_one();
        Waiting { book: self, id }
    }

    /// Ends the attempt with an error.
    pub(crate) fn fail(&self, error: JournalError) {
        self.inside().failure.get_or_insert(error);
        self.failed.notify_one();
    }

    /// The error that ends the attempt.
    pub(crate) async fn failure(&self) -> JournalError {
        loop {
            self.failed.notified().await;
            if let Some(error) = self.inside().failure.take() {
                return error;
            }
        }
    }

    /// Lets the job park while all its work waits. Ends only with an error.
    pub(crate) async fn park(&self) -> JournalError {
        // What the leader said is over. It is asked for that again only after the usual time.
        let mut over = Vec::new();
        loop {
            if self.idle().is_none() {
                self.changed.notified().await;
                continue;
            }
            let mut journal = self.journal.lock().await;
            // Work may have gone on until the journal was free. From now on, it waits for the journal before it does.
            let Some((waits, since)) = self.idle() else { continue };
            let since = since.filter(|_| waits != over);
            let waited = since.map_or(Duration::ZERO, |since| self.clock.monotonic().saturating_sub(since));
            let changed = async {
                while self.idle().is_some_and(|(now, _)| now == waits) {
                    self.changed.notified().await;
                }
            };
            match journal.wait_on((waits.clone(), waited), changed).await {
                Ok(Some(())) => {}
                // The leader says that a wait is over. What it is about arrives by itself, perhaps later.
                Ok(None) => {
                    drop(journal);
                    over = waits;
                    tokio::select! {
                        () = self.changed.notified() => {}
                        () = self.clock.sleep(PAUSE) => {}
                    }
                }
                Err(error) => return error,
            }
        }
    }

    /// What the job waits for, if it does nothing else, and since when if all of that began earlier.
    fn idle(&self) -> Option<(Vec<Wait>, Option<Duration>)> {
        let inside = self.inside();
        let awaited = || inside.waits.values();
        let waits = merged(awaited().flat_map(|awaited| &awaited.waits).copied());
        let since: Option<Vec<Duration>> = awaited().map(|awaited| awaited.since).collect();
        // With more of them, the job would not wake for some, so it keeps its place.
        (inside.active == 0 && (1..=WAITS_MAX).contains(&waits.len()))
            .then(|| (waits, since.and_then(|all| all.into_iter().max())))
    }
}

/// The waits without those that another one covers: the earliest time wakes the job, and any message does.
fn merged(all: impl Iterator<Item = Wait>) -> Vec<Wait> {
    let (mut waits, mut earliest) = (Vec::new(), None::<Timestamp>);
    for wait in all {
        match wait {
            Wait::Time { at } => earliest = Some(earliest.map_or(at, |earliest| earliest.min(at))),
            Wait::Message if waits.contains(&Wait::Message) => {}
            wait => waits.push(wait),
        }
    }
    waits.extend(earliest.map(|at| Wait::Time { at }));
    waits
}

/// A piece of work that was begun. It ends when this is dropped, also because the work is cancelled.
pub(crate) struct Working<'b> {
    book: &'b Book,
    /// Whether it is one of those that are active.
    counts: bool,
}

impl Working<'_> {
    fn count(&mut self, counts: bool) {
        if std::mem::replace(&mut self.counts, counts) == counts {
            return;
        }
        let mut inside = self.book.changing();
        inside.active = if counts { inside.active + 1 } else { inside.active.saturating_sub(1) };
        self.book.changed.notify_one();
    }

    /// It only waits for other work from now on.
    pub(crate) fn rests(&mut self) {
        self.count(false);
    }

    /// It goes on, unless the job is parked.
    pub(crate) async fn goes_on(&mut self) {
        if !self.counts {
            self.count(true);
            // The leader may have been asked to park the job, as in a wait that is over.
            drop(self.book.journal.lock().await);
        }
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.count(false);
    }
}

/// Steps are found by their keys, so it does not matter in which order they are asked for.
impl<'b> Steps for &'b Book {
    type Trial = Calling<'b>;

    async fn recorded(&mut self, _: StepKind, key: StepKey) -> Result<Option<Arc<[u8]>>, JournalError> {
        Ok(self.known(key))
    }

    /// The job leaves when work begins of which there is no other.
    async fn may_leave(&mut self) -> Result<(), JournalError> {
        Ok(())
    }

    async fn record(
        &mut self,
        kind: StepKind,
        key: StepKey,
        outcome: Vec<u8>,
        usage: StepUsage,
    ) -> Result<Arc<[u8]>, JournalError> {
        Book::record(self, kind, key, outcome, usage).await
    }

    /// Work at the same time has numbers of its own.
    fn number(&self, key: StepKey) -> u32 {
        u32::from_be_bytes([key.0[0], key.0[1], key.0[2], key.0[3]])
    }

    fn trial(&mut self) -> Calling<'b> {
        self.calling()
    }

    async fn in_vain(&mut self, trial: Calling<'b>) {
        trial.was_in_vain().await;
    }

    async fn wait_until(&mut self, at: Timestamp, left: Duration, waited: Duration) -> Result<(), JournalError> {
        let since = self.clock.monotonic().saturating_sub(waited);
        self.wait_since(vec![Wait::Time { at }], since, self.clock.sleep(left)).await;
        Ok(())
    }

    fn slept_until(&self) -> Timestamp {
        self.slept_until
    }
}

/// A piece of work that calls a model.
pub(crate) struct Calling<'b> {
    book: &'b Book,
    /// For how long all work had only called models.
    began: Duration,
}

impl Calling<'_> {
    /// The provider is down: the job has only waited for it, but for the time in which other work of it went on.
    pub(crate) async fn was_in_vain(self) {
        let time = {
            let mut inside = self.book.changing();
            let now = inside.only_called;
            let began = self.began.max(std::mem::replace(&mut inside.left_out, now));
            now.saturating_sub(began)
        };
        self.book.journal.lock().await.leave_out(time);
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        let mut inside = self.book.changing();
        inside.calls = inside.calls.saturating_sub(1);
    }
}

/// A piece of work that waits.
struct Waiting<'b> {
    book: &'b Book,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut inside = self.book.changing();
        inside.waits.remove(&self.id);
        inside.active += 1;
        self.book.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;
