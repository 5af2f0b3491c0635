//! Audit: who did what through the doors of this controller, and who was denied it ([ADR 44](../../../docs/adr/0044-audit.md)).
//!
//! Changes are recorded where they are proposed, so that every door is covered; denials where a door answers them. The task `write-audit`
//! writes both to files in the data directory, many with one sync. What is answered is durable before: a change whose record cannot be
//! written is not confirmed, and while the files cannot be written no further change is proposed. Denials beyond a rate are only
//! counted, because a client that is denied must not fill the disk. Machines that are turned away have a slower rate.

mod limit;
mod machines;
mod store;
mod subject;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_artifacts::{AuditAsk, AuditPage};
use atlas_audit::{Decision, Record};
use atlas_env::{Env, Task};
use atlas_raft::Answers;
use atlas_telemetry::{ByAuditDecision, Metrics};
use atlas_types::Request;
use limit::{Limit, Who};
use tokio::sync::{Notify, watch};

use crate::{Caller, Error};
pub use machines::TurnedAway;
use store::Store;
use subject::subject;

/// Most characters of what a record is about: a client chooses the names of tools that it calls.
const OBJECT_MAX: usize = 300;
/// Most records that wait to be written. Beyond it, and half of it for denials, denials are counted and changes refused.
const WAITING_MAX: usize = 8_192;
/// Most records that are written with one sync.
const BATCH_MAX: usize = 1_024;
/// Longest wait for a record to be durable. A change is made by then, so its caller learns that it may be.
const DURABLE_MAX: Duration = Duration::from_secs(10);
/// Pause after the files could not be written.
const PAUSE: Duration = Duration::from_secs(1);
/// How often dropped denials are told.
const TOLD_EVERY: Duration = Duration::from_secs(10);

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
    work: Notify,
    /// How many records are durable.
    durable: watch::Sender<u64>,
    /// Whether the last write failed or was too slow.
    failing: AtomicBool,
    metrics: Metrics,
    env: Env,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Record>,
    /// How many were ever put here.
    queued: u64,
    limit: Limit,
    /// Denials that were not recorded since the last record about them.
    dropped: u64,
}

/// Records that are durable when so many were written.
struct Durable {
    written: watch::Receiver<u64>,
    last: u64,
}

/// Requests that are being recorded and proposed at the same time.
#[derive(Default)]
pub(crate) struct Begun {
    /// By request; none for what is not recorded.
    records: Vec<Option<Record>>,
    durable: Option<(Arc<Inner>, Durable)>,
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
            durable: watch::Sender::new(0),
            failing: AtomicBool::new(false),
            metrics: metrics.clone(),
            env: env.clone(),
        });
        let writer = inner.clone();
        let task = env.spawn_restarting("write-audit", move || write(writer.clone()));
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
        let records: Vec<_> = requests.iter().map(|request| subject(request, inner.now_ms())).collect();
        if records.iter().all(Option::is_none) {
            return Ok(Begun::default());
        }
        if inner.failing.load(Ordering::Relaxed) || inner.queue().waiting.len() >= WAITING_MAX {
            return Err(Error::AuditFailing);
        }
        let durable = inner.put(records.iter().flatten().cloned());
        Ok(Begun { records, durable: Some((inner.clone(), durable)) })
    }

    /// Records a change that needs no command.
    pub async fn done(&self, caller: &Caller, attempted: Attempted<'_>) -> Result<(), Error> {
        let Some(inner) = &self.0 else { return Ok(()) };
        let record = inner.record(caller, attempted, Decision::Allow);
        let durable = inner.put([record]);
        if inner.is_durable(durable).await { Ok(()) } else { Err(Error::Unrecorded) }
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
        let durable = inner.put(records);
        inner.is_durable(durable).await;
    }

    /// Waits until all records are durable, before the controller stops.
    pub async fn settled(&self) {
        let Some(inner) = &self.0 else { return };
        let durable = inner.put([]);
        let _ = inner.is_durable(durable).await;
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
        let Some((inner, durable)) = self.durable else { return propose.await };
        let (answers, durable) = futures::future::join(propose, inner.is_durable(durable)).await;
        let code = |error: &Error| error.entry().code.to_owned();
        let failed = |(record, code): (Option<Record>, String)| {
            record.map(|record| Record { at_ms: inner.now_ms(), decision: Decision::Failed, code, ..record })
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
    fn put(&self, records: impl IntoIterator<Item = Record>) -> Durable {
        let mut queue = self.queue();
        for record in records {
            queue.push(record);
        }
        let durable = Durable { written: self.durable.subscribe(), last: queue.queued };
        drop(queue);
        self.work.notify_one();
        durable
    }

    /// Whether records became durable in time. They are written later if they did not.
    async fn is_durable(&self, mut durable: Durable) -> bool {
        let mut over = self.env.clock.sleep(DURABLE_MAX);
        tokio::select! {
            biased;
            written = durable.written.wait_for(|written| *written >= durable.last) => written.is_ok(),
            () = &mut over => {
                // A disk that hangs returns no error.
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::error!("the audit is not written in time: changes are refused until it is");
                }
                false
            }
        }
    }

    async fn deny(&self, record: Record) {
        let queued = self.queue_denial(Who::Principal(record.principal.clone()), record);
        if let Some(durable) = queued.filter(|_| !self.failing.load(Ordering::Relaxed)) {
            self.is_durable(durable).await;
        }
    }

    /// Queues a denial, or counts it if there are too many.
    fn queue_denial(&self, who: Who, record: Record) -> Option<Durable> {
        let now = self.env.clock.monotonic();
        let queued = {
            let mut queue = self.queue();
            if queue.waiting.len() < WAITING_MAX / 2 && queue.limit.admits(who, now) {
                queue.push(record);
                Some(Durable { written: self.durable.subscribe(), last: queue.queued })
            } else {
                queue.dropped = queue.dropped.saturating_add(1);
                None
            }
        };
        self.work.notify_one();
        if queued.is_none() {
            self.metrics.audit_dropped.inc();
        }
        queued
    }

    /// The next records to write. Dropped denials are told with others, or alone if `alone`.
    fn take(&self, alone: bool) -> Vec<Record> {
        let mut queue = self.queue();
        if queue.dropped > 0 && (alone || !queue.waiting.is_empty()) {
            let record = Record {
                at_ms: self.now_ms(),
                principal: String::new(),
                on_behalf_of: String::new(),
                namespace: String::new(),
                door: String::new(),
                verb: String::new(),
                object: String::new(),
                decision: Decision::Dropped,
                code: String::new(),
                request_id: String::new(),
                count: std::mem::take(&mut queue.dropped),
            };
            queue.push(record);
        }
        let count = queue.waiting.len().min(BATCH_MAX);
        queue.waiting.drain(..count).collect()
    }
}

impl Queue {
    fn push(&mut self, record: Record) {
        self.waiting.push_back(record);
        self.queued += 1;
    }
}

/// Writes what is queued, until the task is dropped.
async fn write(inner: Arc<Inner>) {
    let mut told = inner.env.clock.monotonic();
    loop {
        let now = inner.env.clock.monotonic();
        let alone = now.saturating_sub(told) >= TOLD_EVERY;
        let records = inner.take(alone);
        if alone {
            told = now;
        }
        if records.is_empty() {
            let mut over = inner.env.clock.sleep(TOLD_EVERY);
            tokio::select! {
                biased;
                () = inner.work.notified() => {}
                () = &mut over => {}
            }
            continue;
        }
        let records = Arc::new(records);
        loop {
            let (store, batch) = (inner.store.clone(), records.clone());
            let written = inner.env.spawn_blocking("write-audit-batch", move || {
                store.lock().unwrap_or_else(PoisonError::into_inner).append(&batch)
            });
            match written.join().await {
                Ok(Ok(())) => break,
                Ok(Err(error)) => tracing::error!(%error, "could not write the audit: changes are refused until it is"),
                Err(_) => tracing::error!("writing the audit failed: changes are refused until it is"),
            }
            inner.failing.store(true, Ordering::Relaxed);
            inner.env.clock.sleep(PAUSE).await;
        }
        if inner.failing.swap(false, Ordering::Relaxed) {
            tracing::warn!("the audit is written again");
        }
        for record in records.iter() {
            let decision = ByAuditDecision { atlas_audit_decision: record.decision.as_str() };
            inner.metrics.audit_records.get_or_create(&decision).inc();
        }
        inner.durable.send_modify(|durable| *durable += records.len() as u64);
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
