//! The members of the API's objects, which distinguish a misspelt name from a member that an object does not have.

/// A kind of object: what people call it, and the members that it may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Members(pub(crate) &'static [&'static str]);

/// Of a job with `view=full`.
pub(crate) const JOB: Members = Members(&[
    "id",
    "agent_name",
    "status",
    "input_data",
    "output_data",
    "error",
    "priority",
    "created_at",
    "started_at",
    "completed_at",
    "warmup_ms",
    "execution_ms",
    "retry_count",
    "original_job_id",
    "metadata",
    "reason",
    "waiting_for",
    "namespace",
    "agent_version",
    "digest",
    "attempt",
    "max_attempts",
    "node",
    "epoch",
    "fencing_token",
    "warm",
    "failure_kind",
    "parent",
    "depth",
    "retried_by",
    "principal",
    "door",
    "request_id",
    "labels",
    "queue_ms",
    "total_ms",
]);

/// Of an agent version with `view=full`.
pub(crate) const AGENT: Members = Members(&[
    "name",
    "version",
    "description",
    "capabilities",
    "kind",
    "provider",
    "digest",
    "package_bytes",
    "registered_at",
    "retired",
    "deprecated",
    "labels",
    "input_schema",
    "output_schema",
    "contract",
]);

/// Of a node.
pub(crate) const NODE: Members = Members(&[
    "id",
    "epoch",
    "health",
    "cordoned",
    "draining",
    "drain_ends_at",
    "cores",
    "cores_free",
    "memory_bytes",
    "memory_bytes_free",
    "arch",
    "gpus",
    "devices",
    "hardware_checks",
    "places",
    "places_free",
    "running",
    "warm",
    "labels",
    "operator_labels",
    "registered_at",
]);

/// Of a GPU, with its node.
pub(crate) const GPU: Members =
    Members(&["node", "index", "uuid", "healthy", "mig_profile", "model", "memory_bytes", "free_bytes"]);

/// Of a controller.
pub(crate) const CONTROLLER: Members = Members(&[
    "id",
    "name",
    "role",
    "reachable",
    "term",
    "last_index",
    "applied",
    "matched",
    "heartbeat_ms",
    "fsync_p99_ms",
    "short_of_space",
    "level",
    "version",
    "peer",
    "worker",
    "http",
]);

/// Of what a verb answers that has only the name of what it made.
pub(crate) const ID: Members = Members(&["id"]);

impl Members {
    /// Whether objects of the kind may have it.
    pub(crate) fn has(self, name: &str) -> bool {
        self.0.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// The interface's own description of its objects.
    const SCHEMAS: &str = include_str!("../../../controller/server/src/http/api/schemas.json");

    #[test]
    fn members_are_those_of_the_api() {
        let schemas: Value = serde_json::from_str(SCHEMAS).expect("JSON");
        for (name, known) in [("Job", JOB), ("AgentDetails", AGENT), ("Node", NODE), ("Member", CONTROLLER)] {
            let described: BTreeSet<&str> =
                schemas[name]["properties"].as_object().expect("an object").keys().map(String::as_str).collect();
            assert_eq!(described, known.0.iter().copied().collect(), "{name}");
        }
    }
}
