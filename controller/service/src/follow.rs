//! The task that follows the log on this controller. It delays neither the log nor another task.

use std::sync::Arc;

use atlas_platform::record_metrics;
use atlas_raft::AppliedBatch;
use atlas_state::State;
use atlas_types::{Event, EventRecord, EventSeq, Job, Reason};
use tokio::sync::broadcast::error::RecvError;

use crate::model_metrics::ModelMetrics;
use crate::service::Shared;

/// Wakes waiters, delivers events to readers, and updates metrics. The state already includes the end of a job when it
/// is delivered.
pub(crate) async fn events(shared: Arc<Shared>) {
    let following = Arc::clone(&shared);
    let mut batches = shared.handle.subscribe_to(move |batch| is_awaited(&following, batch));
    let mut seen = shared.handle.applied().event_seq();
    let synced = shared.history.synced();
    let mut models = ModelMetrics::default();
    missed(&shared, &shared.handle.applied());
    loop {
        match batches.recv().await {
            Ok(batch) => {
                let before = batch.events.first().map_or(batch.state.event_seq(), |event| EventSeq(event.seq.0 - 1));
                if before > seen {
                    // The state came as a snapshot, so earlier events were not delivered.
                    missed(&shared, &batch.state);
                }
                seen = seen.max(batch.state.event_seq());
                record_metrics(&shared.metrics, &batch.events);
                models.record(&shared.metrics, &batch.state, &batch.events);
                shared.upkeep.wanted().note(&batch.events);
                shared.records.question_signal().note(&batch.events);
                shared.stats.record(&batch.events, *synced.borrow());
                shared.events.log().push(&batch.events);
                shared.jobs.forget_ended(&batch);
                release(&shared, &batch);
            }
            Err(RecvError::Lagged(entries)) => {
                tracing::warn!(entries, "fell behind the log, reading the state again");
                missed(&shared, &shared.handle.applied());
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// True if an entry matters to a reader (any event of a job) or to a waiter (the end of a job).
fn is_awaited(shared: &Shared, batch: &AppliedBatch) -> bool {
    let job = |event: &EventRecord| matches!(event.event, Event::Job { .. });
    let end = |event: &EventRecord| matches!(&event.event, Event::Job { job, .. } if settled(job));
    (shared.events.log().has_readers() && batch.events.iter().any(job))
        || (batch.events.iter().any(end) && !shared.records.waiters().is_empty())
}

fn release(shared: &Shared, batch: &AppliedBatch) {
    if shared.records.waiters().is_empty() {
        return;
    }
    for event in batch.events.iter() {
        if let Event::Job { job, .. } = &event.event
            && settled(job)
        {
            shared.records.waiters().release(job);
        }
    }
}

/// True if nothing more happens to a job by itself: it has ended, or is in doubt until an operator decides.
fn settled(job: &Job) -> bool {
    job.status.is_terminal() || job.reason == Reason::InDoubt
}

/// Handles entries that were missed: the ends of jobs are read from the state.
fn missed(shared: &Shared, state: &State) {
    shared.events.log().reset(state.event_seq());
    shared.stats.missed(state);
    shared.upkeep.wanted().note_all();
    shared.records.question_signal().note_all();
    for id in shared.records.waiters().jobs() {
        match state.job(id) {
            Some(job) if settled(job) => shared.records.waiters().release(job),
            Some(_) => {}
            // The job has not been submitted yet, or it has ended and left the state. The history then has it.
            None => shared.records.waiters().give_up(id),
        }
    }
}
