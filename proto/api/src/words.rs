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
/// The words of the `status` of a job or of a run.
pub const STATUSES: &[&str] = &["pending", "running", "completed", "failed", "cancelled"];
/// The words of the `kind` of an agent.
pub const AGENT_KINDS: &[&str] = &["agent", "orchestrator"];
/// The words of the `provider` of an agent: how it runs.
pub const PROVIDERS: &[&str] = &["python", "node", "exec", "llm", "graph", "normal"];
/// The words of the `kind` of an event.
pub const EVENT_KINDS: &[&str] = &["job", "agent", "node", "object", "run", "cluster"];
/// The words of the `mode` of a controller.
pub const MODES: &[&str] = &["production", "dev"];
/// The words of the `effect` of a policy.
pub const EFFECTS: &[&str] = &["allow", "ask", "deny"];
/// The words of the `status` of a login.
pub const LOGINS: &[&str] = &["waiting", "logged_in", "logged_out"];
/// The words of `trigger_type`.
pub const TRIGGER_TYPES: &[&str] = &["cron", "interval", "one_shot", "webhook"];
/// The words of `overlap`.
pub const OVERLAPS: &[&str] = &["allow", "skip", "queue", "cancel"];
/// The words of `scheme`: who signs the calls of a webhook.
pub const SCHEMES: &[&str] = &["atlas", "github", "stripe", "slack", "shopify", "standard"];
