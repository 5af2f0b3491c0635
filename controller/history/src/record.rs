//! Jobs and events as history writes them: JSON for what is small, payload bytes behind it as they are.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use atlas_types::{
    AgentPin, Attempt, ClusterTime, Digest, Door, Event, EventRecord, EventSeq, Failure, FailureKind, Job, JobChange,
    JobId, JobStatus, Micros, Payload, PayloadBody, Reason, Seq, Timestamp, TraceContext, Version,
};
use serde::{Deserialize, Serialize};

use crate::{HistoryError, JobEvent, StoredEvent};

/// Everything of a job besides its bytes. Fields may be added: an old record then reads as their default.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    ns: Cow<'a, str>,
    id: u64,
    agent: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pin: Option<(u64, u64, u64, String)>,
    status: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<(Cow<'a, str>, u64)>,
    priority: i64,
    queue: u64,
    seq: u64,
    input: Part,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stream: Option<Part>,
    /// Bytes of the metadata, the last part.
    metadata: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<(Cow<'a, str>, Cow<'a, str>)>,
    /// Created, started, completed.
    times: (i64, i64, i64),
    queued: u64,
    /// Warm-up, execution.
    took: (u64, u64),
    warm: bool,
    attempt: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    retry: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    successor: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: Cow<'a, BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    principal: Cow<'a, str>,
    door: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<(u64, u64, u64, u8)>,
}

/// Where the bytes of a payload are: behind the record, or in the artifact store.
#[derive(Serialize, Deserialize)]
struct Part {
    #[serde(default, skip_serializing_if = "is_zero")]
    key: u32,
    bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Appends a job's record to `record` and its bytes to `bytes`.
pub(crate) fn encode_job(job: &Job, record: &mut Vec<u8>, bytes: &mut Vec<u8>) -> Result<(), HistoryError> {
    let row = Record {
        ns: job.namespace.as_str().into(),
        id: job.id.0,
        agent: job.agent.as_str().into(),
        pin: job.pin.as_ref().map(|pin| (pin.version.major, pin.version.minor, pin.version.patch, pin.digest.hex())),
        status: job.status.as_str().into(),
        reason: (!job.status.is_terminal()).then(|| encode_reason(job.reason)),
        priority: job.priority,
        queue: job.queue_seq,
        seq: job.submitted_seq.0,
        input: encode_payload(&job.input, bytes),
        output: job.output.as_ref().map(|payload| encode_payload(payload, bytes)),
        stream: job.stream.as_ref().map(|payload| encode_payload(payload, bytes)),
        metadata: job.metadata.len(),
        failure: job.failure.as_ref().map(|failure| (word(&FAILURES, failure.kind).into(), (&*failure.error).into())),
        times: (job.created_at.0, job.started_at.0, job.completed_at.0),
        queued: job.queued_at.0,
        took: (job.warmup.0, job.execution.0),
        warm: job.warm,
        attempt: job.attempt.0,
        retry: job.retry_count,
        original: job.original.map(|id| id.0),
        successor: job.successor.map(|id| id.0),
        labels: Cow::Borrowed(&job.labels),
        timeout: job.execution_timeout.map(|timeout| timeout.0),
        principal: job.principal.as_str().into(),
        door: word(&DOORS, job.door).into(),
        request: job.request_id.as_ref().map(|id| id.as_str().into()),
        trace: job
            .trace
            .map(|trace| ((trace.trace_id >> 64) as u64, trace.trace_id as u64, trace.span_id, trace.flags)),
    };
    bytes.extend_from_slice(&job.metadata);
    serde_json::to_writer(record, &row).map_err(HistoryError::Record)
}

/// Reads a job back. Its lease and its rules for running are not kept.
pub(crate) fn decode_job(record: &[u8], mut bytes: &[u8]) -> Result<Job, HistoryError> {
    let row: Record<'_> = serde_json::from_slice(record).map_err(HistoryError::Record)?;
    let field = |name| move || HistoryError::Field(name);
    let pin = row.pin.map(|(major, minor, patch, digest)| {
        let digest = Digest::from_str(&digest).map_err(|_| HistoryError::Field("pin"))?;
        Ok(AgentPin { version: Version { major, minor, patch }, digest })
    });
    let failure = row.failure.map(|(kind, error)| {
        let kind = find(&FAILURES, &kind).ok_or_else(field("failure"))?;
        Ok(Failure { kind, error: (&*error).into() })
    });
    let input = decode_payload(&row.input, &mut bytes)?;
    let output = row.output.map(|part| decode_payload(&part, &mut bytes)).transpose()?;
    let stream = row.stream.map(|part| decode_payload(&part, &mut bytes)).transpose()?;
    let metadata = bytes.get(..row.metadata).ok_or_else(field("metadata"))?;
    Ok(Job {
        namespace: row.ns.parse().map_err(|_| HistoryError::Field("ns"))?,
        id: JobId(row.id),
        agent: row.agent.parse().map_err(|_| HistoryError::Field("agent"))?,
        pin: pin.transpose()?,
        spec: None,
        status: row.status.parse().map_err(|_| HistoryError::Field("status"))?,
        reason: match row.reason {
            Some((word, until)) => decode_reason(&word, until).ok_or_else(field("reason"))?,
            None => Reason::Running,
        },
        priority: row.priority,
        queue_seq: row.queue,
        submitted_seq: Seq(row.seq),
        input,
        output,
        stream,
        failure: failure.transpose()?,
        created_at: Timestamp(row.times.0),
        started_at: Timestamp(row.times.1),
        completed_at: Timestamp(row.times.2),
        queued_at: ClusterTime(row.queued),
        warmup: Micros(row.took.0),
        execution: Micros(row.took.1),
        warm: row.warm,
        attempt: Attempt(row.attempt),
        lease: None,
        retry_count: row.retry,
        original: row.original.map(JobId),
        successor: row.successor.map(JobId),
        metadata: metadata.into(),
        labels: Arc::new(row.labels.into_owned()),
        execution_timeout: row.timeout.map(Micros),
        principal: row.principal.parse().map_err(|_| HistoryError::Field("principal"))?,
        door: find(&DOORS, &row.door).ok_or_else(field("door"))?,
        request_id: row.request.map(|id| id.parse()).transpose().map_err(|_| HistoryError::Field("request"))?,
        trace: row.trace.map(|(high, low, span_id, flags)| TraceContext {
            trace_id: (u128::from(high) << 64) | u128::from(low),
            span_id,
            flags,
        }),
    })
}

fn encode_payload(payload: &Payload, bytes: &mut Vec<u8>) -> Part {
    match &payload.body {
        PayloadBody::Inline(inline) => {
            bytes.extend_from_slice(inline);
            Part { key: payload.key_id, bytes: inline.len() as u64, digest: None }
        }
        PayloadBody::Artifact { digest, size_bytes } => {
            Part { key: payload.key_id, bytes: *size_bytes, digest: Some(digest.hex()) }
        }
    }
}

fn decode_payload(part: &Part, bytes: &mut &[u8]) -> Result<Payload, HistoryError> {
    let body = match &part.digest {
        Some(digest) => {
            let digest = Digest::from_str(digest).map_err(|_| HistoryError::Field("digest"))?;
            PayloadBody::Artifact { digest, size_bytes: part.bytes }
        }
        None => {
            let len = usize::try_from(part.bytes).unwrap_or(usize::MAX);
            let (inline, rest) = bytes.split_at_checked(len).ok_or(HistoryError::Field("payload"))?;
            *bytes = rest;
            PayloadBody::Inline(inline.into())
        }
    };
    Ok(Payload { key_id: part.key, body })
}

/// An event in a blob, in front of the job's record and bytes. An event that ended a job has neither: they are in its row.
#[derive(Serialize, Deserialize)]
struct Header<'a> {
    seq: u64,
    at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<(Cow<'a, str>, Cow<'a, str>)>,
}

/// Appends an event to a blob: three parts, each behind its length in four bytes.
pub(crate) fn encode_event(event: &EventRecord, blob: &mut Vec<u8>) -> Result<(), HistoryError> {
    let (mut header, mut record, mut bytes) = (Vec::with_capacity(64), Vec::new(), Vec::new());
    let change = match &event.event {
        Event::Job { change, old_status, job } => {
            // What a submission says is in the next event of the job, and it is not a change of status that streams show.
            if !job.status.is_terminal() && *change != JobChange::Submitted {
                encode_job(job, &mut record, &mut bytes)?;
            }
            Some((word(&CHANGES, *change).into(), old_status.as_str().into()))
        }
        _ => None,
    };
    let head = Header { seq: event.seq.0, at: event.at.0, change };
    serde_json::to_writer(&mut header, &head).map_err(HistoryError::Record)?;
    for part in [&header, &record, &bytes] {
        let len = u32::try_from(part.len()).map_err(|_| HistoryError::Field("length"))?;
        blob.extend_from_slice(&len.to_le_bytes());
        blob.extend_from_slice(part);
    }
    Ok(())
}

/// Reads the next event of a blob. `ended` looks up the job that an event ended; a submission has no job to show.
pub(crate) fn decode_event(
    blob: &mut &[u8],
    ended: &mut dyn FnMut(EventSeq) -> Result<Option<Job>, HistoryError>,
) -> Result<StoredEvent, HistoryError> {
    let header: Header<'_> = serde_json::from_slice(part(blob)?).map_err(HistoryError::Record)?;
    let (record, bytes) = (part(blob)?, part(blob)?);
    let seq = EventSeq(header.seq);
    let job = match header.change {
        None => None,
        Some((change, old_status)) => {
            let change = find(&CHANGES, &change).ok_or(HistoryError::Field("change"))?;
            let old_status = old_status.parse().map_err(|_| HistoryError::Field("old status"))?;
            let job = match (record.is_empty(), change) {
                (true, JobChange::Submitted) => None,
                (true, _) => ended(seq)?,
                (false, _) => Some(decode_job(record, bytes)?),
            };
            job.map(|job| JobEvent { change, old_status, job: Arc::new(job) })
        }
    };
    Ok(StoredEvent { seq, at: Timestamp(header.at), job })
}

fn part<'a>(blob: &mut &'a [u8]) -> Result<&'a [u8], HistoryError> {
    let cut = || HistoryError::Field("events are cut short");
    let (len, rest) = blob.split_first_chunk::<4>().ok_or_else(cut)?;
    let len = u32::from_le_bytes(*len) as usize;
    let (part, rest) = rest.split_at_checked(len).ok_or_else(cut)?;
    *blob = rest;
    Ok(part)
}

const CHANGES: [(JobChange, &str); 7] = [
    (JobChange::Submitted, "submitted"),
    (JobChange::Granted, "granted"),
    (JobChange::Started, "started"),
    (JobChange::Lost, "lost"),
    (JobChange::Woken, "woken"),
    (JobChange::Cancelling, "cancelling"),
    (JobChange::Ended, "ended"),
];

const FAILURES: [(FailureKind, &str); 12] = [
    (FailureKind::Agent, "agent"),
    (FailureKind::NoAgent, "no_agent"),
    (FailureKind::InputInvalid, "input_invalid"),
    (FailureKind::OutputInvalid, "output_invalid"),
    (FailureKind::Startup, "startup"),
    (FailureKind::Timeout, "timeout"),
    (FailureKind::QueueTimeout, "queue_timeout"),
    (FailureKind::Unsatisfiable, "unsatisfiable"),
    (FailureKind::Rejected, "rejected"),
    (FailureKind::Dependency, "dependency"),
    (FailureKind::LeaseLost, "lease_lost"),
    (FailureKind::Internal, "internal"),
];

const DOORS: [(Door, &str); 6] = [
    (Door::Http, "http"),
    (Door::Worker, "worker"),
    (Door::Duty, "duty"),
    (Door::Peer, "peer"),
    (Door::Mcp, "mcp"),
    (Door::Local, "local"),
];

fn word<T: Copy + PartialEq>(table: &[(T, &'static str)], value: T) -> &'static str {
    table.iter().find(|(known, _)| *known == value).map_or("", |(_, word)| word)
}

fn find<T: Copy>(table: &[(T, &'static str)], word: &str) -> Option<T> {
    table.iter().find(|(_, known)| *known == word).map(|(value, _)| *value)
}

fn encode_reason(reason: Reason) -> (Cow<'static, str>, u64) {
    match reason {
        Reason::Queued => ("queued".into(), 0),
        Reason::Backoff { until } => ("backoff".into(), until.0),
        Reason::Lost => ("lost".into(), 0),
        Reason::InDoubt => ("in_doubt".into(), 0),
        Reason::Running => ("running".into(), 0),
        Reason::Cancelling => ("cancelling".into(), 0),
    }
}

fn decode_reason(word: &str, until: u64) -> Option<Reason> {
    Some(match word {
        "queued" => Reason::Queued,
        "backoff" => Reason::Backoff { until: ClusterTime(until) },
        "lost" => Reason::Lost,
        "in_doubt" => Reason::InDoubt,
        "running" => Reason::Running,
        "cancelling" => Reason::Cancelling,
        _ => return None,
    })
}

/// The status that a row is filtered by.
pub(crate) fn status_word(status: JobStatus) -> &'static str {
    status.as_str()
}

/// A job id as a signed column that sorts like the unsigned number.
pub(crate) fn id_column(id: JobId) -> i64 {
    (id.0 ^ (1 << 63)) as i64
}

/// The job id of a column.
pub(crate) fn id_of(column: i64) -> JobId {
    JobId(column as u64 ^ (1 << 63))
}
