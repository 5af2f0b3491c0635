//! The replicated configuration.

use atlas_types::{ClusterConfig, Micros};

use crate::proto;

impl From<&ClusterConfig> for proto::ClusterConfig {
    fn from(config: &ClusterConfig) -> Self {
        Self {
            jobs_active_max: config.jobs_active_max,
            jobs_total_max: config.jobs_total_max,
            inline_bytes_max: config.inline_bytes_max,
            dedupe_max: config.dedupe_max,
            dedupe_retention_us: config.dedupe_retention.0,
            jobs_ended_kept: config.jobs_ended_kept,
            agents_max: config.agents_max,
            nodes_max: config.nodes_max,
            // What a program before level 3 wrote has the default.
            spawn_depth_max: (config.spawn_depth_max != ClusterConfig::SPAWN_DEPTH_MAX)
                .then_some(config.spawn_depth_max),
            retry_transient_only: !config.retry_deterministic,
            backoff_max_us: config.backoff_max.map(|longest| longest.0),
            journal_bytes_max: (config.journal_bytes_max != ClusterConfig::JOURNAL_BYTES_MAX)
                .then_some(config.journal_bytes_max),
            node_failures_max: (config.node_failures_max != ClusterConfig::NODE_FAILURES_MAX)
                .then_some(config.node_failures_max),
        }
    }
}

impl From<proto::ClusterConfig> for ClusterConfig {
    fn from(config: proto::ClusterConfig) -> Self {
        Self {
            jobs_active_max: config.jobs_active_max,
            jobs_total_max: config.jobs_total_max,
            inline_bytes_max: config.inline_bytes_max,
            dedupe_max: config.dedupe_max,
            dedupe_retention: Micros(config.dedupe_retention_us),
            jobs_ended_kept: config.jobs_ended_kept,
            agents_max: config.agents_max,
            nodes_max: config.nodes_max,
            spawn_depth_max: config.spawn_depth_max.unwrap_or(Self::SPAWN_DEPTH_MAX),
            retry_deterministic: !config.retry_transient_only,
            backoff_max: config.backoff_max_us.map(Micros),
            journal_bytes_max: config.journal_bytes_max.unwrap_or(Self::JOURNAL_BYTES_MAX),
            node_failures_max: config.node_failures_max.unwrap_or(Self::NODE_FAILURES_MAX),
        }
    }
}
