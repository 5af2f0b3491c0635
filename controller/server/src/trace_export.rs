//! Spans of jobs and of runs that end while this controller leads, for receivers of OTLP.

use std::sync::Arc;

use atlas_env::Env;
use atlas_otlp::{Otlp, Running, job_spans, run_spans};
use atlas_raft::{AppliedBatch, Handle, Leadership};
use atlas_telemetry::Metrics;
use atlas_types::{Event, JobChange, RunChange};
use tokio::sync::broadcast::error::RecvError;

/// Sends telemetry until it is stopped.
pub(crate) struct TraceExport {
    running: Running,
    task: atlas_env::Task<()>,
}

impl TraceExport {
    pub(crate) fn start(otlp: Otlp, handle: Handle, metrics: &Metrics, env: &Env) -> Self {
        let running = otlp.start(metrics, env);
        let task = env.spawn_restarting("trace-export", move || follow(otlp.clone(), handle.clone()));
        Self { running, task }
    }

    /// Sends what waits, for a limited time.
    pub(crate) async fn stop(self) {
        self.task.abort();
        self.running.stop().await;
    }
}

async fn follow(otlp: Otlp, handle: Handle) {
    let leadership = handle.leadership();
    // Nobody waits for spans.
    let mut batches = handle.subscribe_to(|_| false);
    loop {
        match batches.recv().await {
            // All members apply the same events; one of them sends.
            Ok(batch) if matches!(*leadership.borrow(), Leadership::Leader { .. }) => record(&otlp, &batch),
            Ok(_) => {}
            Err(RecvError::Lagged(entries)) => otlp.lost(entries),
            Err(RecvError::Closed) => return,
        }
    }
}

fn record(otlp: &Otlp, batch: &Arc<AppliedBatch>) {
    for record in batch.events.iter() {
        match &record.event {
            Event::Job { change: JobChange::Ended, job, .. } if !job.is_system() => {
                otlp.record(job_spans(job), job.trace);
            }
            Event::Run { change: RunChange::Ended, run } => otlp.record(run_spans(run), run.trace),
            _ => {}
        }
    }
}
