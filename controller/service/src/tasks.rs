//! The background tasks. They follow the log, serve waiters and readers of events, feed the history, and synchronise the history and artifacts
//! with the other members; those of the leader drive runs, triggers, orchestrators and upkeep.

use std::sync::Arc;

use atlas_env::Task;
use atlas_platform::model_health;
use futures::future::BoxFuture;

use crate::service::Shared;
use crate::{Service, base_vectors, collect, follow, model_probe, needs, orchestrators, runs, triggers};

/// The tasks of a service. Dropping this value ends them.
pub struct Followers(Vec<Task<()>>);

impl Drop for Followers {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

impl Followers {
    /// Starts the tasks of a service.
    pub fn start(service: &Service) -> Self {
        let Service { shared } = service;
        let env = &shared.env;
        Self(vec![
            env.spawn_vital("follow-events", follow::events(shared.clone())),
            env.spawn_restarting("keep-statistics", keep_totals(shared)),
            env.spawn_restarting("watch-health", again(&shared.desk, atlas_upkeep::watch)),
            env.spawn_vital("follow-history", atlas_upkeep::follow(shared.desk.clone())),
            env.spawn_vital("acknowledge-history", atlas_upkeep::acknowledge(shared.desk.clone())),
            env.spawn_restarting("watch-models", again(&shared.desk, model_health::follow)),
            env.spawn_restarting("probe-models", again(shared, model_probe::probe)),
            env.spawn_restarting("build-bases", again(shared, base_vectors::build)),
            env.spawn_restarting("collect-sources", again(shared, collect::collect)),
            env.spawn_restarting("watch-servers", again(shared, needs::watch)),
            env.spawn_restarting("forget-credentials", again(&shared.jobs, atlas_jobs::sweep)),
            env.spawn_restarting("expire-conversations", expire_conversations(shared)),
            env.spawn_restarting("catch-up", again(&shared.desk, atlas_upkeep::catch_up)),
            env.spawn_restarting("fill-artifacts", again(&shared.upkeep, atlas_upkeep::fill)),
            env.spawn_restarting("collect-artifacts", again(&shared.desk, atlas_upkeep::collect)),
            env.spawn_restarting("scrub-artifacts", again(&shared.desk, atlas_upkeep::scrub)),
            env.spawn_restarting("drive-runs", again(shared, runs::drive)),
            env.spawn_restarting("carry-jobs", again(shared, runs::carry)),
            env.spawn_restarting("fire-triggers", again(shared, triggers::fire)),
            env.spawn_restarting("route", again(shared, orchestrators::run)),
            env.spawn_restarting("audit-approvals", again(&shared.desk, atlas_trail::record_unanswered)),
        ])
    }
}

/// Returns a function that starts a task on what it stands on each time it is called.
fn again<T, F>(on: &Arc<T>, task: fn(Arc<T>) -> F) -> impl Fn() -> F + use<T, F> {
    let on = on.clone();
    move || task(on.clone())
}

/// Returns a function that starts the task of the statistics.
fn keep_totals(shared: &Arc<Shared>) -> impl Fn() -> BoxFuture<'static, ()> + use<> {
    let shared = shared.clone();
    move || Box::pin(atlas_platform::keep_totals(shared.desk.clone(), shared.stats.clone()))
}

/// Returns a function that starts the task of the conversations.
fn expire_conversations(shared: &Arc<Shared>) -> impl Fn() -> BoxFuture<'static, ()> + use<> {
    let shared = shared.clone();
    move || Box::pin(atlas_conversations::expire(shared.conversations.clone()))
}
