//! The encoding of events in history: concatenated in a blob. Jobs have the same format as in the log and in snapshots.

use std::sync::Arc;

use atlas_format::{decode_event as decode_body, decode_job, encode_event as encode_body, encode_job};
use atlas_types::{Event, EventRecord, EventSeq, Job, JobChange, JobId, JobStatus, Timestamp};

use crate::{HistoryError, StoredEvent};

/// Event number, time, change, previous status, body length, all little-endian. The body is the job, or the encoded
/// event if it does not concern a job.
const HEAD: usize = 8 + 8 + 1 + 1 + 4;

/// Marks an event that does not concern a job.
const NOT_A_JOB: u8 = 0;

/// The changes by their byte, starting at 1. New ones may only be appended.
const CHANGES: [JobChange; 11] = [
    JobChange::Submitted,
    JobChange::Granted,
    JobChange::Started,
    JobChange::Lost,
    JobChange::Woken,
    JobChange::Cancelling,
    JobChange::Ended,
    JobChange::Resolved,
    JobChange::Parked,
    JobChange::Carried,
    JobChange::Routed,
];

/// Appends an event. A job that the event ended is stored in its own row. All other events contain their job, so that a
/// stream read from the history equals the stream sent when the events happened.
pub(crate) fn encode_event(event: &EventRecord, blob: &mut Vec<u8>) -> Result<(), HistoryError> {
    let (change, old_status, body) = match &event.event {
        Event::Job { change, old_status, job } => {
            let position = CHANGES.iter().position(|known| known == change).unwrap_or(CHANGES.len());
            let status = JobStatus::ALL.iter().position(|known| known == old_status).unwrap_or(0);
            let bytes = if job.status.is_terminal() { Vec::new() } else { encode_job(job) };
            (u8::try_from(position + 1).unwrap_or(u8::MAX), u8::try_from(status).unwrap_or(u8::MAX), bytes)
        }
        other => (NOT_A_JOB, 0, encode_body(other).unwrap_or_default()),
    };
    let len = u32::try_from(body.len()).map_err(|_| HistoryError::Field("an event is too large"))?;
    blob.reserve(HEAD + body.len());
    blob.extend_from_slice(&event.seq.0.to_le_bytes());
    blob.extend_from_slice(&event.at.0.to_le_bytes());
    blob.extend_from_slice(&[change, old_status]);
    blob.extend_from_slice(&len.to_le_bytes());
    blob.extend_from_slice(&body);
    Ok(())
}

/// Reads the next event of a blob. `ended` looks up the job that an event ended.
pub(crate) fn decode_event(
    blob: &mut &[u8],
    ended: &mut dyn FnMut(EventSeq) -> Result<Option<Job>, HistoryError>,
) -> Result<StoredEvent, HistoryError> {
    let seq = EventSeq(u64::from_le_bytes(take(blob)?));
    let at = Timestamp(i64::from_le_bytes(take(blob)?));
    let [change, old_status] = take(blob)?;
    let len = u32::from_le_bytes(take(blob)?) as usize;
    let (bytes, rest) = blob.split_at_checked(len).ok_or(HistoryError::Field("events are cut short"))?;
    *blob = rest;
    if change == NOT_A_JOB {
        // `None` if an old program kept only the number, or if a newer controller of the cluster sent an event that
        // this program does not know.
        return Ok(StoredEvent { seq, at, event: decode_body(bytes).ok() });
    }
    let change = CHANGES.get(usize::from(change) - 1).copied().ok_or(HistoryError::Field("an unknown change"))?;
    let old_status =
        JobStatus::ALL.get(usize::from(old_status)).copied().ok_or(HistoryError::Field("an unknown status"))?;
    let job = match (bytes, change) {
        // Before submissions were stored with their job, the file had only their number.
        ([], JobChange::Submitted) => None,
        ([], _) => ended(seq)?,
        (bytes, _) => Some(decode_job(bytes).map_err(HistoryError::Record)?),
    };
    let event = job.map(|job| Event::Job { change, old_status, job: Arc::new(job) });
    Ok(StoredEvent { seq, at, event })
}

/// An event in its encoded form.
pub(crate) struct Raw<'b> {
    pub(crate) seq: EventSeq,
    pub(crate) bytes: &'b [u8],
    /// True if the event ended a job, which is then stored in its own row.
    pub(crate) ended: bool,
}

/// Splits the next event off a blob.
pub(crate) fn split_event<'b>(blob: &mut &'b [u8]) -> Result<Raw<'b>, HistoryError> {
    let all = *blob;
    let seq = EventSeq(u64::from_le_bytes(take(blob)?));
    let _: [u8; 8] = take(blob)?;
    let [change, _] = take(blob)?;
    let len = u32::from_le_bytes(take(blob)?) as usize;
    *blob = blob.get(len..).ok_or(HistoryError::Field("events are cut short"))?;
    let ended = change != NOT_A_JOB && CHANGES.get(usize::from(change) - 1) == Some(&JobChange::Ended);
    Ok(Raw { seq, bytes: &all[..HEAD + len], ended: ended && len == 0 })
}

/// An encoded event without its job: only its number and time are left.
pub(crate) fn without_job(event: &[u8]) -> Vec<u8> {
    let mut bare = event.get(..HEAD).unwrap_or(event).to_vec();
    if let Some(rest) = bare.get_mut(16..) {
        rest.fill(0);
    }
    bare
}

/// Whether an encoded event is that of a job.
pub(crate) fn concerns_job(event: &[u8]) -> bool {
    event.get(16).is_some_and(|change| *change != NOT_A_JOB)
}

fn take<const N: usize>(blob: &mut &[u8]) -> Result<[u8; N], HistoryError> {
    let (bytes, rest) = blob.split_first_chunk::<N>().ok_or(HistoryError::Field("events are cut short"))?;
    *blob = rest;
    Ok(*bytes)
}

/// A job id as a signed column that sorts like the unsigned number.
pub(crate) fn id_column(id: JobId) -> i64 {
    (id.0 ^ (1 << 63)) as i64
}

/// The job id of a column.
pub(crate) fn id_of(column: i64) -> JobId {
    JobId(column as u64 ^ (1 << 63))
}
