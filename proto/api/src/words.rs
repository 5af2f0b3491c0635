//! The words that some members can have.

/// The words of `reason`. Empty if the job has ended, except `budget`: its budget did not suffice.
pub const REASONS: &[&str] = &[
    "",
    "queued",
    "backoff",
    "lost",
    "in_doubt",
    "running",
    "preparing",
    "cancelling",
    "delayed",
    "parked",
    "waiting",
    "routing",
    "approval",
    "no_node",
    "no_room",
    "unsatisfiable",
    "concurrency",
    "namespace_limit",
    "key_limit",
    "rate_limit",
    "circuit",
    "budget",
];
/// The words of `change`.
pub const CHANGES: &[&str] = &[
    "submitted",
    "granted",
    "carried",
    "started",
    "lost",
    "woken",
    "resolved",
    "parked",
    "routed",
    "cancelling",
    "ended",
];
/// The words of `failure_kind`. Empty if the job did not fail.
pub const FAILURES: &[&str] = &[
    "",
    "agent",
    "no_agent",
    "input_invalid",
    "output_invalid",
    "startup",
    "timeout",
    "queue_timeout",
    "unsatisfiable",
    "rejected",
    "dependency",
    "lease_lost",
    "internal",
];
/// The words of `door`.
pub const DOORS: &[&str] = &["http", "worker", "duty", "peer", "mcp", "local"];
