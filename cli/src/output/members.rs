//! The members of the API's objects. With them, a misspelt name is distinguished from a member that an object lacks.

/// The members that objects of a kind can have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Members(pub(crate) &'static [&'static str]);

/// Members of a job with `view=full`.
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
    "run",
    "route",
    "warm",
    "failure_kind",
    "error_code",
    "forked_from",
    "fork_steps",
    "fork_model",
    "parent",
    "depth",
    "retried_by",
    "principal",
    "door",
    "request_id",
    "labels",
    "queue_ms",
    "total_ms",
    "tokens_input",
    "tokens_output",
    "cost_usd",
    "budget_usd",
    "unsatisfiable",
    "questions",
    "needs_answer",
    "approvals",
    "needs_approval",
    "tree_cost_usd",
]);

/// Members of a trigger with `view=full`.
pub(crate) const TRIGGER: Members = Members(&[
    "id",
    "name",
    "trigger_type",
    "enabled",
    "agent_name",
    "chain_name",
    "input_data",
    "priority",
    "metadata",
    "cron_expr",
    "interval_seconds",
    "fire_at",
    "webhook_secret",
    "last_fired",
    "next_fire",
    "fire_count",
    "last_job_id",
    "created_at",
    "namespace",
    "revision",
    "time_zone",
    "overlap",
    "catch_up",
    "jitter_seconds",
    "hmac",
    "replay_window_seconds",
    "map",
    "missed",
    "error",
    "firings",
]);

/// Members of a trace.
pub(crate) const TRACE: Members = Members(&[
    "trace_id",
    "job_id",
    "agent_name",
    "status",
    "warmup_ms",
    "execution_ms",
    "started_at",
    "completed_at",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "model",
    "estimated_cost_usd",
    "parent_trace_id",
    "chain_name",
    "step_index",
    "eval_results",
    "metadata",
    "error",
    "failed_at",
    "steps",
]);

/// Members of an agent version with `view=full`.
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
    "circuit",
    "input_schema",
    "output_schema",
    "contract",
    "registered_by",
    "revision",
    "revisions",
]);

/// Members of a package of an agent version.
pub(crate) const AGENT_REVISION: Members =
    Members(&["revision", "digest", "package_bytes", "registered_at", "registered_by", "copy_of"]);

/// Members of a node.
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
    "llm_places",
    "llm_places_free",
    "running",
    "warm",
    "labels",
    "operator_labels",
    "registered_at",
    "circuit",
    "rival",
]);

/// Members of a GPU, with its node.
pub(crate) const GPU: Members =
    Members(&["node", "index", "uuid", "healthy", "mig_profile", "model", "memory_bytes", "free_bytes"]);

/// Members of a model, with its tiers.
pub(crate) const MODEL: Members = Members(&["kind", "metadata", "spec", "status", "tiers"]);

/// Members of what names a secret.
pub(crate) const READER: Members = Members(&["kind", "name", "allowed", "why"]);

/// Members of a row of the price list.
pub(crate) const PRICE: Members =
    Members(&["model", "provider", "from", "input", "output", "cache_read", "cache_write"]);

/// Members of a conversation.
pub(crate) const CONVERSATION: Members = Members(&[
    "id",
    "agent",
    "scope",
    "owner",
    "turns",
    "bytes",
    "created_at",
    "updated_at",
    "expires_at",
    "running_job",
    "messages",
]);

/// Members of a run of a chain.
pub(crate) const RUN: Members = Members(&[
    "id",
    "chain_name",
    "status",
    "input_data",
    "created_at",
    "completed_at",
    "current_step",
    "total_steps",
    "result",
    "revision",
    "definition",
    "priority",
    "version",
    "step_jobs",
    "failure",
    "job_id",
]);

/// Members of a question.
pub(crate) const QUESTION: Members = Members(&[
    "id",
    "job",
    "step",
    "number",
    "kind",
    "prompt",
    "options",
    "many",
    "other",
    "schema",
    "answerers",
    "status",
    "asked_at",
    "deadline",
    "default",
    "answer",
    "answered_by",
    "ended_at",
    "approval",
]);

/// Members of a controller.
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
    "backup_at",
    "certificate_due_at",
    "certificate_ends_at",
    "level",
    "version",
    "peer",
    "worker",
    "http",
]);

/// Members of an answer that contains only the id of the created object.
pub(crate) const ID: Members = Members(&["id"]);

impl Members {
    /// Whether objects of the kind can have this member.
    pub(crate) fn has(self, name: &str) -> bool {
        self.0.contains(&name)
    }
}

/// Members of an object of a kind that the controllers know.
pub(crate) const OBJECT: Members = Members(&["kind", "metadata", "spec", "status"]);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// The API's schemas of its objects.
    const SCHEMAS: &str = include_str!("../../../proto/api/src/schemas.json");

    #[test]
    fn members_are_those_of_the_api() {
        let schemas: Value = serde_json::from_str(SCHEMAS).expect("JSON");
        for (name, known) in [
            ("Job", JOB),
            ("AgentDetails", AGENT),
            ("AgentRevision", AGENT_REVISION),
            ("Node", NODE),
            ("Trace", TRACE),
            ("Member", CONTROLLER),
            ("Object", OBJECT),
            ("Conversation", CONVERSATION),
        ] {
            let described: BTreeSet<&str> =
                schemas[name]["properties"].as_object().expect("an object").keys().map(String::as_str).collect();
            assert_eq!(described, known.0.iter().copied().collect(), "{name}");
        }
    }
}
