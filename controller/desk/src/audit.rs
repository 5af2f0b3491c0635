//! Audit: who did what through the doors of this controller, and who was denied it ([ADR 44](../../../docs/adr/0044-audit.md)).
//!
//! Changes are recorded where they are proposed, so that every door is covered; denials where a door answers them. The task `write-audit`
//! writes both to files in the data directory, many with one sync. What is answered is durable before: a change whose record cannot be
//! written is not confirmed, and while the files cannot be written no further change is proposed. Denials beyond a rate are only
//! counted, because a client that is denied must not fill the disk. Machines that are turned away have a slower rate.

mod limit;
mod machines;
mod queue;
mod store;
mod subject;
mod writer;

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_artifacts::{AuditAsk, AuditPage};
use atlas_audit::{Decision, Record};
use atlas_env::{Env, Task};
use atlas_raft::Answers;
use atlas_telemetry::Metrics;
use atlas_types::Request;
use limit::Who;
use queue::{Pace, Queue, Unwritten};
use tokio::sync::Notify;
use tokio::sync::oneshot::error::TryRecvError;

use crate::{Caller, Error};
pub use machines::TurnedAway;
use store::Store;
use subject::subject;

/// Most characters of what a record is about: a client chooses the names of tools that it calls.
const OBJECT_MAX: usize = 300;
/// Most records that wait to be written. Beyond it, and half of it for denials, denials are counted and changes refused.
const WAITING_MAX: usize = 8_192;
/// Longest wait for a record to be durable. A change is made by then, so its caller learns that it may be.
const DURABLE_MAX: Duration = Duration::from_secs(10);

/// Options of the audit.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    /// Where its files are.
    pub dir: PathBuf,
    /// This controller, in each record.
    pub controller: String,
    /// Most bytes of its files; the oldest are removed.
    pub bytes_max: u64,
}

/// The audit of a controller. Cheap to clone.
#[derive(Clone, Default)]
pub struct Audit(Option<Arc<Inner>>);

struct Inner {
    store: Arc<Mutex<Store>>,
    queue: Mutex<Queue>,
    /// Wakes the task that writes, and its thread.
    work: Notify,
    more: Condvar,
    pace: Pace,
    metrics: Metrics,
    env: Env,
}

/// Requests that are being recorded and proposed at the same time.
#[derive(Default)]
pub(crate) struct Begun {
    /// By request; none for what is not recorded.
    records: Vec<Option<Arc<Record>>>,
    recording: Option<(Arc<Inner>, Recording)>,
}

/// Records that are being written.
struct Recording {
    /// None if they are durable already.
    unwritten: Option<Unwritten>,
    /// When they were queued.
    since: Duration,
}

/// What a request of a client was about to do, or to see.
#[derive(Debug, Clone, Copy)]
pub struct Attempted<'a> {
    /// The operation, such as `submitJob`.
    pub verb: &'a str,
    /// What it is about, such as a path.
    pub object: &'a str,
}

impl Audit {
    /// Opens the files of a controller, and starts to write. The task ends with the answer's second part.
    pub fn open(options: AuditOptions, metrics: &Metrics, env: &Env) -> std::io::Result<(Self, Task<()>)> {
        let store = Store::open(options, env.files.clone())?;
        let inner = Arc::new(Inner {
            store: Arc::new(Mutex::new(store)),
            queue: Mutex::default(),
            work: Notify::new(),
            more: Condvar::new(),
            pace: Pace::default(),
            metrics: metrics.clone(),
            env: env.clone(),
        });
        let recorder = inner.clone();
        let task = env.spawn_restarting("write-audit", move || writer::write(recorder.clone()));
        Ok((Self(Some(inner)), task))
    }

    /// Whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// An error if nothing is recorded.
    pub fn check_on(&self) -> Result<(), Error> {
        if self.is_on() { Ok(()) } else { Err(off()) }
    }

    /// Begins to record requests, before they are proposed, so that both become durable at the same time. An error if
    /// they cannot be recorded.
    pub(crate) fn begin(&self, requests: &[Request]) -> Result<Begun, Error> {
        let Some(inner) = &self.0 else { return Ok(Begun::default()) };
        let record = |request: &Request| subject(request, inner.now_ms()).map(Arc::new);
        let records: Vec<_> = requests.iter().map(record).collect();
        if records.iter().all(Option::is_none) {
            return Ok(Begun::default());
        }
        if inner.is_failing() || inner.queue().len() >= WAITING_MAX {
            return Err(Error::AuditFailing);
        }
        let recording = inner.put(records.iter().flatten().cloned());
        Ok(Begun { records, recording: Some((inner.clone(), recording)) })
    }

    /// Records a change that needs no command.
    pub async fn done(&self, caller: &Caller, attempted: Attempted<'_>) -> Result<(), Error> {
        let Some(inner) = &self.0 else { return Ok(()) };
        let record = inner.record(caller, attempted, Decision::Allow);
        let recording = inner.put([record]);
        if inner.is_durable(recording).await { Ok(()) } else { Err(Error::Unrecorded) }
    }

    /// Records a denial, and returns when the record is durable, or at once if the denial is only counted or the files
    /// cannot be written. Whoever could not show who it is has the caller of nobody.
    pub async fn denied(&self, caller: &Caller, attempted: Attempted<'_>, error: &Error) {
        let Some(inner) = &self.0 else { return };
        let record = Record { code: error.entry().code.to_owned(), ..inner.record(caller, attempted, Decision::Deny) };
        inner.deny(record).await;
    }

    /// Records approvals that nobody gave. Returns when the records are durable, or after a while.
    pub(crate) async fn unanswered(&self, records: Vec<Record>) {
        let Some(inner) = self.0.as_ref().filter(|_| !records.is_empty()) else { return };
        let recording = inner.put(records);
        inner.is_durable(recording).await;
    }

    /// Waits until all records are durable, before the controller stops.
    pub async fn settled(&self) {
        let Some(inner) = &self.0 else { return };
        let recording = inner.put(std::iter::empty::<Record>());
        inner.is_durable(recording).await;
    }

    /// Records of this controller.
    pub async fn page(&self, ask: AuditAsk) -> Result<AuditPage, Error> {
        let Some(inner) = &self.0 else { return Err(off()) };
        let store = inner.store.clone();
        let read = inner.env.spawn_blocking("read-audit", move || {
            let reader = store.lock().unwrap_or_else(PoisonError::into_inner).reader();
            reader.page(&ask)
        });
        let page = read.join().await.map_err(|_| Error::Internal)?;
        page.map_err(|error| Error::internal("read the audit", &error))
    }
}

impl Begun {
    /// Waits for the records while the requests are proposed, and records which ones came to nothing. An error if
    /// something may be changed and is not recorded.
    pub(crate) async fn with(self, propose: impl Future<Output = Result<Answers, Error>>) -> Result<Answers, Error> {
        let Some((inner, recording)) = self.recording else { return propose.await };
        // The records are written meanwhile. They are asked for afterwards, because then most are durable and nobody is woken for them.
        let answers = propose.await;
        if answers.is_ok() {
            inner.pace.took(inner.now().saturating_sub(recording.since));
        }
        let durable = inner.is_durable(recording).await;
        let code = |error: &Error| error.entry().code.to_owned();
        let failed = |(record, code): (Option<Arc<Record>>, String)| {
            let record = Arc::unwrap_or_clone(record?);
            Some(Record { at_ms: inner.now_ms(), decision: Decision::Failed, code, ..record })
        };
        match &answers {
            Ok(answers) if answers.iter().any(Result::is_err) => {
                let refused = self.records.into_iter().zip(answers).filter_map(|(record, answer)| {
                    let rejection = answer.as_ref().err()?.clone();
                    Some((record, code(&rejection.into())))
                });
                // The answer is that nothing was changed, so it need not wait.
                inner.put(refused.filter_map(failed));
            }
            Err(error) if !matches!(error, Error::OutcomeUnknown) => {
                let code = code(error);
                inner.put(self.records.into_iter().filter_map(|record| failed((record, code.clone()))));
            }
            _ => {}
        }
        if durable || answers.is_err() { answers } else { Err(Error::Unrecorded) }
    }
}

impl Inner {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.env.clock.wall().0 / 1_000).unwrap_or(0)
    }

    fn record(&self, caller: &Caller, attempted: Attempted<'_>, decision: Decision) -> Record {
        Record {
            at_ms: self.now_ms(),
            principal: caller.principal.to_string(),
            on_behalf_of: caller.on_behalf_of.map(|job| job.to_string()).unwrap_or_default(),
            namespace: caller.namespace.to_string(),
            door: caller.door.as_str().to_owned(),
            verb: attempted.verb.to_owned(),
            object: attempted.object.chars().take(OBJECT_MAX).collect(),
            decision,
            code: String::new(),
            request_id: caller.request_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            count: 0,
        }
    }

    /// Queues records.
    fn put<R: Into<Arc<Record>>>(&self, records: impl IntoIterator<Item = R>) -> Recording {
        let since = self.now();
        let (unwritten, writing) = {
            let mut queue = self.queue();
            records.into_iter().for_each(|record| queue.push(record.into(), since));
            (queue.unwritten(), queue.writing)
        };
        self.wake_writer(writing);
        Recording { unwritten, since }
    }

    /// Whether records became durable in time. They are written later if they did not.
    async fn is_durable(&self, Recording { unwritten, since }: Recording) -> bool {
        let Some(mut unwritten) = unwritten else { return true };
        match unwritten.durable.try_recv() {
            Ok(()) => return true,
            Err(TryRecvError::Closed) => return false,
            Err(TryRecvError::Empty) => {}
        }
        let passed = self.now().saturating_sub(since);
        let mut over = self.env.clock.sleep(DURABLE_MAX.saturating_sub(passed));
        tokio::select! {
            biased;
            told = &mut unwritten.durable => told.is_ok(),
            () = &mut over => self.is_written(&unwritten),
        }
    }

    /// Whether records are durable at the last moment. If not, changes are refused.
    fn is_written(&self, records: &Unwritten) -> bool {
        let queue = self.queue();
        let is_written = queue.has_written(records);
        if !is_written {
            fail(queue);
        }
        is_written
    }

    /// Whether changes are refused: the last write failed, or takes too long.
    fn is_failing(&self) -> bool {
        let queue = self.queue();
        let (is_failing, is_late) = (queue.is_failing(), queue.is_late(self.now()));
        if is_late {
            fail(queue);
        }
        is_failing || is_late
    }

    async fn deny(&self, record: Record) {
        let queued = self.queue_denial(Who::Principal(record.principal.clone()), record);
        if let Some(durable) = queued.filter(|_| !self.is_failing()) {
            self.is_durable(durable).await;
        }
    }

    /// Queues a denial, or counts it if there are too many.
    fn queue_denial(&self, who: Who, record: Record) -> Option<Recording> {
        let since = self.now();
        let (unwritten, writing) = {
            let mut queue = self.queue();
            let is_recorded = queue.len() < WAITING_MAX / 2 && queue.limit.admits(who, since);
            if is_recorded {
                queue.push(Arc::new(record), since);
            } else {
                queue.dropped = queue.dropped.saturating_add(1);
            }
            (is_recorded.then(|| queue.unwritten()), queue.writing)
        };
        self.wake_writer(writing);
        if unwritten.is_none() {
            self.metrics.audit_dropped.inc();
        }
        Some(Recording { unwritten: unwritten?, since })
    }
}

/// Refuses changes until what waits is written. A disk that hangs returns no error, so this says it.
fn fail(mut queue: MutexGuard<'_, Queue>) {
    let failed = queue.fail();
    drop(queue);
    if failed {
        tracing::error!("the audit is not written in time: changes are refused until it is");
    }
}

fn off() -> Error {
    Error::NotConfigured("this controller keeps no audit")
}

/// Whether an error denies something to somebody, rather than being about a state or a mistake. Denials by policies are recorded where they
/// are decided.
pub fn is_denial(error: &Error) -> bool {
    matches!(
        error,
        Error::Forbidden { .. }
            | Error::Unauthenticated(_)
            | Error::BadSignature
            | Error::NotPrivate
            | Error::NotAnswerer
            | Error::TokenRefused(_)
            | Error::NodeTokenRefused
            | Error::NodeNameTaken(_)
            | Error::NotEnrolled(_)
    )
}

#[cfg(test)]
mod tests;
