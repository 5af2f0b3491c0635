//! The tasks that feed this controller's history and report how far it is. They delay neither the log nor another task.

use std::sync::Arc;
use std::time::Duration;

use atlas_desk::Desk;
use atlas_history::{EndedJob, HistoryError, KeepRule};
use atlas_raft::{AppliedBatch, Leadership};
use atlas_state::State;
use atlas_types::{Command, Event, EventSeq, Namespace, Origin, Request, SinkAck};
use tokio::sync::broadcast::error::RecvError;

/// The interval at which a follower reports the progress of its history.
const ACKNOWLEDGE_EVERY: Duration = Duration::from_secs(1);

/// Feeds the history. The log does not wait for it: after a lag, the missing part is filled from the state, which keeps
/// every ended job until histories have it.
pub async fn follow(desk: Arc<Desk>) {
    let (early, mut batches) = desk.handle.subscribe_from_start();
    let mut handed = *desk.history.synced().borrow();
    let state = desk.handle.applied();
    // After a crash the state can be older than the history. What it says of namespaces may have changed since; the batch that changes it
    // comes again.
    if state.event_seq() >= handed && keep(&desk, &state).await.is_err() {
        return;
    }
    for batch in early {
        if hand(&desk, &batch, &mut handed).await.is_err() {
            return;
        }
    }
    // A state that came as a snapshot has no batches.
    let state = desk.handle.applied();
    if batches.is_empty() && state.event_seq() > handed {
        handed = state.event_seq();
        if close_gap(&desk, &state, handed).await.is_err() {
            return;
        }
    }
    loop {
        match batches.recv().await {
            Ok(batch) => {
                if hand(&desk, &batch, &mut handed).await.is_err() {
                    return;
                }
                lag(&desk, &batch);
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
async fn hand(desk: &Desk, batch: &AppliedBatch, handed: &mut EventSeq) -> Result<(), HistoryError> {
    let before = batch.events.first().map_or(batch.state.event_seq(), |event| EventSeq(event.seq.0 - 1));
    if before > *handed {
        close_gap(desk, &batch.state, before).await?;
    }
    *handed = batch.state.event_seq().max(*handed);
    let catches_up = batch.state.event_seq() >= *handed && before < *handed;
    if catches_up || batch.events.iter().any(|event| changes_namespace(&event.event)) {
        keep(desk, &batch.state).await?;
    }
    if batch.events.is_empty() { Ok(()) } else { desk.history.append(batch.events.clone()).await }
}

/// Gives the history the ended jobs of a state in place of missed events. The history fetches the events themselves
/// from a peer.
async fn close_gap(desk: &Desk, state: &State, through: EventSeq) -> Result<(), HistoryError> {
    let ended = state.ended().take_while(|(event, _)| *event <= through);
    let jobs = ended.filter_map(|(event, id)| Some(EndedJob { event, job: state.job(id)?.clone() }));
    desk.history.resync(jobs.collect(), through).await?;
    keep(desk, state).await
}

fn changes_namespace(event: &Event) -> bool {
    matches!(event, Event::ObjectPut { object, .. } | Event::ObjectDeleted { object, .. } if object.key.kind.as_str() == "namespace")
}

/// Tells the history how much each namespace keeps.
async fn keep(desk: &Desk, state: &State) -> Result<(), HistoryError> {
    let limited = state.limited_namespaces().map(|(namespace, limits)| KeepRule {
        namespace: namespace.clone(),
        jobs_max: limits.history_jobs_max,
        age_max: limits.history_seconds_max.map(Duration::from_secs),
    });
    let kept: Vec<KeepRule> = limited.filter(|kept| kept.jobs_max.is_some() || kept.age_max.is_some()).collect();
    desk.history.keep(kept.into()).await
}

fn lag(desk: &Desk, batch: &AppliedBatch) {
    let synced = *desk.history.synced().borrow();
    let behind = batch.state.event_seq().0.saturating_sub(synced.0);
    desk.metrics.history_lag.set(i64::try_from(behind).unwrap_or(i64::MAX));
}

/// Reports the progress of this controller's history to the cluster, so that ended jobs may leave the state. The
/// leader's loop includes its own progress in its entries. A follower proposes it.
pub async fn acknowledge(desk: Arc<Desk>) {
    let mut synced = desk.history.synced();
    loop {
        let event_seq = *synced.borrow_and_update();
        desk.handle.history_synced(event_seq);
        let follows = matches!(*desk.handle.leadership().borrow(), Leadership::Follower { leader: Some(_) });
        // Compared with the state and not with the last proposal, because a proposal may be lost, and the state removes
        // the progress of members that do not vote.
        if follows && desk.handle.applied().sink(desk.handle.member()) < event_seq {
            propose(&desk, event_seq).await;
        }
        let pause = desk.env.clock.sleep(ACKNOWLEDGE_EVERY);
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

async fn propose(desk: &Desk, event_seq: EventSeq) {
    // The history on disk may be ahead of the entries that the leader has applied, and the leader would then refuse.
    let event_seq = event_seq.min(desk.handle.applied().event_seq());
    let command = Command::SinkAck(SinkAck { member: desk.handle.member(), event_seq });
    let request = Request { origin: Origin::duty(Namespace::default_namespace()), command };
    if let Err(error) = desk.handle.propose(vec![request]).await {
        tracing::debug!(error = &error as &dyn std::error::Error, "could not acknowledge history, trying again");
    }
}
