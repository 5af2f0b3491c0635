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
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            jobs_active_max: 1_000,
            jobs_total_max: 1_000_000,
            inline_bytes_max: 1 << 30,
            dedupe_max: 100_000,
            dedupe_retention: Micros::from_secs(24 * 3_600),
            jobs_ended_kept: 1_000,
            agents_max: 10_000,
            nodes_max: 10_000,
        }
    }
}
