//! The attributes of metrics. Every value comes from a small closed set, so that requests cannot create series; names of agents and models
//! are bounded by the recorder.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the variant's name is the attribute's value")]
pub enum Outcome {
    /// Completed with a valid output.
    completed,
    /// The agent raised an error, or its output was refused.
    failed,
    /// The job was cancelled.
    cancelled,
    /// The last allowed lease of the job was lost.
    lease_lost,
    /// A time limit was exceeded.
    timeout,
    /// Refused before it ran: no such agent, invalid input, or no node that could run the job.
    refused,
}

/// The status of a job that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the variant's name is the attribute's value")]
pub enum Status {
    /// The job waits.
    pending,
    /// The job holds a lease.
    running,
}

/// Whether a node has a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the variant's name is the attribute's value")]
pub enum NodeHealth {
    /// The node has a session.
    ready,
    /// The session was lost.
    down,
}

/// The result of a worker's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the variant's name is the attribute's value")]
pub enum ReportResult {
    /// The report changed the state.
    applied,
    /// The report's lease was outdated, so it changed nothing.
    fenced,
}

/// The result of a request to the receiver of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the variant's name is the attribute's value")]
pub enum DeliveryResult {
    /// The receiver accepted the request.
    delivered,
    /// The request failed and is repeated.
    failed,
    /// The last allowed request failed, and the event is given up.
    dropped,
}

/// Attribute of job counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByOutcome {
    /// How the job ended.
    pub atlas_job_outcome: Outcome,
}

/// Attribute of job gauges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByStatus {
    /// The job's status.
    pub atlas_job_status: Status,
}

/// Attribute of gauges of waiting jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByReason {
    /// The word of a job's `reason`.
    pub atlas_job_reason: &'static str,
}

/// Attribute of gauges of open circuits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByCircuit {
    /// What has it: `agent` or `node`.
    pub atlas_circuit_kind: &'static str,
}

/// Attribute of node gauges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByHealth {
    /// Whether the node has a session.
    pub atlas_node_health: NodeHealth,
}

/// Attribute of report counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByReportResult {
    /// The result of the report.
    pub atlas_report_result: ReportResult,
}

/// Attribute of webhook counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByDeliveryResult {
    /// The result of the request.
    pub atlas_webhook_result: DeliveryResult,
}

/// Attribute of records of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByAuditDecision {
    /// `allow`, `deny` or `dropped`.
    pub atlas_audit_decision: &'static str,
}

/// Attributes of routing decisions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByDecision {
    /// `execute`, `reject` or `redirect`.
    pub atlas_route_action: &'static str,
    /// `orchestrator`, `deadline`, `fault` or `default`.
    pub atlas_route_decider: &'static str,
}

/// Attribute of HTTP timings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByStatusCode {
    /// The status of the answer.
    pub http_response_status_code: u16,
}

/// What tokens are counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the variant's name is the attribute's value")]
pub enum TokenKind {
    /// The whole request.
    input,
    /// The whole answer.
    output,
    /// From the provider's cache.
    cache_read,
    /// To the provider's cache.
    cache_write,
    /// Reasoning.
    reasoning,
}

/// Why the loop of an agent with a model was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the variant's name is the attribute's value")]
pub enum LoopEnd {
    /// The model repeated the same calls with the same results.
    repeat,
}

/// Attributes of model calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByLlmCall {
    /// The agent's name.
    pub agent: String,
    /// The model that answered.
    pub model: String,
}

/// Attributes of tool calls to MCP servers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByToolCall {
    /// The agent's name.
    pub agent: String,
    /// The name of the server.
    pub server: String,
    /// The tool.
    pub operation: String,
    /// `ok`, `error`, `unknown`, or the kind of the server's failure.
    pub outcome: String,
}

/// Attributes of the time of tool calls to MCP servers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByTool {
    /// The agent's name.
    pub agent: String,
    /// The name of the server.
    pub server: String,
    /// The tool.
    pub operation: String,
}

/// Attributes of the MCP servers of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByServer {
    /// The agent's name.
    pub agent: String,
    /// The name of the server.
    pub server: String,
}

/// Attributes of tokens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByLlmTokens {
    /// The agent's name.
    pub agent: String,
    /// The model that answered.
    pub model: String,
    /// What they are counted as.
    pub kind: TokenKind,
}

/// How a message to an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the variant's name is the attribute's value")]
pub enum MessageOutcome {
    /// With an answer.
    ok,
    /// Without one.
    error,
}

/// Attribute of what is counted for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByAgent {
    /// The agent's name.
    pub agent: String,
}

/// Attributes of messages to agents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByMessageOutcome {
    /// The agent's name.
    pub agent: String,
    /// How it ended.
    pub outcome: MessageOutcome,
}

/// Attributes of the servers of agents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByAgentPort {
    /// The agent's name.
    pub agent: String,
    /// The port on which it is served.
    pub port: u16,
}

/// Attribute of the state of providers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByProvider {
    /// The provider's name, as specs of models write it.
    pub provider: String,
}

/// Attributes of stopped loops.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByLoopEnd {
    /// The agent's name.
    pub agent: String,
    /// Why it was stopped.
    pub reason: LoopEnd,
}

/// A kind of telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the variant's name is the attribute's value")]
pub enum Signal {
    traces,
    metrics,
    logs,
}

/// By the kind of telemetry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct BySignal {
    /// The kind.
    pub signal: Signal,
}
