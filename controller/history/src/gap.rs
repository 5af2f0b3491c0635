//! The events that a history is missing, and the parts of another history that fill them.

use atlas_types::EventSeq;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::reader::blob_of;
use crate::record::split_event;
use crate::writer::column;
use crate::{HistoryError, StoredEvent, sum};

/// Events that were not seen here: those behind `after` up to `through`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last event before it.
    pub after: EventSeq,
    /// Its last event.
    pub through: EventSeq,
}

/// What a history has of a gap of another one: everything behind the gap's front up to `reached`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// How far it goes; the gap's front if there is nothing.
    pub reached: EventSeq,
    /// Of events up to here the giver has only the jobs that they ended.
    pub floor: EventSeq,
    /// How far the giver's history goes at all.
    pub known: EventSeq,
    /// In order: above `floor` one an event, below it one an ended job.
    pub records: Vec<Record>,
}

/// One event, and the job that it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub seq: EventSeq,
    /// The event in history's own encoding; empty where events were dropped.
    pub event: Vec<u8>,
    /// The job as it ended, a message of `atlas.state.v1`; empty if none ended.
    pub job: Vec<u8>,
}

impl Record {
    fn len(&self) -> usize {
        self.event.len() + self.job.len() + 16
    }
}

impl Part {
    /// The events of a part that begins behind `after`; [`HistoryError::Gone`] if the first of them were dropped.
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
            let mut ended = |_| {
                let job = Some(&record.job).filter(|job| !job.is_empty());
                job.map(|job| atlas_format::decode_job(&job[..]).map_err(HistoryError::Record)).transpose()
            };
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

/// The bytes of a job in a row of `event_seq, job, sum`, which are not decoded here.
fn job_bytes(connection: &Connection, row: &Row<'_>) -> Result<Vec<u8>, HistoryError> {
    let columns = || -> rusqlite::Result<(i64, Vec<u8>, i64)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
    let (event, job, sum) = columns().map_err(HistoryError::sql("read"))?;
    sum::check(connection, sum::Row::Job, event, &job, sum)?;
    Ok(job)
}

/// What this history has of a gap of another one. At least one record, if it has any.
pub(crate) fn part(connection: &Connection, gap: Gap, bytes_max: usize) -> Result<Part, HistoryError> {
    let sql = || HistoryError::sql("read");
    // One transaction, so that all of it is of one moment.
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
    // Where events were dropped only the jobs are left.
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
            let record = Record { seq: raw.seq, event: raw.bytes.to_vec(), job: ended.unwrap_or_default() };
            (bytes, part.reached) = (bytes + record.len(), record.seq);
            part.records.push(record);
        }
    }
    Ok(part)
}
