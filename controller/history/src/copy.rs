//! Copies the file up to one event for a backup, and converts a copy into the file of another cluster.

use std::path::Path;

use atlas_format::decode_job;
use atlas_types::EventSeq;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::ids::RecentIds;
use crate::record::split_event;
use crate::rows::{column, remove_jobs};
use crate::{HistoryError, schema, sum, totals};

/// Writes a copy with all data up to `through` to `to`, which must not exist. The copy then matches a state whose last
/// event is `through`.
pub(crate) fn copy(connection: &Connection, to: &Path, through: EventSeq) -> Result<(), HistoryError> {
    let sql = || HistoryError::sql("copy");
    connection.execute("VACUUM INTO ?1", [to.to_string_lossy()]).map_err(sql())?;
    let mut copy = Connection::open(to).map_err(sql())?;
    // No syncs are needed: the copy goes into an archive with its own checksum, or is discarded.
    copy.pragma_update(None, "synchronous", 0).map_err(sql())?;
    let transaction = copy.transaction().map_err(sql())?;
    let last = column(through);
    uncount(&transaction, last)?;
    remove_jobs(&transaction, &RecentIds::default(), "event_seq > ?1", [last])?;
    for statement in [
        "DELETE FROM events WHERE first_seq > ?1",
        "DELETE FROM gaps WHERE after >= ?1",
        "UPDATE gaps SET through = min(through, ?1)",
        "UPDATE progress SET watermark = min(watermark, ?1), floor = min(floor, ?1), indexed = min(indexed, ?1)",
    ] {
        transaction.execute(statement, [last]).map_err(sql())?;
    }
    // One blob may contain events on both sides of `through`.
    let across = "SELECT last_seq, body, sum FROM events WHERE last_seq > ?1";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let found: Option<(i64, Vec<u8>, i64)> = transaction.query_row(across, [last], read).optional().map_err(sql())?;
    if let Some((before, body, sum)) = found {
        sum::check(connection, sum::Row::Events, before, &body, sum)?;
        let kept = kept(&body, through)?;
        transaction
            .execute(
                "UPDATE events SET last_seq = ?1, body = ?2, sum = ?3 WHERE last_seq = ?4",
                params![last, kept, sum::of(last, &kept), before],
            )
            .map_err(sql())?;
    }
    transaction.commit().map_err(sql())
}

/// Takes the jobs that ended after `last` out of the totals.
fn uncount(transaction: &Transaction<'_>, last: i64) -> Result<(), HistoryError> {
    let sql = || HistoryError::sql("copy");
    let mut later = transaction.prepare("SELECT event_seq, job FROM jobs WHERE event_seq > ?1").map_err(sql())?;
    let mut rows = later.query([last]).map_err(sql())?;
    while let Some(row) = rows.next().map_err(sql())? {
        let (event, bytes): (i64, Vec<u8>) = (row.get(0).map_err(sql())?, row.get(1).map_err(sql())?);
        totals::subtract(transaction, event, &decode_job(&bytes).map_err(HistoryError::Record)?)?;
    }
    Ok(())
}

/// The events of a blob up to `through`.
fn kept(mut blob: &[u8], through: EventSeq) -> Result<Vec<u8>, HistoryError> {
    let mut kept = Vec::new();
    while !blob.is_empty() {
        let event = split_event(&mut blob)?;
        if event.seq > through {
            break;
        }
        kept.extend_from_slice(event.bytes);
    }
    Ok(kept)
}

/// Checks the closed file at `path` completely and assigns it to another cluster. The controller that uses the file
/// must not run.
pub fn rebind(path: &Path, cluster: u128) -> Result<(), HistoryError> {
    let connection = schema::open_writer(path)?;
    let sql = || HistoryError::sql("check");
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(sql())?;
    if verdict != "ok" {
        return Err(HistoryError::Damaged { path: path.to_owned(), detail: verdict });
    }
    connection
        .execute("UPDATE progress SET cluster = ?1", [format!("{cluster:032x}")])
        .map_err(HistoryError::sql("open"))?;
    // The write-ahead log is merged into the file and synced before other steps depend on the file.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(HistoryError::sql("open"))
}
