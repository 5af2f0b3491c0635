//! Settings of the whole cluster that an option of one controller can set.

use std::time::Duration;

use atlas_env::Env;
use atlas_raft::{Handle, Leadership};
use atlas_types::{ClusterConfig, Command, ConfigureCluster, Micros, Namespace, Origin, Request};

/// The pause between two tries.
const INTERVAL: Duration = Duration::from_millis(100);

/// The settings that an operator has given. None keeps the cluster's value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// The most jobs that have not ended.
    pub jobs_active_max: Option<u64>,
    /// How long idempotency keys of clients are remembered.
    pub dedupe_retention: Option<Duration>,
    /// The most remembered idempotency keys.
    pub dedupe_max: Option<u64>,
    /// The deepest nesting of spawned jobs.
    pub spawn_depth_max: Option<u32>,
    /// Whether jobs with a deterministic failure are retried.
    pub retry_deterministic: Option<bool>,
    /// The longest backoff before a retry.
    pub backoff_max: Option<Duration>,
    /// Most bytes of the journals of all jobs that have not ended.
    pub journal_bytes_max: Option<u64>,
    /// The failures in a row after which the circuit of a node opens; 0 is never.
    pub node_failures_max: Option<u32>,
}

impl Rules {
    fn on(&self, config: &ClusterConfig) -> ClusterConfig {
        ClusterConfig {
            jobs_active_max: self.jobs_active_max.unwrap_or(config.jobs_active_max),
            dedupe_retention: self.dedupe_retention.map_or(config.dedupe_retention, Micros::from),
            dedupe_max: self.dedupe_max.unwrap_or(config.dedupe_max),
            spawn_depth_max: self.spawn_depth_max.unwrap_or(config.spawn_depth_max),
            retry_deterministic: self.retry_deterministic.unwrap_or(config.retry_deterministic),
            backoff_max: self.backoff_max.map(Micros::from).or(config.backoff_max),
            journal_bytes_max: self.journal_bytes_max.unwrap_or(config.journal_bytes_max),
            node_failures_max: self.node_failures_max.unwrap_or(config.node_failures_max),
            ..config.clone()
        }
    }
}

/// Sets the rules if they differ, once there is a leader and all controllers know them.
pub(crate) async fn configure(handle: Handle, rules: Rules, env: Env) {
    let mut leadership = handle.leadership();
    while leadership.wait_for(|leadership| matches!(leadership, Leadership::Leader { .. })).await.is_ok() {
        if let Ok(state) = handle.read().await {
            let config = rules.on(state.config());
            if config == *state.config() {
                return;
            }
            let command = Command::ConfigureCluster(ConfigureCluster { config });
            let request = Request { origin: Origin::duty(Namespace::default_namespace()), command };
            // Refused until the feature level that has these settings is active.
            if handle.propose(vec![request]).await.is_ok_and(|outcomes| outcomes.iter().all(Result::is_ok)) {
                return;
            }
        }
        env.clock.sleep(INTERVAL).await;
    }
}
