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
        }
    }
}
