//! The leader asks models that no job has called for a while whether they can be reached, by jobs of the agent that `atlasctl model add`
//! registers. Their observations reach the status of the models as those of all jobs do (`model_health.rs`).
//!
//! A probe only informs: no call waits for it, and no model is left out because of it.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use atlas_desk::on_behalf;
use atlas_jobs::passes_on;
use atlas_platform::model_health::checked_at;
use atlas_raft::Leadership;
use atlas_state::State;
use atlas_types::{JobId, ObjectKey, ObjectKind};
use serde_json::json;

use crate::needs::UNASKED;
use crate::probes::{self, OwnAgent, Standing};
use crate::service::Shared;
use crate::{Error, Service};

/// How often the leader looks for models that are due, at most.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Most probes at the same time.
const PROBES_MAX: usize = 4;

/// Which probes one leader has made.
#[derive(Debug)]
struct Schedule {
    /// How long after its last observation a model is asked again, in seconds.
    every: f64,
    /// When each model was asked last, Unix seconds. An answer may be missing, for example because the job failed before it asked.
    asked: BTreeMap<ObjectKey, f64>,
    running: BTreeMap<ObjectKey, JobId>,
}

impl Schedule {
    fn new(every: Duration) -> Self {
        Self { every: every.as_secs_f64(), asked: BTreeMap::new(), running: BTreeMap::new() }
    }

    /// The models to ask now, those first whose observation is the oldest. `models` has the time of the last observation of each.
    fn due(&mut self, models: &BTreeMap<ObjectKey, f64>, ended: impl Fn(JobId) -> bool, now: f64) -> Vec<ObjectKey> {
        self.running.retain(|_, job| !ended(*job));
        self.asked.retain(|key, _| models.contains_key(key));
        let last = |key: &ObjectKey, seen: f64| self.asked.get(key).map_or(seen, |asked| asked.max(seen));
        let mut due: Vec<(f64, &ObjectKey)> = models
            .iter()
            .map(|(key, seen)| (last(key, *seen), key))
            .filter(|(last, key)| now - last >= self.every && !self.running.contains_key(*key))
            .collect();
        due.sort_by(|a, b| a.0.total_cmp(&b.0));
        let room = PROBES_MAX.saturating_sub(self.running.len());
        due.into_iter().take(room).map(|(_, key)| key.clone()).collect()
    }
}

/// Probes models while this member leads.
pub(crate) async fn probe(shared: Arc<Shared>) {
    let Some(every) = shared.limits.models_probed_every else { return pending().await };
    let mut leadership = shared.handle.leadership();
    let leads = |leadership: &Leadership| matches!(leadership, Leadership::Leader { .. });
    let service = Service { shared: Arc::clone(&shared) };
    while leadership.wait_for(leads).await.is_ok() {
        let mut schedule = Schedule::new(every);
        while leads(&leadership.borrow()) {
            if let Err(error) = look(&service, &mut schedule).await {
                tracing::debug!(error = &error as &dyn std::error::Error, "could not look for models to probe");
            }
            shared.env.clock.sleep(LOOK_EVERY.min(every)).await;
        }
    }
}

async fn look(service: &Service, schedule: &mut Schedule) -> Result<(), Error> {
    let shared = &service.shared;
    let state = shared.handle.applied();
    let own = probes::probe()?;
    let now = shared.env.clock.wall().0 as f64 / 1e6;
    let ended = |job: JobId| state.job(job).is_none_or(|job| job.status.is_terminal());
    for key in schedule.due(&models(shared, &state, own)?, ended, now) {
        schedule.asked.insert(key.clone(), now);
        let caller = on_behalf::cluster_in(key.namespace.clone());
        let submission = own.submission(&json!({ "model": key.name.as_str() }), UNASKED);
        match service.submit(&caller, submission).await {
            Ok(job) => {
                schedule.running.insert(key, job);
            }
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, model = %key.name, "could not probe a model");
            }
        }
    }
    Ok(())
}

/// The models that were asked before, with the time of the last observation, in namespaces that have the cluster's own agent.
fn models(shared: &Shared, state: &State, own: &'static OwnAgent) -> Result<BTreeMap<ObjectKey, f64>, Error> {
    let asked = state.objects_of_kind(&ObjectKind::new("model")?).filter_map(|object| {
        // Without the credential of a caller the provider says nothing about itself.
        let seen = checked_at(object).filter(|_| !passes_on(object))?;
        let namespace = &object.key.namespace;
        match own.standing(state, namespace) {
            Standing::Ready => Some((object.key.clone(), seen)),
            Standing::Missing => None,
            Standing::Foreign => {
                shared.needs.is_foreign(namespace, own);
                None
            }
        }
    });
    Ok(asked.collect())
}

#[cfg(test)]
mod tests {
    use atlas_types::{Namespace, ObjectName};
    use expect_test::{Expect, expect};

    use super::*;

    fn key(name: &str) -> ObjectKey {
        let (kind, name) = (ObjectKind::new("model").expect("a kind"), ObjectName::new(name).expect("a name"));
        ObjectKey { namespace: Namespace::default_namespace(), kind, name }
    }

    fn schedule() -> Schedule {
        Schedule::new(Duration::from_secs(300))
    }

    fn check(schedule: &mut Schedule, models: &[(&str, f64)], ended: &[u64], now: f64, expected: &Expect) {
        let models = models.iter().map(|(name, seen)| (key(name), *seen)).collect();
        let due = schedule.due(&models, |job| ended.contains(&job.0), now);
        let names: Vec<&str> = due.iter().map(|key| key.name.as_str()).collect();
        expected.assert_eq(&names.join(" "));
    }

    #[test]
    fn models_that_nobody_called_are_due_after_the_interval_the_oldest_first() {
        let models = [("a", 100.0), ("b", 50.0), ("c", 390.0)];
        check(&mut schedule(), &models, &[], 349.0, &expect![""]);
        check(&mut schedule(), &models, &[], 399.0, &expect!["b"]);
        check(&mut schedule(), &models, &[], 400.0, &expect!["b a"]);
    }

    #[test]
    fn few_probes_run_at_once_and_none_twice() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let models: Vec<(&str, f64)> = names.iter().map(|name| (*name, 0.0)).collect();
        let mut schedule = schedule();
        check(&mut schedule, &models, &[], 1_000.0, &expect!["a b c d"]);
        schedule.running = [(key("a"), JobId(1)), (key("b"), JobId(2))].into();
        check(&mut schedule, &models, &[], 1_000.0, &expect!["c d"]);
        // `a` has ended without an observation.
        schedule.asked.insert(key("a"), 1_000.0);
        check(&mut schedule, &models, &[1], 1_000.0, &expect!["c d e"]);
        check(&mut schedule, &models, &[1, 2], 1_300.0, &expect!["b c d e"]);
        check(&mut schedule, &models[..1], &[], 1_300.0, &expect!["a"]);
    }

    #[test]
    fn the_clock_may_go_back_and_models_may_go() {
        let mut schedule = Schedule { asked: [(key("gone"), 5.0)].into(), ..schedule() };
        check(&mut schedule, &[("a", 1_000.0)], &[], 10.0, &expect![""]);
        assert!(schedule.asked.is_empty());
    }
}
