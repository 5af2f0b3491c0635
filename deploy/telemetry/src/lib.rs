//! The metrics of all programs, declared in one place, and the set-up of their logs.
//!
//! [`Metrics`] owns all instruments and their text format. Programs record facts in them and make no decisions from
//! them. Identities (job, node) belong in log lines and events, never in metrics, whose attributes come from
//! small closed sets. Calls of models are counted by agent and model; their recorder bounds the number of series.

mod attributes;
mod instrument;
mod log;
mod metrics;
#[cfg(test)]
mod reference;

pub use attributes::{
    ByDecision, ByDeliveryResult, ByHealth, ByLlmCall, ByLlmTokens, ByLoopEnd, ByOutcome, ByReportResult, ByStatus,
    ByStatusCode, DeliveryResult, LoopEnd, NodeHealth, Outcome, ReportResult, Status, TokenKind,
};
pub use instrument::{Declaration, Kind};
pub use log::{LogError, start as start_log};
pub use metrics::{CONTENT_TYPE, Metrics, table};
