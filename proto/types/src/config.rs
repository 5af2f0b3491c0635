//! Limits and rules that the whole cluster shares, changed by a command.

use crate::{JOURNAL_INLINE_BYTES_MAX, Level, Micros, level};

/// Replicated configuration. Admission limits bound the state (ADR 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Most jobs that have not ended; more are refused (compatibility §6.1, `max_size`).
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
    /// How deep jobs may spawn others: a job of this depth may not (compatibility §10).
    pub spawn_depth_max: u32,
    /// Whether a failure is retried that the same input brings again: a breach of the schemas, a missing dependency, a
    /// reject (compatibility §13.6).
    pub retry_deterministic: bool,
    /// Maximum backoff before a retry; none is what the contract says.
    pub backoff_max: Option<Micros>,
    /// Most bytes of the journals of all jobs that have not ended.
    pub journal_bytes_max: u64,
    /// After so many failed attempts in a row, of more than one agent version, the circuit of a node opens; 0 is never.
    pub node_failures_max: u32,
}

impl ClusterConfig {
    /// The default spawn depth.
    pub const SPAWN_DEPTH_MAX: u32 = 3;

    /// The failures in a row after which the circuit of a node opens, if nobody has configured it otherwise.
    pub const NODE_FAILURES_MAX: u32 = 20;

    /// The bytes of journals of a cluster that nobody has configured otherwise: of 10,000 jobs at worst.
    pub const JOURNAL_BYTES_MAX: u64 = 10_000 * JOURNAL_INLINE_BYTES_MAX;

    /// The feature level that knows these limits.
    pub fn level(&self) -> Level {
        if self.node_failures_max != Self::NODE_FAILURES_MAX {
            return level::CIRCUITS;
        }
        if self.journal_bytes_max != Self::JOURNAL_BYTES_MAX {
            return level::JOURNAL;
        }
        let limits_retries = !self.retry_deterministic || self.backoff_max.is_some();
        if limits_retries || self.spawn_depth_max != Self::SPAWN_DEPTH_MAX { level::RETRY_LIMITS } else { level::FIRST }
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
            journal_bytes_max: Self::JOURNAL_BYTES_MAX,
            node_failures_max: Self::NODE_FAILURES_MAX,
        }
    }
}
