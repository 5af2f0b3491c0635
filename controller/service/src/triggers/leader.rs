//! What the leader does about triggers unasked: it computes their next times, and fires those whose time has come.
//!
//! This is not one of the pure leader tasks: a firing checks its input against the contract of the agent, as every submission does. The
//! command is one that each replica checks again, so a leader that does not know yet that it is none fires nothing twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use atlas_objects::TriggerStatus;
use atlas_raft::Leadership;
use atlas_state::State;
use atlas_triggers::Due;
use atlas_types::{EventSeq, Job, JobId, Object, ObjectKey, Observation, RunId, Timestamp};

use super::firing::Scheduled;
use super::{Trigger, seconds};
use crate::service::Shared;
use crate::{Error, Service};

/// How often the leader looks for triggers.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long a trigger that could not fire waits until it is tried again (compatibility §14.4).
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// Most triggers that are planned or fired in one look.
const BATCH_MAX: usize = 64;

/// Plans and fires triggers while this member leads.
pub(crate) async fn fire(shared: Arc<Shared>) {
    let mut leadership = shared.handle.leadership();
    let leads = |leadership: &Leadership| matches!(leadership, Leadership::Leader { .. });
    let service = Service { shared: Arc::clone(&shared) };
    while leadership.wait_for(leads).await.is_ok() {
        let mut turn = Turn { service: &service, retry_at: BTreeMap::new(), suspended: BTreeSet::new() };
        while leads(&leadership.borrow()) {
            turn.look().await;
            shared.env.clock.sleep(LOOK_EVERY).await;
        }
    }
}

/// One leadership.
struct Turn<'s> {
    service: &'s Service,
    /// Triggers that could not fire, by uid, with the monotonic time at which they are tried again.
    retry_at: BTreeMap<EventSeq, Duration>,
    /// Triggers whose status says that firing is suspended.
    suspended: BTreeSet<ObjectKey>,
}

impl Turn<'_> {
    async fn look(&mut self) {
        let shared = &self.service.shared;
        let state = shared.handle.applied();
        self.plan(&state).await;
        let (now, monotonic) = (shared.env.clock.wall(), shared.env.clock.monotonic());
        self.retry_at.retain(|_, at| *at > monotonic);
        let doubt = *shared.handle.clock_doubt().borrow();
        if doubt.is_none() && !self.suspended.is_empty() {
            self.resume(&state).await;
        }
        let mut fired = 0;
        for (tick, key) in state.next_fires().take_while(|(tick, _)| *tick <= now) {
            if fired >= BATCH_MAX {
                break;
            }
            let Some(object) = state.object(key).filter(|object| !self.retry_at.contains_key(&object.uid)) else {
                continue;
            };
            match doubt {
                Some(doubt) => self.suspend(object, &format!("firing is suspended: {doubt}")).await,
                None => fired += usize::from(self.fire(&state, object, *tick, now).await),
            }
        }
    }

    /// Computes the next times of triggers that are new or have changed.
    async fn plan(&self, state: &State) {
        let mut observations = Vec::new();
        for object in state.unplanned_triggers().take(BATCH_MAX).filter_map(|key| state.object(key)) {
            let status = match Trigger::read(object) {
                Ok(trigger) => trigger.planned(),
                Err(error) => {
                    let mut status = TriggerStatus { armed: false, next_fire: 0, ..TriggerStatus::of(object) };
                    status.planned_revision = object.revision.0;
                    status.failed(&error.to_string());
                    status
                }
            };
            observations.extend(observation(object, &status));
        }
        self.observe(observations).await;
    }

    /// Does what is due for one trigger. Whether anything was proposed.
    async fn fire(&mut self, state: &State, object: &Arc<Object>, tick: Timestamp, now: Timestamp) -> bool {
        let trigger = match Trigger::read(object) {
            Ok(trigger) => trigger,
            Err(error) => {
                self.failed(object, &error).await;
                return true;
            }
        };
        let busy = is_busy(state, &trigger.status);
        let (next, missed, skip) = match trigger.definition.due(seconds(tick), seconds(now), busy) {
            Due::Wait => return false,
            Due::Fire { next, missed } => (next, missed, false),
            Due::Skip { next, missed } => (next, missed, true),
        };
        let due = Scheduled { tick, next: trigger.delayed(next), missed, skip };
        if let Err(error) = self.service.fire_due(&trigger, due).await {
            self.failed(object, &error).await;
        }
        true
    }

    /// Notes why a trigger could not fire. It stays due, and is tried again later.
    async fn failed(&mut self, object: &Arc<Object>, error: &Error) {
        let env = &self.service.shared.env;
        self.retry_at.insert(object.uid, env.clock.monotonic() + RETRY_AFTER);
        tracing::warn!(trigger = %object.key.name, error = error as &dyn std::error::Error, "a trigger could not fire");
        self.note(object, &error.to_string()).await;
    }

    async fn suspend(&mut self, object: &Arc<Object>, why: &str) {
        self.suspended.insert(object.key.clone());
        self.note(object, why).await;
    }

    async fn note(&self, object: &Arc<Object>, why: &str) {
        let mut status = TriggerStatus::of(object);
        let before = status.error.clone();
        status.failed(why);
        if status.error != before {
            self.observe(observation(object, &status).into_iter().collect()).await;
        }
    }

    /// The clock is trusted again: what was noted about it holds no more.
    async fn resume(&mut self, state: &State) {
        let mut observations = Vec::new();
        for object in std::mem::take(&mut self.suspended).iter().filter_map(|key| state.object(key)) {
            let status = TriggerStatus { error: String::new(), ..TriggerStatus::of(object) };
            observations.extend(observation(object, &status));
        }
        self.observe(observations).await;
    }

    async fn observe(&self, observations: Vec<Observation>) {
        if observations.is_empty() {
            return;
        }
        if let Err(error) = self.service.observe_objects(observations).await {
            // The next look finds that the state does not have them.
            tracing::debug!(error = &error as &dyn std::error::Error, "the status of triggers was not written");
        }
    }
}

fn observation(object: &Object, status: &TriggerStatus) -> Option<Observation> {
    let status = status.document().ok()?.into();
    Some(Observation { key: object.key.clone(), uid: object.uid, revision: object.revision, status })
}

/// Whether the run or job of the last firing, or a retry of it, has not ended.
fn is_busy(state: &State, status: &TriggerStatus) -> bool {
    if let Some(run) = RunId::of_execution(&status.last_job_id).and_then(|run| state.run(run)) {
        return !run.status.is_terminal();
    }
    let mut job: Option<&Arc<Job>> = status.last_job_id.parse().ok().and_then(|id: JobId| state.job(id));
    while let Some(successor) = job.and_then(|job| job.successor).and_then(|id| state.job(id)) {
        job = Some(successor);
    }
    job.is_some_and(|job| !job.status.is_terminal())
}
