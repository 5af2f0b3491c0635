//! The replicated configuration.

use atlas_types::ClusterConfig;

use super::table::{Opposite, Unless, UnlessWide, table};

table! {
    "config": ClusterConfig = ClusterConfig {
        jobs_active_max = jobs_active_max,
        jobs_total_max = jobs_total_max,
        inline_bytes_max = inline_bytes_max,
        dedupe_max = dedupe_max,
        dedupe_retention = dedupe_retention_us,
        jobs_ended_kept = jobs_ended_kept,
        agents_max = agents_max,
        nodes_max = nodes_max,
        spawn_depth_max = spawn_depth_max via Unless<{ ClusterConfig::SPAWN_DEPTH_MAX }>,
        retry_deterministic = retry_transient_only via Opposite,
        backoff_max = backoff_max_us,
        journal_bytes_max = journal_bytes_max via UnlessWide<{ ClusterConfig::JOURNAL_BYTES_MAX }>,
        node_failures_max = node_failures_max via Unless<{ ClusterConfig::NODE_FAILURES_MAX }>,
    }
}
