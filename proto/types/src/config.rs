//! Limits and rules that the whole cluster shares, changed by a command.

use crate::Micros;

/// Replicated configuration. Admission limits bound the state (design §2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Most jobs that have not ended; more are refused (spec §6.1, `max_size`).
    pub jobs_active_max: u64,
    /// Most jobs in the state, ended ones that history has not confirmed included.
    pub jobs_total_max: u64,
    /// Most payload bytes in the state.
    pub inline_bytes_max: u64,
    /// Most remembered request ids.
    pub dedupe_max: u64,
    /// How long a request id is remembered at least, unless `dedupe_max` pushes it out.
    pub dedupe_retention: Micros,
    /// How many ended jobs stay in the state although history has them, for fast reads.
    pub jobs_ended_kept: u64,
    /// Most registered agent versions.
    pub agents_max: u64,
    /// Most registered nodes.
    pub nodes_max: u64,
    /// How deep jobs may spawn others: a job of this depth may not (spec §10).
    pub spawn_depth_max: u32,
    /// Whether a failure is retried that the same input brings again: a breach of the schemas, a missing dependency, a reject (spec
    /// §13.6).
    pub retry_deterministic: bool,
    /// Longest back-off before a retry; none is what the contract says.
    pub backoff_max: Option<Micros>,
}

impl ClusterConfig {
    /// The spawn depth of a cluster that nobody has configured otherwise.
    pub const SPAWN_DEPTH_MAX: u32 = 3;

    /// Whether it says what programs before feature level 3 do not know.
    pub fn needs_level_3(&self) -> bool {
        self.spawn_depth_max != Self::SPAWN_DEPTH_MAX || !self.retry_deterministic || self.backoff_max.is_some()
    }
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            jobs_active_max: 1_000,
            jobs_total_max: 1_000_000,
            inline_bytes_max: 1 << 30,
            dedupe_max: 1_000_000,
            dedupe_retention: Micros::from_secs(24 * 3_600),
            jobs_ended_kept: 1_000,
            agents_max: 10_000,
            nodes_max: 10_000,
            spawn_depth_max: Self::SPAWN_DEPTH_MAX,
            retry_deterministic: true,
            backoff_max: None,
        }
    }
}
