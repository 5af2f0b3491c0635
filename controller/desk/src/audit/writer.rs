//! Writes what is queued: a task, and a thread while there is something.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use atlas_audit::{Decision, Record};
use atlas_env::Threads;
use atlas_telemetry::ByAuditDecision;

use super::Inner;
use super::queue::Writing;

/// Pause after the files could not be written.
const PAUSE: Duration = Duration::from_secs(1);
/// How often dropped denials are told.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// How long the thread waits for more records before it ends: a client that has one request at a time should not start a thread for each.
const LINGERS: Duration = Duration::from_millis(20);

/// Writes until the task is dropped.
pub(super) async fn write(inner: Arc<Inner>) {
    let mut told = inner.now();
    loop {
        let now = inner.now();
        let alone = now.saturating_sub(told) >= TOLD_EVERY;
        if alone {
            told = now;
        }
        if !inner.begin_writing(alone) {
            let mut over = inner.env.clock.sleep(TOLD_EVERY);
            tokio::select! {
                biased;
                () = inner.work.notified() => {}
                () = &mut over => {}
            }
            continue;
        }
        let writer = inner.clone();
        let written = inner.env.spawn_blocking("write-audit-batches", move || writer.write_batches());
        match written.join().await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => tracing::error!(%error, "could not write the audit: changes are refused until it is"),
            Err(_) => tracing::error!("writing the audit failed: changes are refused until it is"),
        }
        inner.queue().fail();
        inner.env.clock.sleep(PAUSE).await;
    }
}

impl Inner {
    /// Whether there is something to write. If not, the task is told when there is.
    fn begin_writing(&self, alone: bool) -> bool {
        let mut queue = self.queue();
        let has_work = queue.has_work(alone, self.now(), self.now_ms());
        queue.writing = if has_work { Writing::Writes } else { Writing::Rests };
        has_work
    }

    /// Tells the writer that there is more. While it writes it looks by itself.
    pub(super) fn wake_writer(&self, writing: Writing) {
        match writing {
            Writing::Rests => self.work.notify_one(),
            Writing::Waits => self.more.notify_one(),
            Writing::Writes => {}
        }
    }

    /// Writes batches as long as there are some. After an error the same records are written again, so they stay in the queue.
    fn write_batches(&self) -> io::Result<()> {
        while let Some(records) = self.next_batch() {
            let began = self.now();
            self.store.lock().unwrap_or_else(PoisonError::into_inner).append(&records)?;
            self.tell_written(&records);
            let took = self.now().saturating_sub(began);
            if self.may_wait() {
                // More records come meanwhile, and share a sync.
                std::thread::sleep(self.pace.between_syncs().saturating_sub(took));
            }
        }
        Ok(())
    }

    /// Whether this is a thread of its own. Without threads nothing else runs meanwhile, so nothing comes.
    fn may_wait(&self) -> bool {
        self.env.threads != Threads::None
    }

    /// The next records, after a while if there are none; none if none come.
    fn next_batch(&self) -> Option<Vec<Arc<Record>>> {
        let mut queue = self.queue();
        if self.may_wait() && !queue.has_work(false, self.now(), self.now_ms()) {
            queue.writing = Writing::Waits;
            let waited = self.more.wait_timeout_while(queue, LINGERS, |queue| queue.len() == 0);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let has_work = queue.has_work(false, self.now(), self.now_ms());
        queue.writing = if has_work { Writing::Writes } else { Writing::Rests };
        has_work.then(|| queue.batch())
    }

    pub(super) fn tell_written(&self, records: &[Arc<Record>]) {
        for decision in Decision::ALL {
            let count = records.iter().filter(|record| record.decision == decision).count() as u64;
            if count > 0 {
                let decision = ByAuditDecision { atlas_audit_decision: decision.as_str() };
                self.metrics.audit_records.get_or_create(&decision).inc_by(count);
            }
        }
        let (told, recovers) = self.queue().written(records.len(), self.now());
        if recovers {
            tracing::warn!("the audit is written again");
        }
        for waiter in told {
            // Whoever asked may have gone away.
            let _ = waiter.send(());
        }
    }
}
