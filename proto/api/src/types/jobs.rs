//! Jobs: what they are, and what can be done with them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::is_default;
use crate::words;

/// One job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Job {
    /// `job-` and sixteen hexadecimal digits
    pub id: String,
    /// the agent
    pub agent_name: String,
    /// the status
    #[schemars(extend("enum" = words::STATUSES))]
    pub status: String,
    /// the input
    pub input_data: Value,
    /// the output; null if there is none
    pub output_data: Option<Value>,
    /// error of a failed job; otherwise empty
    pub error: String,
    /// higher runs first
    pub priority: i64,
    /// Unix seconds
    pub created_at: f64,
    /// Unix seconds; 0 if it has not started
    pub started_at: f64,
    /// Unix seconds; 0 if it has not ended
    pub completed_at: f64,
    /// start time of the agent; 0 in a warm slot
    pub warmup_ms: f64,
    /// execution time
    pub execution_ms: f64,
    /// number of the retry within its family; 0 for the first job
    pub retry_count: u64,
    /// the first job of its family, if it is a retry
    pub original_job_id: String,
    /// metadata of triggers, chains and attempts
    pub metadata: Map<String, Value>,
    /// reason for the status, one word; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("enum" = words::REASONS))]
    pub reason: String,
    /// what it is waiting for, a sentence; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub waiting_for: String,
    /// what it is about, a sentence; with `view=full`, if it has a title
    #[serde(skip_serializing_if = "is_default")]
    pub title: String,
    /// namespace; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    /// version of the agent; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub agent_version: String,
    /// digest of that version's package; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub digest: String,
    /// number of the event of its submission; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub log: u64,
    /// number of the latest attempt; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub attempt: u64,
    /// attempts that ended because the job was parked, which do not count; with `view=full`, if there were any
    #[serde(skip_serializing_if = "is_default")]
    pub parks: u64,
    /// maximum number of attempts; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub max_attempts: u64,
    /// the node; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub node: String,
    /// the node's epoch; with `view=full`, while it has a lease
    #[serde(skip_serializing_if = "is_default")]
    pub epoch: u64,
    /// the lease's token; with `view=full`, while it has a lease
    #[serde(skip_serializing_if = "is_default")]
    pub fencing_token: u64,
    /// the run that carries it, or carried it; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub run: String,
    /// what the orchestrator decided about it: `action`, `decider`, `selection` (its revision), `asked_agent`, and `rule` if a rule decided; with
    /// `view=full`, unless the default orchestrator allowed it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<JobRoute>,
    /// whether a warm slot ran it; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub warm: bool,
    /// kind of failure; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("enum" = words::FAILURES))]
    pub failure_kind: String,
    /// code of the error, with a page of its own; empty unless the job failed; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub error_code: String,
    /// the job that spawned it; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub parent: String,
    /// number of spawning jobs above it; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub depth: u64,
    /// the job that retries it; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub retried_by: String,
    /// the job whose first steps it began with; with `view=full`, if there is one
    #[serde(skip_serializing_if = "is_default")]
    pub forked_from: String,
    /// how many steps it began with; with `view=full`, if it is a fork
    #[serde(skip_serializing_if = "is_default")]
    pub fork_steps: u64,
    /// the model or tier that it calls instead of the one in its contract; with `view=full`, if it is a fork with another one
    #[serde(skip_serializing_if = "is_default")]
    pub fork_model: String,
    /// who submitted it; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub principal: String,
    /// interface it came through; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("enum" = words::DOORS))]
    pub door: String,
    /// the idempotency key; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub request_id: String,
    /// its labels; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub labels: BTreeMap<String, String>,
    /// time in the queue; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub queue_ms: f64,
    /// time from submission to end; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub total_ms: f64,
    /// tokens that its recorded steps sent to models, in all attempts; with `view=full`, if there were any
    #[serde(skip_serializing_if = "is_default")]
    pub tokens_input: u64,
    /// tokens that models answered; with `view=full`, if there were any
    #[serde(skip_serializing_if = "is_default")]
    pub tokens_output: u64,
    /// price of its recorded steps in US dollars; with `view=full`, if there were any
    #[serde(skip_serializing_if = "is_default")]
    pub cost_usd: f64,
    /// most that its model calls may cost in US dollars; with `view=full`, if it has a budget
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// it waits while no registered node has what it needs; with `view=full`, unless it fails then
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("const" = "wait"))]
    pub unsatisfiable: String,
    /// the rule for its questions; with `view=full`, unless it is `fail`
    #[serde(skip_serializing_if = "is_default")]
    pub questions: String,
    /// its open questions and those of the jobs below it; with `view=full`, if there are any
    #[serde(skip_serializing_if = "is_default")]
    pub needs_answer: Vec<String>,
    /// the approvals that policies demand: `policy`, `rule`, `question`, the `agent` that may run with it (another one than that of the job if an
    /// orchestrator redirected the job since), and `approved_by`, which is empty while nobody has approved; with `view=full`, if there are any
    #[serde(skip_serializing_if = "is_default")]
    pub approvals: Vec<JobApproval>,
    /// those of `needs_answer` that policies ask: `question`, `job`, and `who` may answer, in words; with `view=full`, if there are any
    #[serde(skip_serializing_if = "is_default")]
    pub needs_approval: Vec<NeededApproval>,
    /// its price together with that of the jobs below it in the state; with `view=full`, if it has children and any of them cost something
    #[serde(skip_serializing_if = "is_default")]
    pub tree_cost_usd: f64,
}

/// A job as in [Job](#job) with `view=full`, and the jobs that it spawned.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobTree {
    #[serde(flatten)]
    #[schemars(with = "TreeRoot")]
    pub job: Job,
    /// the jobs that it spawned, oldest first; at most 1000 in total
    pub children: Vec<JobTree>,
    /// the jobs that it was retried as, oldest first, if there are any; a retry of a child is another child
    #[serde(skip_serializing_if = "is_default")]
    pub retries: Vec<JobTree>,
}

/// What the schema of a tree says about its root: all else is that of a job.
#[derive(JsonSchema)]
struct TreeRoot {
    /// `job-` and sixteen hexadecimal digits
    #[expect(dead_code, reason = "for the schema alone")]
    id: String,
}

/// What an orchestrator decided about a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct JobRoute {
    /// `allow`, `redirect`, `reject` or `undecided`
    pub action: String,
    /// what decided
    pub decider: String,
    /// the revision of the selection
    pub selection: u64,
    /// the agent that the job was submitted for
    pub asked_agent: String,
    /// the rule that decided, if one did
    #[serde(skip_serializing_if = "is_default")]
    pub rule: String,
}

/// An approval that a policy demands of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct JobApproval {
    pub policy: String,
    pub rule: String,
    pub question: String,
    /// the agent that may run with it
    pub agent: String,
    /// empty while nobody has approved
    pub approved_by: String,
}

/// An open question of a policy, about a job or one below it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct NeededApproval {
    pub question: String,
    pub job: String,
    /// who may answer, in words
    pub who: String,
}

/// A recorded step of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Step")]
pub struct JobStep {
    /// its number, from 0
    pub step: u64,
    /// what it records
    #[schemars(extend("enum" = ["start", "model", "tools", "child", "sleep", "question", "intent", "effect", "code"]))]
    pub kind: String,
    /// hash of what was asked, 32 hexadecimal digits
    pub key: String,
    /// how long it took
    pub duration_ms: f64,
    /// tokens sent to a model
    pub tokens_input: u64,
    /// tokens that a model answered
    pub tokens_output: u64,
    /// its price in dollars
    pub cost_usd: f64,
    /// size of the outcome
    pub outcome_bytes: u64,
    /// what came of it; null if a long list has no room for it
    pub outcome: Value,
}

/// Result of an erasure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Erased")]
pub struct Erasure {
    /// always true; what cannot be erased is an error
    #[schemars(extend("const" = true))]
    pub erased: bool,
}

/// Result of a cancellation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Cancelled")]
pub struct Cancellation {
    /// false if there was nothing to cancel
    pub cancelled: bool,
}

/// Resolution of a job in doubt: exactly one member.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Decision", extend("minProperties" = 1, "maxProperties" = 1))]
pub struct DoubtDecision {
    /// run the job again
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool", extend("const" = true))]
    pub run_again: Option<bool>,
    /// complete it with this output
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// fail it with this error
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 4_096))]
    pub error: Option<String>,
}

/// How a new job begins and goes on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// how many recorded steps it begins with, from 1 to all of them
    #[schemars(range(min = 1))]
    pub steps: u64,
    /// the model or tier that it calls after them; defaults to that of the other job
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub model: Option<String>,
    /// the version of the agent that goes on, or a requirement; defaults to that of the other job
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub version: Option<String>,
    /// values that are set in the state of a graph
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<GraphValues>,
}

/// Values that are set in the state of a graph.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct GraphValues {
    /// the super-step whose nodes see them first
    #[schemars(range(min = 0))]
    pub before: u64,
    /// the values by their keys
    pub values: Map<String, Value>,
}

/// Result of a resolution.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Resolved")]
pub struct Resolution {
    /// the job
    pub id: String,
    /// its status
    #[schemars(extend("enum" = words::STATUSES))]
    pub status: String,
}

/// A message to a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Message")]
pub struct JobMessage {
    /// the message, any JSON of at most 64 KiB
    pub message: Value,
    /// the sender's name for it; a job gets a message of one id once
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 128))]
    pub id: Option<String>,
    /// the question that it answers, as the job's reason shows it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = r"^[0-9a-f]{32}$"))]
    pub answers: Option<String>,
    /// what it is about: a durable program can wait for the next message of a channel; no control characters
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub channel: Option<String>,
}

/// Result of a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Sent")]
pub struct SentMessage {
    /// the message
    pub id: String,
    /// the job had it before
    pub repeated: bool,
}

/// The receipt of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Receipt {
    /// the job
    pub job: String,
    /// the hash of the last entry, which stands for all of them
    pub head: String,
    /// the entries as they are hashed: JSON with `entry`, `previous`, `kind` (`job`, `submission`, `agent`, `policy`, `route`, `attempt`, `question`,
    /// `step`, `steps`, `end`) and what is known; and as the last member the SHA-256 of the entry without it, `hash`
    pub lines: Vec<String>,
}
