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
use atlas_types::{EventSeq, Object, ObjectKey, Observation, Outcome, Rejection, Request, RunStep, Timestamp};

use super::firing::{Scheduled, Started, cancel_last, last_started, latest};
use super::{Trigger, seconds, timestamp};
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
        let mut turn =
            Turn { service: &service, retry_at: BTreeMap::new(), delayed: BTreeMap::new(), suspended: BTreeSet::new() };
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
    /// Triggers whose time has come and whose delay has not passed, by uid: the time, the revision, and when they fire. It saves reading
    /// them in each look.
    delayed: BTreeMap<EventSeq, (Timestamp, EventSeq, Timestamp)>,
    /// Triggers whose status says that firing is suspended.
    suspended: BTreeSet<ObjectKey>,
}

impl Turn<'_> {
    /// Plans and fires what is due, at most [`BATCH_MAX`] of each. True if more may be due already, and this look got something done: one
    /// that could not is not repeated at once.
    async fn look(&mut self) -> bool {
        let shared = &self.service.shared;
        let state = shared.handle.applied();
        let planned = self.plan(&state).await;
        // What was planned just now can fire in this look: a trigger that is changed between any two looks fires as well.
        let state = if planned > 0 { shared.handle.applied() } else { state };
        let (now, monotonic) = (shared.env.clock.wall(), shared.env.clock.monotonic());
        self.retry_at.retain(|_, at| *at > monotonic);
        self.delayed.retain(|_, (_, _, until)| *until > now);
        let doubt = *shared.handle.clock_doubt().borrow();
        if doubt.is_none() && !self.suspended.is_empty() {
            self.resume(&state).await;
        }
        let (mut handled, mut due, mut cancels) = (0, Vec::new(), Vec::new());
        for (tick, key) in state.next_fires().take_while(|(tick, _)| *tick <= now) {
            if handled >= BATCH_MAX {
                break;
            }
            let waits = |object: &Object| {
                let delayed = self.delayed.get(&object.uid);
                self.retry_at.contains_key(&object.uid)
                    || delayed.is_some_and(|(of, revision, _)| (of, revision) == (tick, &object.revision))
            };
            let Some(object) = state.object(key).filter(|object| !waits(object)) else { continue };
            if let Some(doubt) = doubt {
                self.suspend(object, &format!("firing is suspended: {doubt}")).await;
                continue;
            }
            match self.firing(&state, object, *tick, now).await {
                Ok(Firing::Waits) => continue,
                Ok(Firing::Delayed(until)) => {
                    self.delayed.insert(object.uid, (*tick, object.revision, until));
                    continue;
                }
                Ok(Firing::Cancels(request)) => cancels.push(request),
                Ok(Firing::Fires(request)) => due.push((Arc::clone(object), request)),
                Err(error) => self.failed(object, &error).await,
            }
            handled += 1;
        }
        let fired = self.fire(due).await;
        let cancelled = self.cancel(cancels).await;
        planned >= BATCH_MAX || (handled >= BATCH_MAX && (fired || cancelled))
    }

    /// Computes the next times of triggers that are new or have changed. Returns the number of those that were written.
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
        if self.observe(observations).await { count } else { 0 }
    }

    /// What one trigger does now.
    async fn firing(
        &self,
        state: &State,
        object: &Arc<Object>,
        tick: Timestamp,
        now: Timestamp,
    ) -> Result<Firing, Error> {
        let trigger = Trigger::read(object)?;
        let fires_at = timestamp(trigger.fires_at(seconds(tick)));
        if fires_at > now {
            return Ok(Firing::Delayed(fires_at));
        }
        let busy = is_busy(state, &trigger.status);
        let (next, missed, skip) = match trigger.definition.due(trigger.number(), seconds(tick), seconds(now), busy) {
            Due::Wait => return Ok(Firing::Waits),
            Due::Cancel => return Ok(cancel_last(&trigger, state).map_or(Firing::Waits, Firing::Cancels)),
            Due::Fire { next, missed } => (next, missed, false),
            Due::Skip { next, missed } => (next, missed, true),
        };
        let due = Scheduled { tick, next: timestamp(next), missed, skip };
        self.service.due_firing(&trigger, due, state).await.map(Firing::Fires)
    }

    /// Proposes firings together, because each would wait for the log. Whether one of them fired.
    async fn fire(&mut self, due: Vec<(Arc<Object>, Request)>) -> bool {
        let (objects, requests): (Vec<_>, Vec<_>) = due.into_iter().unzip();
        let mut fired = false;
        for (object, outcome) in objects.iter().zip(self.propose(requests).await) {
            match outcome {
                Ok(_) => {
                    self.service.shared.metrics.trigger_firings.inc();
                    fired = true;
                }
                // Another firing was first, or the trigger, its agent or its chain has changed, or another job drew the same id: the next
                // look sees that.
                Err(
                    Rejection::NotDue
                    | Rejection::ObjectChanged { .. }
                    | Rejection::UnknownObject
                    | Rejection::StaleAgent
                    | Rejection::StaleRun
                    | Rejection::DuplicateJob { .. },
                ) => {}
                Err(rejection) => self.failed(object, &rejection.into()).await,
            }
        }
        fired
    }

    /// Cancels what earlier firings started. Whether something was cancelled.
    async fn cancel(&self, cancels: Vec<Request>) -> bool {
        // A refusal is a job or run that has ended meanwhile: the next look fires.
        self.propose(cancels).await.iter().any(Result::is_ok)
    }

    /// Proposes requests. No outcomes if that failed: all stay due, and the next look, or the next leader, sees whether the log has them.
    async fn propose(&self, requests: Vec<Request>) -> Vec<Result<Outcome, Rejection>> {
        if requests.is_empty() {
            return Vec::new();
        }
        self.service.shared.handle.propose_here(requests).await.unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "triggers could not fire");
            Vec::new()
        })
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

    /// Writes the status of triggers. False if some of it was not written: the next look finds that the state does not have it.
    async fn observe(&self, observations: Vec<Observation>) -> bool {
        if observations.is_empty() {
            return true;
        }
        self.service.shared.observe_objects(observations).await.unwrap_or_else(|error| {
            tracing::debug!(error = &error as &dyn std::error::Error, "the status of triggers was not written");
            false
        })
    }
}

/// What a trigger does whose time has come.
enum Firing {
    /// It waits for what it started before.
    Waits,
    /// Until then.
    Delayed(Timestamp),
    /// It cancels that first.
    Cancels(Request),
    Fires(Request),
}

fn observation(object: &Object, status: &TriggerStatus) -> Option<Observation> {
    let status = status.document().ok()?.into();
    Some(Observation { key: object.key.clone(), uid: object.uid, revision: object.revision, status })
}

/// Whether what the last firing started has not ended. A cancelled run has, and the jobs of its steps may be on their way.
fn is_busy(state: &State, status: &TriggerStatus) -> bool {
    last_started(state, status).is_some_and(|started| match started {
        Started::Run(run) => {
            let works = |step: &Arc<RunStep>| latest(state, step.job).is_some_and(|job| !job.status.is_terminal());
            !run.status.is_terminal() || run.steps.iter().any(works)
        }
        Started::Job(job) => !job.status.is_terminal(),
    })
}
