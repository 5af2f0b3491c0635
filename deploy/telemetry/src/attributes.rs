//! The attributes that metrics carry. Every value comes from a small closed set, so that no request can add a series.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the variant's name is the attribute's value")]
pub enum Outcome {
    /// With a valid output.
    completed,
    /// The agent raised an error, or its output was refused.
    failed,
    /// By a cancel.
    cancelled,
    /// Its last allowed lease was lost.
    lease_lost,
    /// A time limit passed.
    timeout,
    /// Before it ran: no such agent, invalid input, no node that could run it.
    refused,
}

/// Where a job that has not ended is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the variant's name is the attribute's value")]
pub enum Status {
    /// Waits.
    pending,
    /// Holds a lease.
    running,
}

/// Whether a node's session lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the variant's name is the attribute's value")]
pub enum NodeHealth {
    /// It does.
    ready,
    /// It was lost.
    down,
}

/// The result of a worker's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the variant's name is the attribute's value")]
pub enum ReportResult {
    /// It changed the state.
    applied,
    /// Its lease was outdated: it changed nothing.
    fenced,
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
    /// Where the job is.
    pub atlas_job_status: Status,
}

/// Attribute of node gauges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByHealth {
    /// Whether the node's session lives.
    pub atlas_node_health: NodeHealth,
}

/// Attribute of report counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByReportResult {
    /// The result of the report.
    pub atlas_report_result: ReportResult,
}

/// Attribute of HTTP timings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByStatusCode {
    /// The status that was answered.
    pub http_response_status_code: u16,
}
