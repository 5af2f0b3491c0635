//! Reports and stream events.

use atlas_types::{
    Delta, Failure, FailureKind, FencingToken, JobId, Payload, Report, ReportKind, ReportResult, StreamEvent,
    StreamKind, Usage,
};
use bytes::Bytes;
use prost::Message;

use super::time::{duration_in, duration_out, timestamp_in, timestamp_out};
use super::{ConvertError, bounded, metadata, required, word};
use crate::limits::{STREAM_EVENTS_MAX, TEXT_BYTES_MAX};
use crate::proto::worker::v1 as pb;

/// The frame of a report and the number it is acknowledged by.
pub(super) fn report_out(number: u64, report: Report) -> pb::Report {
    let kind = match report.kind {
        ReportKind::Started => pb::report::Kind::Started(pb::Started {}),
        ReportKind::Completed { output, usage, metadata } => pb::report::Kind::Completed(pb::Completed {
            output: Some(output.into()),
            usage: Some(usage.into()),
            metadata: metadata.map(Bytes::from_owner),
        }),
        ReportKind::Failed { failure, output, usage, metadata, cancelled } => pb::report::Kind::Failed(pb::Failed {
            kind: failure_kind_out(failure.kind).into(),
            error: failure.error.to_string(),
            output: output.map(Into::into),
            usage: Some(usage.into()),
            metadata: metadata.map(Bytes::from_owner),
            cancelled,
        }),
        ReportKind::NotHeld => pb::report::Kind::NotHeld(pb::NotHeld {}),
    };
    pb::Report { number, job_id: report.job.0, fencing_token: report.token.0, kind: Some(kind) }
}

/// A report and its number.
pub(super) fn report_in(report: pb::Report) -> Result<(u64, Report), ConvertError> {
    let kind = match required("report.kind", report.kind)? {
        pb::report::Kind::Started(pb::Started {}) => ReportKind::Started,
        pb::report::Kind::Completed(completed) => ReportKind::Completed {
            output: required("completed.output", completed.output)?.try_into()?,
            usage: required("completed.usage", completed.usage)?.try_into()?,
            metadata: completed.metadata.map(|bytes| metadata("completed.metadata", &bytes)).transpose()?,
        },
        pb::report::Kind::Failed(failed) => {
            bounded("failed.error", failed.error.len(), TEXT_BYTES_MAX)?;
            ReportKind::Failed {
                failure: Failure { kind: failure_kind_in(failed.kind)?, error: failed.error.into() },
                output: failed.output.map(Payload::try_from).transpose()?,
                usage: required("failed.usage", failed.usage)?.try_into()?,
                metadata: failed.metadata.map(|bytes| metadata("failed.metadata", &bytes)).transpose()?,
                cancelled: failed.cancelled,
            }
        }
        pb::report::Kind::NotHeld(pb::NotHeld {}) => ReportKind::NotHeld,
    };
    Ok((report.number, Report { job: JobId(report.job_id), token: FencingToken(report.fencing_token), kind }))
}

/// A report and its number as bytes, for a worker that keeps it on disk.
pub fn report_to_bytes(number: u64, report: Report) -> Vec<u8> {
    report_out(number, report).encode_to_vec()
}

/// What [`report_to_bytes`] wrote.
pub fn report_from_bytes(bytes: &[u8]) -> Result<(u64, Report), ConvertError> {
    report_in(pb::Report::decode(bytes).map_err(|_| ConvertError::Form { field: "report" })?)
}

impl From<Usage> for pb::Usage {
    fn from(usage: Usage) -> Self {
        Self {
            warmup: Some(duration_out(usage.warmup)),
            execution: Some(duration_out(usage.execution)),
            warm: usage.warm,
            idle: usage.idle,
        }
    }
}

impl TryFrom<pb::Usage> for Usage {
    type Error = ConvertError;

    fn try_from(usage: pb::Usage) -> Result<Self, ConvertError> {
        Ok(Self {
            warmup: duration_in("usage.warmup", usage.warmup)?,
            execution: duration_in("usage.execution", usage.execution)?,
            warm: usage.warm,
            idle: usage.idle,
        })
    }
}

fn failure_kind_out(kind: FailureKind) -> pb::FailureKind {
    match kind {
        FailureKind::Agent => pb::FailureKind::Agent,
        FailureKind::NoAgent => pb::FailureKind::NoAgent,
        FailureKind::InputInvalid => pb::FailureKind::InputInvalid,
        FailureKind::OutputInvalid => pb::FailureKind::OutputInvalid,
        FailureKind::Startup => pb::FailureKind::Startup,
        FailureKind::Timeout => pb::FailureKind::Timeout,
        FailureKind::QueueTimeout => pb::FailureKind::QueueTimeout,
        FailureKind::Unsatisfiable => pb::FailureKind::Unsatisfiable,
        FailureKind::Rejected => pb::FailureKind::Rejected,
        FailureKind::Dependency => pb::FailureKind::Dependency,
        FailureKind::LeaseLost => pb::FailureKind::LeaseLost,
        FailureKind::Internal => pb::FailureKind::Internal,
    }
}

fn failure_kind_in(found: i32) -> Result<FailureKind, ConvertError> {
    let kind = match pb::FailureKind::try_from(found).unwrap_or_default() {
        pb::FailureKind::Unspecified => {
            return Err(ConvertError::Value { field: "failed.kind", found: found.into() });
        }
        pb::FailureKind::Agent => FailureKind::Agent,
        pb::FailureKind::NoAgent => FailureKind::NoAgent,
        pb::FailureKind::InputInvalid => FailureKind::InputInvalid,
        pb::FailureKind::OutputInvalid => FailureKind::OutputInvalid,
        pb::FailureKind::Startup => FailureKind::Startup,
        pb::FailureKind::Timeout => FailureKind::Timeout,
        pb::FailureKind::QueueTimeout => FailureKind::QueueTimeout,
        pb::FailureKind::Unsatisfiable => FailureKind::Unsatisfiable,
        pb::FailureKind::Rejected => FailureKind::Rejected,
        pb::FailureKind::Dependency => FailureKind::Dependency,
        pb::FailureKind::LeaseLost => FailureKind::LeaseLost,
        pb::FailureKind::Internal => FailureKind::Internal,
    };
    Ok(kind)
}

pub(super) fn result_out(result: ReportResult) -> pb::ReportResult {
    match result {
        ReportResult::Applied => pb::ReportResult::Applied,
        ReportResult::Fenced => pb::ReportResult::Fenced,
    }
}

pub(super) fn result_in(found: i32) -> Result<ReportResult, ConvertError> {
    match pb::ReportResult::try_from(found).unwrap_or_default() {
        pb::ReportResult::Unspecified => Err(ConvertError::Value { field: "report_ack.result", found: found.into() }),
        pb::ReportResult::Applied => Ok(ReportResult::Applied),
        pb::ReportResult::Fenced => Ok(ReportResult::Fenced),
    }
}

impl From<StreamEvent> for pb::StreamEvent {
    fn from(event: StreamEvent) -> Self {
        let kind = match event.kind {
            StreamKind::Log => pb::StreamEventKind::Log,
            StreamKind::Progress => pb::StreamEventKind::Progress,
        };
        Self {
            number: event.number,
            at: Some(timestamp_out(event.at)),
            kind: kind.into(),
            level: event.level,
            text: event.text,
        }
    }
}

impl TryFrom<pb::StreamEvent> for StreamEvent {
    type Error = ConvertError;

    fn try_from(event: pb::StreamEvent) -> Result<Self, ConvertError> {
        let kind = match pb::StreamEventKind::try_from(event.kind).unwrap_or_default() {
            pb::StreamEventKind::Unspecified => {
                return Err(ConvertError::Value { field: "stream_event.kind", found: event.kind.into() });
            }
            pb::StreamEventKind::Log => StreamKind::Log,
            pb::StreamEventKind::Progress => StreamKind::Progress,
        };
        bounded("stream_event.text", event.text.len(), TEXT_BYTES_MAX)?;
        Ok(Self {
            number: event.number,
            at: timestamp_in("stream_event.at", event.at)?,
            kind,
            level: word("stream_event.level", event.level)?,
            text: event.text,
        })
    }
}

impl From<Delta> for pb::Delta {
    fn from(delta: Delta) -> Self {
        Self { step: delta.step, try_number: delta.try_number, offset: delta.offset, text: delta.text }
    }
}

impl TryFrom<pb::Delta> for Delta {
    type Error = ConvertError;

    fn try_from(delta: pb::Delta) -> Result<Self, ConvertError> {
        bounded("delta.text", delta.text.len(), TEXT_BYTES_MAX)?;
        Ok(Self { step: delta.step, try_number: delta.try_number, offset: delta.offset, text: delta.text })
    }
}

/// The pieces in a frame.
pub fn deltas_in(deltas: Vec<pb::Delta>) -> Result<Vec<Delta>, ConvertError> {
    bounded("deltas.deltas", deltas.len(), STREAM_EVENTS_MAX)?;
    deltas.into_iter().map(Delta::try_from).collect()
}
