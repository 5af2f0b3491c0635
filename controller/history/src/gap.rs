//! The events that a history is missing, and the parts of another history that fill them.

use atlas_types::{EventSeq, Job};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::reader::blob_of;
use crate::record::{concerns_job, split_event, without_job};
use crate::rows::column;
use crate::{HistoryError, StoredEvent, sum};

/// A range of events that this history did not receive: those after `after`, up to `through`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last event before the gap.
    pub after: EventSeq,
    /// The last event of the gap.
    pub through: EventSeq,
}

/// The records that one history has for the gap of another: all events from the beginning of the gap up to `reached`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The last event of the part. Equals the gap's `after` if there are no records.
    pub reached: EventSeq,
    /// Up to this event, the sending history has only the ended jobs, because it dropped the events.
    pub floor: EventSeq,
    /// The last event that the sending history knows.
    pub known: EventSeq,
    /// In order. Above `floor` one record per event, below it one record per ended job.
    pub records: Vec<Record>,
}

/// One event, and the job that it ended, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub seq: EventSeq,
    /// The event in the encoding of the history; empty if the event was dropped.
    pub event: Vec<u8>,
    /// The ended job as a message of `atlas.state.v1`; empty if the event ended no job.
    pub job: Vec<u8>,
}

impl Record {
    fn len(&self) -> usize {
        self.event.len() + self.job.len() + 16
    }

    /// The job that the event ended; none if it ended none.
    pub fn ended(&self) -> Result<Option<Job>, HistoryError> {
        let body = Some(&self.job).filter(|job| !job.is_empty());
        body.map(|body| atlas_format::decode_job(&body[..]).map_err(HistoryError::Record)).transpose()
    }

    /// The event if it does not concern a job. None for the event of a job, which is not decoded, and for an event that was dropped.
    pub fn beside_jobs(&self) -> Result<Option<StoredEvent>, HistoryError> {
        if self.event.is_empty() || concerns_job(&self.event) {
            return Ok(None);
        }
        crate::record::decode_event(&mut &self.event[..], &mut |_| Ok(None)).map(Some)
    }
}

impl Part {
    /// The events of a part that begins after `after`. [`HistoryError::Gone`] if the first of them were dropped.
    pub fn events(&self, after: EventSeq) -> Result<Vec<StoredEvent>, HistoryError> {
        if after < self.floor {
            return Err(HistoryError::Gone { earliest: EventSeq(self.floor.0.saturating_add(1)) });
        }
        let dense = (after.0..).skip(1).zip(&self.records).all(|(seq, record)| record.seq.0 == seq);
        if !dense {
            return Err(HistoryError::Part("it has gaps"));
        }
        let records = self.records.iter().filter(|record| !record.event.is_empty());
        let decode = |record: &Record| {
            let mut ended = |_| record.ended();
            crate::record::decode_event(&mut &record.event[..], &mut ended)
        };
        records.map(decode).collect()
    }
}

/// All gaps, in order.
pub(crate) fn load(connection: &Connection) -> Result<Vec<Gap>, HistoryError> {
    let sql = HistoryError::sql("read");
    let read = || -> rusqlite::Result<Vec<Gap>> {
        let mut query = connection.prepare_cached("SELECT after, through FROM gaps ORDER BY after")?;
        let gap = |after: i64, through: i64| Gap {
            after: EventSeq(after.unsigned_abs()),
            through: EventSeq(through.unsigned_abs()),
        };
        query.query_map([], |row| Ok(gap(row.get(0)?, row.get(1)?)))?.collect()
    };
    read().map_err(sql)
}

/// The bytes of a job in a row of `event_seq, job, sum`. They are not decoded.
fn job_bytes(connection: &Connection, row: &Row<'_>) -> Result<Vec<u8>, HistoryError> {
    let columns = || -> rusqlite::Result<(i64, Vec<u8>, i64)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
    let (event, job, sum) = columns().map_err(HistoryError::sql("read"))?;
    sum::check(connection, sum::Row::Job, event, &job, sum)?;
    Ok(job)
}

/// The part that this history can give for the gap of another. It has at least one record, if this history has any.
pub(crate) fn part(connection: &Connection, gap: Gap, bytes_max: usize) -> Result<Part, HistoryError> {
    let sql = || HistoryError::sql("read");
    // One transaction, so that all reads see the same state of the file.
    let view = connection.unchecked_transaction().map_err(sql())?;
    let (known, floor): (i64, i64) = view
        .query_row("SELECT watermark, floor FROM progress", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(sql())?;
    let (known, floor) = (EventSeq(known.unsigned_abs()), EventSeq(floor.unsigned_abs()));
    let end = load(&view)?.into_iter().filter(|own| own.through > gap.after).map(|own| own.after).min();
    let end = end.unwrap_or(known).min(known).min(gap.through);
    let mut part = Part { reached: gap.after, floor, known, records: Vec::new() };
    if end <= gap.after {
        return Ok(part);
    }
    let mut bytes = 0;
    // Where events were dropped, only the jobs remain.
    let mut jobs = view
        .prepare_cached(
            "SELECT event_seq, job, sum FROM jobs WHERE event_seq > ?1 AND event_seq <= ?2 ORDER BY event_seq",
        )
        .map_err(sql())?;
    let mut rows = jobs.query([column(gap.after), column(end.min(floor))]).map_err(sql())?;
    while let Some(row) = rows.next().map_err(sql())? {
        let seq: i64 = row.get(0).map_err(sql())?;
        let job = job_bytes(&view, row)?;
        let record = Record { seq: EventSeq(seq.unsigned_abs()), event: Vec::new(), job };
        (bytes, part.reached) = (bytes + record.len(), record.seq);
        part.records.push(record);
        if bytes >= bytes_max {
            return Ok(part);
        }
    }
    part.reached = part.reached.max(end.min(floor));
    let mut job = view.prepare_cached("SELECT event_seq, job, sum FROM jobs WHERE event_seq = ?1").map_err(sql())?;
    let mut blobs = view
        .prepare_cached("SELECT last_seq, body, sum FROM events WHERE last_seq > ?1 ORDER BY last_seq")
        .map_err(sql())?;
    let mut rows = blobs.query([column(part.reached)]).map_err(sql())?;
    while let Some(row) = rows.next().map_err(sql())? {
        let mut blob = blob_of(&view, row)?;
        while !blob.is_empty() {
            let raw = split_event(&mut blob)?;
            if raw.seq <= part.reached {
                continue;
            }
            if raw.seq > end || bytes >= bytes_max {
                return Ok(part);
            }
            let bytes_of = |row: &Row<'_>| Ok(job_bytes(&view, row));
            let ended = raw.ended.then(|| job.query_row([column(raw.seq)], bytes_of).optional());
            let ended = ended.transpose().map_err(sql())?.flatten().transpose()?;
            // The namespace keeps no such old jobs. Its event is passed on as one that says nothing but its number.
            let event = if raw.ended && ended.is_none() { without_job(raw.bytes) } else { raw.bytes.to_vec() };
            let record = Record { seq: raw.seq, event, job: ended.unwrap_or_default() };
            (bytes, part.reached) = (bytes + record.len(), record.seq);
            part.records.push(record);
        }
    }
    Ok(part)
}
