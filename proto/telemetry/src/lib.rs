//! The metrics of all programs, declared in one place, and the set-up of their logs.
//!
//! [`Metrics`] owns all instruments and their text format. Programs record facts in them and make no decisions from
//! them. Identities (job, node) belong in log lines and events, never in metrics, whose attributes come from
//! small closed sets. Model calls are counted by agent and model; their recorder bounds the number of series.

mod attributes;
mod instrument;
mod log;
mod metrics;
mod pallas;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod rules;

pub use attributes::{
    ByAgent, ByAgentPort, ByAuditDecision, ByCircuit, ByDecision, ByDeliveryResult, ByHealth, ByLlmCall, ByLlmTokens,
    ByLoopEnd, ByMessageOutcome, ByOutcome, ByProvider, ByReason, ByReportResult, ByServer, BySignal, ByStatus,
    ByStatusCode, ByTool, ByToolCall, DeliveryResult, LoopEnd, MessageOutcome, NodeHealth, Outcome, ReportResult,
    Signal, Status, TokenKind,
};
pub use instrument::{Declaration, Kind};
pub use log::{LogError, Sink, start as start_log, start_with as start_log_with};
pub use metrics::{CONTENT_TYPE, Metrics, table};
pub use pallas::with_pallas_names;
