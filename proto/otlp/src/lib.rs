//! Traces, metrics and logs for receivers of OTLP, by gRPC or HTTP.
//!
//! Telemetry never delays work: whatever records something puts it into a bounded queue and goes on, and what does not fit is dropped
//! and counted. The spans of a job are made once, from its record, when it ends; so they tell the same as the record, and cost
//! nothing while it runs. The ids of spans follow from the ids of jobs.
//!
//! * [`Config`] reads the variables that OpenTelemetry defines;
//! * [`spans`](job_spans) and `logs` make what the exporters of `opentelemetry-otlp` take, `metrics` a message, without I/O;
//! * `send` makes the exporters, [`Otlp`] has the queues and the tasks that empty them.
//!
//! Contents of jobs (inputs, outputs, messages to and from models) are never sent.

mod config;
mod logs;
mod metrics;
mod pipeline;
mod send;
mod spans;
#[cfg(test)]
mod tests;
mod value;

pub use config::{Config, ConfigError};
pub use logs::Logs;
pub use pipeline::{Otlp, Running};
pub use spans::{execution, job_spans, run_spans};
