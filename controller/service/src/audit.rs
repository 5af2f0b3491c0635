//! Audit: who did what through the doors of this controller, and who was denied it ([ADR 44](../../../docs/adr/0044-audit.md)).
//!
//! Changes are recorded where they are proposed, so that every door is covered; denials where a door answers them. The task `write-audit`
//! writes both to files in the data directory, many with one sync. What is answered is durable before: a change whose record cannot be
//! written is not confirmed, and while the files cannot be written no further change is proposed. Denials beyond a rate are only
//! counted, because a client that is denied must not fill the disk.

mod limit;
mod store;
mod subject;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_audit::{Decision, Filter, Record};
use atlas_env::{Env, Task};
use atlas_telemetry::{ByAuditDecision, Metrics};
use atlas_types::{Outcome, Rejection, Request};
use tokio::sync::{Notify, watch};

use crate::{Caller, Error, Service};
use limit::Limit;
use store::Store;
use subject::subject;

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

/// What a request of a client was about to do, or to see.
#[derive(Debug, Clone, Copy)]
pub struct Attempted<'a> {
    /// The operation, such as `submitJob`.
    pub verb: &'a str,
    /// What it is about, such as a path.
    pub object: &'a str,
}

/// Lines of the audit.
#[derive(Debug, Default)]
pub struct AuditPage {
    /// Records as they are written, in their order.
    pub lines: Vec<String>,
    /// The number of the last record that was looked at: the next page begins after it.
    pub last: u64,
    /// Whether there is a next page.
    pub more: bool,
    /// The number of the newest record.
    pub end: u64,
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

    /// What accepted requests will be recorded as; nothing while the audit is off. An error if they cannot be recorded.
    pub(crate) fn subjects(&self, requests: &[Request]) -> Result<Vec<Option<Record>>, Error> {
        let Some(inner) = &self.0 else { return Ok(Vec::new()) };
        let subjects: Vec<_> = requests.iter().map(|request| subject(request, inner.now_ms())).collect();
        let is_stuck = inner.failing.load(Ordering::Relaxed) || inner.queue().waiting.len() >= WAITING_MAX;
        if is_stuck && subjects.iter().any(Option::is_some) { Err(Error::AuditFailing) } else { Ok(subjects) }
    }

    /// Records the accepted ones among some requests, repeats included. Returns when the records are durable.
    pub(crate) async fn changed(
        &self,
        subjects: Vec<Option<Record>>,
        answers: &[Result<Outcome, Rejection>],
    ) -> Result<(), Error> {
        let Some(inner) = &self.0 else { return Ok(()) };
        let accepted = subjects.into_iter().zip(answers).filter(|(_, answer)| answer.is_ok());
        let records: Vec<Record> = accepted.filter_map(|(subject, _)| subject).collect();
        if records.is_empty() || inner.put(records).await { Ok(()) } else { Err(Error::Unrecorded) }
    }

    /// Records a change that needs no command.
    pub async fn done(&self, caller: &Caller, attempted: Attempted<'_>) -> Result<(), Error> {
        let Some(inner) = &self.0 else { return Ok(()) };
        let record = inner.record(caller, attempted, Decision::Allow);
        if inner.put(vec![record]).await { Ok(()) } else { Err(Error::Unrecorded) }
    }

    /// Records a denial, and returns when the record is durable, or at once if the denial is only counted or the files
    /// cannot be written. Whoever could not show who it is has the caller of nobody.
    pub async fn denied(&self, caller: &Caller, attempted: Attempted<'_>, error: &Error) {
        let Some(inner) = &self.0 else { return };
        let record = Record { code: error.entry().code.to_owned(), ..inner.record(caller, attempted, Decision::Deny) };
        inner.deny(record).await;
    }

    /// Waits until all records are durable, before the controller stops.
    pub async fn settled(&self) {
        let Some(inner) = &self.0 else { return };
        let _ = inner.put(Vec::new()).await;
    }

    /// Records after a number that a filter admits.
    pub async fn page(&self, after: u64, filter: Filter, limit: usize) -> Result<AuditPage, Error> {
        let Some(inner) = &self.0 else { return Err(Error::NotConfigured("this controller keeps no audit")) };
        let store = inner.store.clone();
        let read = inner.env.spawn_blocking("read-audit", move || {
            let reader = store.lock().unwrap_or_else(PoisonError::into_inner).reader();
            reader.page(after, &filter, limit)
        });
        let page = read.join().await.map_err(|_| Error::Internal)?;
        page.map_err(|error| Error::internal("read the audit", &error))
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
            object: attempted.object.to_owned(),
            decision,
            code: String::new(),
            request_id: caller.request_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            count: 0,
        }
    }

    /// Queues records; whether they became durable in time. They are written later if they did not.
    async fn put(&self, records: Vec<Record>) -> bool {
        let durable = self.durable.subscribe();
        let last = {
            let mut queue = self.queue();
            for record in records {
                queue.push(record);
            }
            queue.queued
        };
        self.work.notify_one();
        self.is_durable(durable, last).await
    }

    async fn is_durable(&self, mut durable: watch::Receiver<u64>, last: u64) -> bool {
        let mut over = self.env.clock.sleep(DURABLE_MAX);
        tokio::select! {
            biased;
            written = durable.wait_for(|durable| *durable >= last) => written.is_ok(),
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
        let (now, durable) = (self.env.clock.monotonic(), self.durable.subscribe());
        let queued = {
            let mut queue = self.queue();
            if queue.waiting.len() < WAITING_MAX / 2 && queue.limit.admits(&record.principal, now) {
                queue.push(record);
                Some(queue.queued)
            } else {
                queue.dropped = queue.dropped.saturating_add(1);
                None
            }
        };
        self.work.notify_one();
        match queued {
            Some(last) if !self.failing.load(Ordering::Relaxed) => drop(self.is_durable(durable, last).await),
            Some(_) => {}
            None => drop(self.metrics.audit_dropped.inc()),
        }
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

impl Service {
    /// Who did what through this controller.
    pub fn audit(&self) -> &Audit {
        &self.shared.audit
    }
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
            | Error::NotEnrolled(_)
    )
}

#[cfg(test)]
mod tests;
