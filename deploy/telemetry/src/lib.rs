//! The metrics of every program, declared in one place, and its log lines.
//!
//! [`Metrics`] owns all instruments and their text form. Programs record facts in them, never decisions; identities (job, node,
//! agent) belong on log lines and events and never on a metric, whose attributes come from small closed sets.

mod attributes;
mod instrument;
mod log;
mod metrics;
#[cfg(test)]
mod reference;

pub use attributes::{
    ByHealth, ByOutcome, ByReportResult, ByStatus, ByStatusCode, NodeHealth, Outcome, ReportResult, Status,
};
pub use instrument::{Declaration, Kind};
pub use log::{LogError, start as start_log};
pub use metrics::{CONTENT_TYPE, Metrics, table};
