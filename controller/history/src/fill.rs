//! Filling a gap: a part of another history is verified completely before any of it is written.

use atlas_format::decode_job;
use atlas_types::{Event, EventSeq, Job, JobId, Namespace};
use rusqlite::{Connection, OptionalExtension};

use crate::ids::RecentIds;
use crate::record::{decode_event, split_event};
use crate::retention::raise_floor;
use crate::rows::column;
use crate::writer::{BLOB_BYTES_MAX, BLOB_EVENTS_MAX, insert_events, insert_job};
use crate::{Gap, HistoryError, Part, erase};

/// A part that passed the checks.
pub(crate) struct Filling {
    gap: Gap,
    reached: EventSeq,
    floor: EventSeq,
    jobs: Vec<(EventSeq, Job)>,
    blobs: Vec<Blob>,
    /// Erasures among the events.
    erased: Vec<(EventSeq, Namespace, Option<JobId>)>,
}

#[derive(Default)]
struct Blob {
    first: EventSeq,
    last: EventSeq,
    body: Vec<u8>,
}

impl Filling {
    /// Checks that a part continues a gap from its beginning without missing events, and contains every job that ended.
    pub(crate) fn check(gap: Gap, part: Part) -> Result<Self, HistoryError> {
        if part.reached <= gap.after || part.reached > gap.through {
            return Err(HistoryError::Part("it does not begin at missing events, or extends beyond them"));
        }
        let floor = part.floor.max(gap.after).min(part.reached);
        let mut filling =
            Self { gap, reached: part.reached, floor, jobs: Vec::new(), blobs: Vec::new(), erased: Vec::new() };
        let mut last = gap.after;
        for record in part.records {
            let dense = if record.event.is_empty() {
                record.seq > last && record.seq <= floor && !record.job.is_empty()
            } else {
                record.seq == last.max(floor).next()
            };
            if !dense || record.seq > part.reached {
                return Err(HistoryError::Part("it has gaps"));
            }
            last = record.seq;
            if !record.event.is_empty() {
                filling.event(&record.event, record.seq, !record.job.is_empty())?;
            }
            if !record.job.is_empty() {
                let job = decode_job(&record.job[..]).map_err(HistoryError::Record)?;
                if !job.status.is_terminal() {
                    return Err(HistoryError::Part("a job in it has not ended"));
                }
                filling.jobs.push((record.seq, job));
            }
        }
        if last.max(floor) != part.reached {
            return Err(HistoryError::Part("it ends before its announced end"));
        }
        Ok(filling)
    }

    fn event(&mut self, bytes: &[u8], seq: EventSeq, has_job: bool) -> Result<(), HistoryError> {
        let mut rest = bytes;
        let raw = split_event(&mut rest)?;
        if raw.seq != seq || !rest.is_empty() {
            return Err(HistoryError::Part("an event has another number than announced"));
        }
        if raw.ended != has_job {
            return Err(HistoryError::Part("an ended job is missing"));
        }
        // The event is decoded here, so that an undecodable one is refused now and not found by a reader later.
        let decoded = decode_event(&mut &*bytes, &mut |_| Ok(None))?;
        if let Some(Event::Erased { namespace, job }) = decoded.event {
            self.erased.push((seq, namespace, job));
        }
        let full = |blob: &Blob| blob.body.len() >= BLOB_BYTES_MAX || seq.0 - blob.first.0 >= BLOB_EVENTS_MAX;
        if self.blobs.last().is_none_or(full) {
            self.blobs.push(Blob { first: seq, ..Blob::default() });
        }
        if let Some(blob) = self.blobs.last_mut() {
            blob.last = seq;
            blob.body.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Writes the part, unless the gap no longer exists.
    pub(crate) fn write(&self, connection: &Connection, ids: &RecentIds) -> Result<(), HistoryError> {
        if !is_open(connection, self.gap)? {
            return Ok(());
        }
        for (event, job) in &self.jobs {
            insert_job(connection, *event, job)?;
        }
        for Blob { first, last, body } in &self.blobs {
            insert_events(connection, *first, *last, body)?;
        }
        for (event, namespace, job) in &self.erased {
            erase::note(connection, *event, namespace, *job)?;
        }
        erase::erase_part(connection, ids, (self.gap.after.next(), self.reached), &self.jobs)?;
        if self.floor > self.gap.after {
            raise_floor(connection, self.floor)?;
        }
        move_front(connection, self.gap, self.reached)
    }
}

/// Abandons a gap, unless it no longer exists.
pub(crate) fn give_up(connection: &Connection, gap: Gap) -> Result<(), HistoryError> {
    if !is_open(connection, gap)? {
        return Ok(());
    }
    raise_floor(connection, gap.through)?;
    move_front(connection, gap, gap.through)
}

fn is_open(connection: &Connection, gap: Gap) -> Result<bool, HistoryError> {
    connection
        .query_row(
            "SELECT 1 FROM gaps WHERE after = ?1 AND through = ?2",
            [column(gap.after), column(gap.through)],
            |_| Ok(()),
        )
        .optional()
        .map(|found| found.is_some())
        .map_err(HistoryError::sql("fill"))
}

fn move_front(connection: &Connection, gap: Gap, reached: EventSeq) -> Result<(), HistoryError> {
    let moved = if reached >= gap.through {
        connection.execute("DELETE FROM gaps WHERE after = ?1", [column(gap.after)])
    } else {
        connection.execute("UPDATE gaps SET after = ?2 WHERE after = ?1", [column(gap.after), column(reached)])
    };
    moved.map(|_| ()).map_err(HistoryError::sql("fill"))
}
