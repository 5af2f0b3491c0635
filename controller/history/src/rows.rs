//! What belongs to a job in other tables: its labels and words, and its references to artifacts.

use atlas_types::{EventSeq, Job, PayloadBody};
use rusqlite::{Connection, Params, params};

use crate::ids::RecentIds;
use crate::{HistoryError, words};

/// An event number as SQLite's signed integer. Numbers never reach 2^63.
pub(crate) fn column(seq: EventSeq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

/// Writes the labels and words of a job.
pub(crate) fn index(connection: &Connection, job: &Job) -> Result<(), HistoryError> {
    let sql = || HistoryError::sql("write");
    let place = i64::try_from(job.queue_seq).unwrap_or(i64::MAX);
    for (key, value) in job.labels.iter() {
        connection
            .prepare_cached("INSERT OR IGNORE INTO labels VALUES (?1, ?2, ?3, ?4)")
            .and_then(|mut insert| insert.execute(params![job.namespace.as_str(), key, value, place]))
            .map_err(sql())?;
    }
    let Some(words) = words::stored(job) else { return Ok(()) };
    connection
        .prepare_cached("INSERT OR REPLACE INTO words (rowid, text) VALUES (?1, ?2)")
        .and_then(|mut insert| insert.execute(params![place, words]))
        .map(|_| ())
        .map_err(sql())
}

/// Removes the jobs that `condition` selects with `values`, and all that was stored with them.
pub(crate) fn remove_jobs(
    connection: &Connection,
    ids: &RecentIds,
    condition: &str,
    values: impl Params + Copy,
) -> Result<(), HistoryError> {
    let sql = || HistoryError::sql("prune");
    let mut query = connection.prepare(&format!("SELECT id, event_seq FROM jobs WHERE {condition}")).map_err(sql())?;
    let mut rows = query.query(values).map_err(sql())?;
    while let Some(row) = rows.next().map_err(sql())? {
        ids.remove(connection, (row.get(0).map_err(sql())?, row.get(1).map_err(sql())?))?;
    }
    for statement in [
        format!("DELETE FROM labels WHERE queue_seq IN (SELECT queue_seq FROM jobs WHERE {condition})"),
        format!("DELETE FROM words WHERE rowid IN (SELECT queue_seq FROM jobs WHERE {condition})"),
        format!("DELETE FROM artifacts WHERE event_seq IN (SELECT event_seq FROM jobs WHERE {condition})"),
        format!("DELETE FROM jobs WHERE {condition}"),
    ] {
        connection.execute(&statement, values).map_err(sql())?;
    }
    Ok(())
}

/// Writes the references of an ended job to artifacts.
pub(crate) fn refer(connection: &Connection, event: i64, job: &Job) -> Result<(), HistoryError> {
    let own = [Some(&job.input), job.output.as_ref(), job.stream.as_deref()].into_iter().flatten();
    for payload in own.chain(job.journal.iter().flat_map(|journal| journal.payloads())) {
        if let PayloadBody::Artifact { digest, .. } = &payload.body {
            connection
                .prepare_cached("INSERT OR IGNORE INTO artifacts VALUES (?1, ?2)")
                .and_then(|mut insert| insert.execute(params![event, digest.0]))
                .map_err(HistoryError::sql("write"))?;
        }
    }
    Ok(())
}
