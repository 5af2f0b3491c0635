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
use atlas_types::{EventSeq, Object, ObjectKey, Observation, Rejection, Request, Timestamp};

use super::firing::{Scheduled, Started, last_started};
use super::{Trigger, seconds};
use crate::service::Shared;
use crate::{Error, Service};

/// How often the leader looks for triggers.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long a trigger that could not fire waits until it is tried again (compatibility §14.4).
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// Most triggers that are planned or fired in one look.
const BATCH_MAX: usize = 256;

/// Plans and fires triggers while this member leads.
pub(crate) async fn fire(shared: Arc<Shared>) {
    let mut leadership = shared.handle.leadership();
    let leads = |leadership: &Leadership| matches!(leadership, Leadership::Leader { .. });
    let service = Service { shared: Arc::clone(&shared) };
    while leadership.wait_for(leads).await.is_ok() {
        let mut turn = Turn { service: &service, retry_at: BTreeMap::new(), suspended: BTreeSet::new() };
        while leads(&leadership.borrow()) {
            if !turn.look().await {
                shared.env.clock.sleep(LOOK_EVERY).await;
            }
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
    /// Plans and fires what is due, at most [`BATCH_MAX`] of each. True if more may be due already.
    async fn look(&mut self) -> bool {
        let shared = &self.service.shared;
        let state = shared.handle.applied();
        let planned = self.plan(&state).await;
        let (now, monotonic) = (shared.env.clock.wall(), shared.env.clock.monotonic());
        self.retry_at.retain(|_, at| *at > monotonic);
        let doubt = *shared.handle.clock_doubt().borrow();
        if doubt.is_none() && !self.suspended.is_empty() {
            self.resume(&state).await;
        }
        let mut due = Vec::new();
        for (tick, key) in state.next_fires().take_while(|(tick, _)| *tick <= now) {
            if due.len() >= BATCH_MAX {
                break;
            }
            let Some(object) = state.object(key).filter(|object| !self.retry_at.contains_key(&object.uid)) else {
                continue;
            };
            match doubt {
                Some(doubt) => self.suspend(object, &format!("firing is suspended: {doubt}")).await,
                None => due.extend(self.prepare(&state, object, *tick, now).await),
            }
        }
        let more = planned >= BATCH_MAX || due.len() >= BATCH_MAX;
        more & self.fire(due).await
    }

    /// Computes the next times of triggers that are new or have changed. Returns the number of them.
    async fn plan(&self, state: &State) -> usize {
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
        let count = observations.len();
        self.observe(observations).await;
        count
    }

    /// The firing of one trigger. None if it waits, cancels its last job, or cannot fire.
    async fn prepare(
        &mut self,
        state: &State,
        object: &Arc<Object>,
        tick: Timestamp,
        now: Timestamp,
    ) -> Option<(Arc<Object>, Request)> {
        let prepared = self.firing(state, object, tick, now).await;
        match prepared {
            Ok(request) => request.map(|request| (Arc::clone(object), request)),
            Err(error) => {
                self.failed(object, &error).await;
                None
            }
        }
    }

    async fn firing(
        &self,
        state: &State,
        object: &Arc<Object>,
        tick: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Request>, Error> {
        let trigger = Trigger::read(object)?;
        let busy = is_busy(state, &trigger.status);
        let (next, missed, skip) = match trigger.definition.due(seconds(tick), seconds(now), busy) {
            Due::Wait => return Ok(None),
            Due::Cancel => {
                self.service.cancel_last(&trigger, state).await?;
                return Ok(None);
            }
            Due::Fire { next, missed } => (next, missed, false),
            Due::Skip { next, missed } => (next, missed, true),
        };
        let due = Scheduled { tick, next: trigger.delayed(next), missed, skip };
        self.service.due_firing(&trigger, due, state).await.map(Some)
    }

    /// Proposes firings together, because each would wait for the log. False if that failed, so that it is not tried again at once.
    async fn fire(&mut self, due: Vec<(Arc<Object>, Request)>) -> bool {
        let (objects, requests): (Vec<_>, Vec<_>) = due.into_iter().unzip();
        if requests.is_empty() {
            return true;
        }
        let outcomes = match self.service.shared.handle.propose_here(requests).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                // All stay due. Whether the log has them is seen by the next look, or by the next leader.
                tracing::warn!(error = &error as &dyn std::error::Error, "triggers could not fire");
                return false;
            }
        };
        for (object, outcome) in objects.iter().zip(outcomes) {
            match outcome {
                Ok(_) => drop(self.service.shared.metrics.trigger_firings.inc()),
                // Another firing was first, or the trigger has changed: the next look sees that.
                Err(Rejection::NotDue | Rejection::ObjectChanged { .. } | Rejection::UnknownObject) => {}
                Err(rejection) => self.failed(object, &rejection.into()).await,
            }
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

/// Whether what the last firing started has not ended.
fn is_busy(state: &State, status: &TriggerStatus) -> bool {
    last_started(state, status).is_some_and(|started| match started {
        Started::Run(run) => !run.status.is_terminal(),
        Started::Job(job) => !job.status.is_terminal(),
    })
}
