//! Whether models can be reached: the status of their objects, and a metric. The observations are those of workers, which add them to the
//! metadata of jobs that called or probed models.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atlas_desk::Desk;
use atlas_raft::Leadership;
use atlas_state::State;
use atlas_telemetry::{ByProvider, Metrics};
use atlas_types::{
    Event, EventRecord, Job, JobChange, Object, ObjectKey, ObjectKind, ObjectName, Observation, Place, Timestamp,
};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;

/// A status that says the same as before is written again after this time.
const SAME_KEPT: Duration = Duration::from_secs(60);
/// Most models of one job.
const MODELS_MAX: usize = 32;
/// Most characters of a reason.
const REASON_CHARS_MAX: usize = 200;

/// What a worker saw of a model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Seen {
    reachable: bool,
    #[serde(default)]
    latency_ms: Option<f64>,
    #[serde(default)]
    error: String,
}

/// The status of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Status {
    /// `reachable` or `unreachable`.
    state: String,
    /// When a worker asked the model last, Unix seconds.
    checked_at: f64,
    /// How long the answer took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ms: Option<f64>,
    /// Why it could not be reached.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
}

impl Status {
    fn of(seen: Seen, at: Timestamp) -> Self {
        let Seen { reachable, latency_ms, error } = seen;
        let state = if reachable { "reachable" } else { "unreachable" }.to_owned();
        let reason = error.chars().take(REASON_CHARS_MAX).collect();
        Self { state, checked_at: at.0 as f64 / 1e6, latency_ms, reason }
    }

    fn read(object: &Object) -> Option<Self> {
        serde_json::from_slice(&object.status).ok()
    }

    /// Whether it has to be written in place of another one.
    fn replaces(&self, old: Option<&Self>) -> bool {
        old.is_none_or(|old| {
            let age = self.checked_at - old.checked_at;
            (&self.state, &self.reason) != (&old.state, &old.reason) || age >= SAME_KEPT.as_secs_f64()
        })
    }
}

/// When a worker asked a model last, Unix seconds; none if nothing is known of it.
pub fn checked_at(object: &Object) -> Option<f64> {
    Status::read(object).map(|status| status.checked_at)
}

/// When a worker reached a model last, Unix seconds; none if it could not the last time, or nothing is known.
pub fn reached_at(object: &Object) -> Option<f64> {
    Status::read(object).filter(|status| status.state == "reachable").map(|status| status.checked_at)
}

/// Follows the log on every member: each keeps the metric, the leader writes the statuses.
pub async fn follow(desk: Arc<Desk>) {
    // Nobody waits for a status.
    let mut batches = desk.handle.subscribe_to(|_| false);
    count(&desk.metrics, &desk.handle.applied(), &BTreeMap::new());
    loop {
        let batch = match batches.recv().await {
            Ok(batch) => batch,
            // The next observation brings the statuses up to date.
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        let seen = seen(&batch.events);
        if seen.is_empty() {
            continue;
        }
        count(&desk.metrics, &batch.state, &seen);
        if !matches!(*desk.handle.leadership().borrow(), Leadership::Leader { .. }) {
            continue;
        }
        let observations = observations(&batch.state, seen);
        if !observations.is_empty()
            && let Err(error) = desk.observe_objects(observations).await
        {
            tracing::debug!(error = &error as &dyn std::error::Error, "could not note the status of models");
        }
    }
}

/// What the jobs that ended say about models.
fn seen(events: &[EventRecord]) -> BTreeMap<ObjectKey, Status> {
    let ended = events.iter().filter_map(|event| match &event.event {
        Event::Job { change: JobChange::Ended, job, .. } => Some((job, event.at)),
        _ => None,
    });
    ended.flat_map(|(job, at)| of_job(job).into_iter().map(move |(key, seen)| (key, Status::of(seen, at)))).collect()
}

/// Only jobs of agents with a model: the metadata of others is that of their programs.
fn of_job(job: &Job) -> Vec<(ObjectKey, Seen)> {
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(rename = "_models")]
        models: BTreeMap<String, Seen>,
    }
    if job.spec.as_ref().is_none_or(|spec| spec.demand.place != Place::Llm) {
        return Vec::new();
    }
    let Ok(Metadata { models }) = serde_json::from_slice(&job.metadata) else { return Vec::new() };
    let key = |name: &str| {
        let (kind, name) = (ObjectKind::new("model").ok()?, ObjectName::new(name).ok()?);
        Some(ObjectKey { namespace: job.namespace.clone(), kind, name })
    };
    models.into_iter().take(MODELS_MAX).filter_map(|(name, seen)| Some((key(&name)?, seen))).collect()
}

fn observations(state: &State, seen: BTreeMap<ObjectKey, Status>) -> Vec<Observation> {
    let observation = |(key, status): (ObjectKey, Status)| {
        let object = state.object(&key)?;
        if !status.replaces(Status::read(object).as_ref()) {
            return None;
        }
        let (uid, revision) = (object.uid, object.revision);
        Some(Observation { key, uid, revision, status: serde_json::to_vec(&status).ok()?.into() })
    };
    seen.into_iter().filter_map(observation).collect()
}

/// A provider is up if none of its models is known to be unreachable. Providers without a known model have no series.
fn count(metrics: &Metrics, state: &State, seen: &BTreeMap<ObjectKey, Status>) {
    #[derive(Deserialize)]
    struct Spec {
        provider: String,
    }
    let Ok(kind) = ObjectKind::new("model") else { return };
    let mut up: BTreeMap<String, bool> = BTreeMap::new();
    for object in state.objects_of_kind(&kind) {
        let Some(status) = seen.get(&object.key).cloned().or_else(|| Status::read(object)) else { continue };
        let Ok(Spec { provider }) = serde_json::from_slice(&object.spec) else { continue };
        *up.entry(provider).or_insert(true) &= status.state == "reachable";
    }
    for (provider, up) in up {
        metrics.llm_provider_up.get_or_create(&ByProvider { provider }).set(up.into());
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn status(seen: &str, seconds: i64) -> Status {
        Status::of(serde_json::from_str(seen).expect("JSON"), Timestamp(seconds * 1_000_000))
    }

    #[test]
    fn a_status_says_when_and_how_the_model_was_reached() {
        let text = |status: &Status| serde_json::to_string(status).expect("JSON");
        let up = status(r#"{"reachable": true, "latency_ms": 212.3}"#, 100);
        expect![[r#"{"state":"reachable","checked_at":100.0,"latency_ms":212.3}"#]].assert_eq(&text(&up));
        let down = status(r#"{"reachable": false, "error": "refused"}"#, 101);
        expect![[r#"{"state":"unreachable","checked_at":101.0,"reason":"refused"}"#]].assert_eq(&text(&down));
    }

    #[test]
    fn a_status_that_says_the_same_is_written_once_a_minute() {
        let up = |seconds| status(r#"{"reachable": true}"#, seconds);
        let down = |seconds| status(r#"{"reachable": false}"#, seconds);
        assert!(up(0).replaces(None) && down(1).replaces(Some(&up(0))) && up(60).replaces(Some(&up(0))));
        assert!(!up(59).replaces(Some(&up(0))));
    }
}
