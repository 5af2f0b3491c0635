//! The tasks that follow the log on this controller. Each works independently: none delays the log or another task.

use std::sync::Arc;
use std::time::Duration;

use atlas_history::{EndedJob, HistoryError, KeepRule};
use atlas_raft::{AppliedBatch, Leadership};
use atlas_state::State;
use atlas_types::{Command, Event, EventRecord, EventSeq, Job, Namespace, Origin, Reason, Request, SinkAck};
use tokio::sync::broadcast::error::RecvError;

use crate::inbound;
use crate::model_metrics::ModelMetrics;
use crate::observe;
use crate::service::Shared;

/// The interval at which a follower reports the progress of its history.
const ACKNOWLEDGE_EVERY: Duration = Duration::from_secs(1);

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
                observe::record(&shared.metrics, &batch.events);
                models.record(&shared.metrics, &batch.state, &batch.events);
                shared.wanted.note(&batch.events);
                shared.questions.note(&batch.events);
                shared.stats.record(&batch.events, *synced.borrow());
                shared.events.push(&batch.events);
                inbound::forget(&shared, &batch);
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
    (shared.events.has_readers() && batch.events.iter().any(job))
        || (batch.events.iter().any(end) && !shared.waiters.is_empty())
}

fn release(shared: &Shared, batch: &AppliedBatch) {
    if shared.waiters.is_empty() {
        return;
    }
    for event in batch.events.iter() {
        if let Event::Job { job, .. } = &event.event
            && settled(job)
        {
            shared.waiters.release(job);
        }
    }
}

/// True if nothing more happens to a job by itself: it has ended, or is in doubt until an operator decides.
fn settled(job: &Job) -> bool {
    job.status.is_terminal() || job.reason == Reason::InDoubt
}

/// Handles entries that were missed: the ends of jobs are read from the state.
fn missed(shared: &Shared, state: &State) {
    shared.events.reset(state.event_seq());
    shared.stats.missed(state);
    shared.wanted.note_all();
    shared.questions.note_all();
    for id in shared.waiters.jobs() {
        match state.job(id) {
            Some(job) if settled(job) => shared.waiters.release(job),
            Some(_) => {}
            // The job has not been submitted yet, or it has ended and left the state. The history then has it.
            None => shared.waiters.give_up(id),
        }
    }
}

/// Feeds the history. The log does not wait for it: after a lag, the missing part is filled from the state, which keeps
/// every ended job until histories have it.
pub(crate) async fn history(shared: Arc<Shared>) {
    let (early, mut batches) = shared.handle.subscribe_from_start();
    let mut handed = *shared.history.synced().borrow();
    let state = shared.handle.applied();
    // After a crash the state can be older than the history. What it says of namespaces may have changed since; the batch that changes it
    // comes again.
    if state.event_seq() >= handed && keep(&shared, &state).await.is_err() {
        return;
    }
    for batch in early {
        if hand(&shared, &batch, &mut handed).await.is_err() {
            return;
        }
    }
    // A state that came as a snapshot has no batches.
    let state = shared.handle.applied();
    if batches.is_empty() && state.event_seq() > handed {
        handed = state.event_seq();
        if close_gap(&shared, &state, handed).await.is_err() {
            return;
        }
    }
    loop {
        match batches.recv().await {
            Ok(batch) => {
                if hand(&shared, &batch, &mut handed).await.is_err() {
                    return;
                }
                lag(&shared, &batch);
            }
            // The numbers of the next events show which ones were missed.
            Err(RecvError::Lagged(entries)) => {
                tracing::warn!(entries, "history fell behind the log, filling the gap from the state");
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// Passes one batch to the history, after filling the gap since the previous one.
async fn hand(shared: &Shared, batch: &AppliedBatch, handed: &mut EventSeq) -> Result<(), HistoryError> {
    let before = batch.events.first().map_or(batch.state.event_seq(), |event| EventSeq(event.seq.0 - 1));
    if before > *handed {
        close_gap(shared, &batch.state, before).await?;
    }
    *handed = batch.state.event_seq().max(*handed);
    let catches_up = batch.state.event_seq() >= *handed && before < *handed;
    if catches_up || batch.events.iter().any(|event| changes_namespace(&event.event)) {
        keep(shared, &batch.state).await?;
    }
    if batch.events.is_empty() { Ok(()) } else { shared.history.append(batch.events.clone()).await }
}

/// Gives the history the ended jobs of a state in place of missed events. The history fetches the events themselves
/// from a peer.
async fn close_gap(shared: &Shared, state: &State, through: EventSeq) -> Result<(), HistoryError> {
    let ended = state.ended().take_while(|(event, _)| *event <= through);
    let jobs = ended.filter_map(|(event, id)| Some(EndedJob { event, job: state.job(id)?.clone() }));
    shared.history.resync(jobs.collect(), through).await?;
    keep(shared, state).await
}

fn changes_namespace(event: &Event) -> bool {
    matches!(event, Event::ObjectPut { object, .. } | Event::ObjectDeleted { object, .. } if object.key.kind.as_str() == "namespace")
}

/// Tells the history how much each namespace keeps.
async fn keep(shared: &Shared, state: &State) -> Result<(), HistoryError> {
    let limited = state.limited_namespaces().map(|(namespace, limits)| KeepRule {
        namespace: namespace.clone(),
        jobs_max: limits.history_jobs_max,
        age_max: limits.history_seconds_max.map(Duration::from_secs),
    });
    let kept: Vec<KeepRule> = limited.filter(|kept| kept.jobs_max.is_some() || kept.age_max.is_some()).collect();
    shared.history.keep(kept.into()).await
}

fn lag(shared: &Shared, batch: &AppliedBatch) {
    let synced = *shared.history.synced().borrow();
    let behind = batch.state.event_seq().0.saturating_sub(synced.0);
    shared.metrics.history_lag.set(i64::try_from(behind).unwrap_or(i64::MAX));
}

/// Reports the progress of this controller's history to the cluster, so that ended jobs may leave the state. The
/// leader's loop includes its own progress in its entries. A follower proposes it.
pub(crate) async fn acknowledge(shared: Arc<Shared>) {
    let mut synced = shared.history.synced();
    loop {
        let event_seq = *synced.borrow_and_update();
        shared.handle.history_synced(event_seq);
        let follows = matches!(*shared.handle.leadership().borrow(), Leadership::Follower { leader: Some(_) });
        // Compared with the state and not with the last proposal, because a proposal may be lost, and the state removes
        // the progress of members that do not vote.
        if follows && shared.handle.applied().sink(shared.handle.member()) < event_seq {
            propose(&shared, event_seq).await;
        }
        let pause = shared.env.clock.sleep(ACKNOWLEDGE_EVERY);
        if !follows {
            tokio::select! {
                biased;
                changed = synced.changed() => if changed.is_err() {
                    return;
                },
                () = pause => {}
            }
        } else {
            pause.await;
            if synced.has_changed().is_err() {
                return;
            }
        }
    }
}

async fn propose(shared: &Shared, event_seq: EventSeq) {
    // The history on disk may be ahead of the entries that the leader has applied, and the leader would then refuse.
    let event_seq = event_seq.min(shared.handle.applied().event_seq());
    let command = Command::SinkAck(SinkAck { member: shared.handle.member(), event_seq });
    let request = Request { origin: Origin::duty(Namespace::default_namespace()), command };
    if let Err(error) = shared.handle.propose(vec![request]).await {
        tracing::debug!(error = &error as &dyn std::error::Error, "could not acknowledge history, trying again");
    }
}
