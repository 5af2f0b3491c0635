//! The tables, and opening the file that contains them.
//!
//! `jobs` has one row per ended job, keyed by the event that ended it, so that rows are appended and a repeated event
//! finds its row. `events` has one row per transaction, with all its events in one blob. This costs a tenth of one row
//! per event. `artifacts` lists the references of the rows of `jobs`, so that an artifact is kept as long as a job
//! refers to it. `ids` has the rows by the ids of their jobs, apart from the latest (`ids.rs`).

use std::path::Path;

use atlas_format::decode_job;
use atlas_types::Job;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction};

use crate::HistoryError;
use crate::rows::{index, refer};
use crate::{erase, ids, totals};

/// The version that this program writes, in `PRAGMA user_version`.
pub(crate) const VERSION: i64 = 7;

const TABLES: &str = "
CREATE TABLE jobs (
    event_seq    INTEGER PRIMARY KEY, -- the event that ended the job
    id           INTEGER NOT NULL,    -- the job id, order kept by flipping the top bit
    namespace    TEXT NOT NULL,
    agent        TEXT NOT NULL,
    status       TEXT NOT NULL,
    queue_seq    INTEGER NOT NULL,    -- the order of submission
    created_at   INTEGER NOT NULL,    -- microseconds since 1970
    completed_at INTEGER NOT NULL,
    job          BLOB NOT NULL        -- the whole job, a message of atlas.state.v1
);
CREATE INDEX jobs_by_id ON jobs (id);
CREATE INDEX jobs_by_queue_seq ON jobs (queue_seq);

CREATE TABLE events (
    last_seq  INTEGER PRIMARY KEY, -- number of the last event in the blob
    first_seq INTEGER NOT NULL,
    body      BLOB NOT NULL
);

CREATE TABLE progress (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    watermark INTEGER NOT NULL, -- everything up to this event is here
    floor     INTEGER NOT NULL, -- events up to this one are gone from `events`
    cluster   TEXT              -- whose history it is, once that is known
);
INSERT INTO progress VALUES (1, 0, 0, NULL);
";

/// Added in version 2.
const TABLES_2: &str = "
CREATE TABLE artifacts (
    event_seq INTEGER NOT NULL, -- the event that ended the job
    digest    BLOB NOT NULL,    -- what the job's input, output or stream is
    PRIMARY KEY (event_seq, digest)
) WITHOUT ROWID;
CREATE INDEX artifacts_by_digest ON artifacts (digest);

CREATE TABLE gaps (
    after   INTEGER PRIMARY KEY, -- events behind this one
    through INTEGER NOT NULL     -- up to this one were not seen here
);
";

/// Added in version 3: the checksum of key and body. Older rows have -1.
const TABLES_3: &str = "
ALTER TABLE jobs ADD COLUMN sum INTEGER NOT NULL DEFAULT -1;
ALTER TABLE events ADD COLUMN sum INTEGER NOT NULL DEFAULT -1;
";

/// Added in version 4: lists of one agent or one status, and traces of one agent, read only what they show.
const INDEXES_4: &str = "
CREATE INDEX jobs_of_agent ON jobs (namespace, agent, queue_seq);
CREATE INDEX jobs_of_status ON jobs (namespace, status, queue_seq);
CREATE INDEX jobs_by_end_of_agent ON jobs (namespace, agent, event_seq);
";

/// Added in version 5: lists by any filter read only what they show, also those of one namespace among many, of old jobs, and by label
/// or text. The order of submission is that of time, so a time is translated into a place in that order.
const TABLES_5: &str = "
CREATE INDEX jobs_by_time ON jobs (created_at, queue_seq);
CREATE INDEX jobs_of_namespace ON jobs (namespace, queue_seq);
CREATE INDEX jobs_of_agent_and_status ON jobs (namespace, agent, status, queue_seq);
CREATE INDEX jobs_by_end ON jobs (namespace, event_seq);

CREATE TABLE labels (
    namespace TEXT NOT NULL,
    key       TEXT NOT NULL,
    value     TEXT NOT NULL,
    queue_seq INTEGER NOT NULL, -- the job
    PRIMARY KEY (namespace, key, value, queue_seq)
) WITHOUT ROWID;
CREATE INDEX labels_of_job ON labels (queue_seq);

-- The words of a job's error and labels; `rowid` is its `queue_seq`. Words come in lower case, separated by spaces.
CREATE VIRTUAL TABLE words USING fts5 (text, content = '', contentless_delete = 1, detail = 'none', tokenize = 'ascii');
";

/// Files up to this size are checked completely when they are opened. In larger files, only rows that are read are
/// checked.
const CHECKED_BYTES_MAX: u64 = 64 << 20;

/// Opens the file for writing, creates or checks its tables.
pub(crate) fn open_writer(path: &Path) -> Result<Connection, HistoryError> {
    let mut connection = Connection::open(path).map_err(|source| opening(path, source))?;
    prepare(&mut connection, path).map_err(|error| match error {
        HistoryError::Sql { source, .. } => opening(path, source),
        error => error,
    })?;
    Ok(connection)
}

/// Assigns the file to a cluster, or refuses it if it belongs to another one.
pub(crate) fn bind(path: &Path, cluster: u128) -> Result<(), HistoryError> {
    let connection = Connection::open(path).map_err(|source| opening(path, source))?;
    connection.pragma_update(None, "busy_timeout", 5_000).map_err(HistoryError::sql("open"))?;
    let cluster = format!("{cluster:032x}");
    connection
        .execute("UPDATE progress SET cluster = ?1 WHERE cluster IS NULL", [&cluster])
        .map_err(HistoryError::sql("open"))?;
    let found: String = connection
        .query_row("SELECT cluster FROM progress", [], |row| row.get(0))
        .map_err(HistoryError::sql("open"))?;
    if found == cluster { Ok(()) } else { Err(HistoryError::OtherCluster { path: path.to_owned(), found, cluster }) }
}

/// Opens the file for reading only.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, HistoryError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|source| opening(path, source))?;
    // In WAL mode a reader does not wait for the writer, except for a moment when a checkpoint restarts the write-ahead
    // file.
    connection.pragma_update(None, "busy_timeout", 1_000).map_err(HistoryError::sql("read"))?;
    connection.pragma_update(None, "cache_size", -1024).map_err(HistoryError::sql("read"))?;
    Ok(connection)
}

fn prepare(connection: &mut Connection, path: &Path) -> Result<(), HistoryError> {
    let sql = HistoryError::sql("open");
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(sql)?;
    if mode != "wal" {
        tracing::warn!(%mode, "the file system does not support a write-ahead log: reads wait for writes");
    }
    // NORMAL syncs only at checkpoints. The writer syncs the write-ahead file itself before it acknowledges anything.
    for (name, value) in
        [("synchronous", 1), ("wal_autocheckpoint", 4_096), ("cache_size", -4_096), ("busy_timeout", 5_000)]
    {
        connection.pragma_update(None, name, value).map_err(HistoryError::sql("open"))?;
    }
    let version: i64 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(HistoryError::sql("open"))?;
    if (1..VERSION).contains(&version) {
        // Reading each job once takes seconds for a million, and nothing is answered meanwhile.
        tracing::info!(path = %path.display(), from = version, to = VERSION, "upgrading the history");
    }
    match version {
        0 => upgrade(connection, |transaction| {
            transaction.execute_batch(TABLES).map_err(HistoryError::sql("create"))?;
            transaction.execute_batch(TABLES_2).map_err(HistoryError::sql("create"))?;
            from_2(transaction)
        })?,
        1 => {
            check(connection, path)?;
            upgrade(connection, from_1)?;
        }
        2 => {
            check(connection, path)?;
            upgrade(connection, from_2)?;
        }
        3 => {
            check(connection, path)?;
            upgrade(connection, from_3)?;
        }
        4 => {
            check(connection, path)?;
            upgrade(connection, from_4)?;
        }
        5 => {
            check(connection, path)?;
            upgrade(connection, from_5)?;
        }
        6 => {
            check(connection, path)?;
            upgrade(connection, from_6)?;
        }
        VERSION => check(connection, path)?,
        found => return Err(HistoryError::TooNew { path: path.to_owned(), found, known: VERSION }),
    }
    Ok(())
}

/// Upgrades the tables to [`VERSION`], or leaves them unchanged.
fn upgrade(
    connection: &mut Connection,
    change: impl FnOnce(&Transaction<'_>) -> Result<(), HistoryError>,
) -> Result<(), HistoryError> {
    let transaction = connection.transaction().map_err(HistoryError::sql("create"))?;
    change(&transaction)?;
    transaction.pragma_update(None, "user_version", VERSION).map_err(HistoryError::sql("create"))?;
    transaction.commit().map_err(HistoryError::sql("create"))
}

/// Version 1 did not store the artifact references of jobs, so every job is read once.
fn from_1(transaction: &Transaction<'_>) -> Result<(), HistoryError> {
    let sql = || HistoryError::sql("upgrade");
    transaction.execute_batch(TABLES_2).map_err(sql())?;
    let mut jobs = transaction.prepare("SELECT event_seq, job FROM jobs").map_err(sql())?;
    let mut rows = jobs.query([]).map_err(sql())?;
    while let Some(row) = rows.next().map_err(sql())? {
        let event: i64 = row.get(0).map_err(sql())?;
        let bytes = row.get_ref(1).map_err(sql())?.as_bytes().map_err(|_| HistoryError::Field("a job"))?;
        refer(transaction, event, &decode_job(bytes).map_err(HistoryError::Record)?)?;
    }
    drop(rows);
    drop(jobs);
    from_2(transaction)
}

/// Version 2 had no checksums. Its rows stay without them.
fn from_2(transaction: &Transaction<'_>) -> Result<(), HistoryError> {
    transaction.execute_batch(TABLES_3).map_err(HistoryError::sql("upgrade"))?;
    from_3(transaction)
}

/// Version 3 had indexes for ids and for the order of submission only.
fn from_3(transaction: &Transaction<'_>) -> Result<(), HistoryError> {
    transaction.execute_batch(INDEXES_4).map_err(HistoryError::sql("upgrade"))?;
    from_4(transaction)
}

/// Version 4 had neither labels nor words.
fn from_4(transaction: &Transaction<'_>) -> Result<(), HistoryError> {
    transaction.execute_batch(TABLES_5).map_err(HistoryError::sql("upgrade"))?;
    each_job(transaction, |_, job| index(transaction, job))?;
    from_5(transaction)
}

/// Version 5 had no totals. Jobs that were removed before are not counted.
fn from_5(transaction: &Transaction<'_>) -> Result<(), HistoryError> {
    transaction.execute_batch(totals::TABLES).map_err(HistoryError::sql("upgrade"))?;
    transaction.execute_batch(erase::TABLES).map_err(HistoryError::sql("upgrade"))?;
    each_job(transaction, |event, job| totals::add(transaction, event, job))?;
    totals::drop_ends(transaction)?;
    from_6(transaction)
}

/// Version 6 had an index of ids, and more of those by which lists are read.
fn from_6(transaction: &Transaction<'_>) -> Result<(), HistoryError> {
    transaction.execute_batch(ids::TABLES).map_err(HistoryError::sql("upgrade"))
}

/// Reads every job once. One that cannot be read is left out here, and reading it fails as before.
fn each_job(
    transaction: &Transaction<'_>,
    mut take: impl FnMut(i64, &Job) -> Result<(), HistoryError>,
) -> Result<(), HistoryError> {
    let sql = || HistoryError::sql("upgrade");
    let mut jobs = transaction.prepare("SELECT event_seq, job FROM jobs").map_err(sql())?;
    let mut rows = jobs.query([]).map_err(sql())?;
    while let Some(row) = rows.next().map_err(sql())? {
        let (event, bytes): (i64, Vec<u8>) = (row.get(0).map_err(sql())?, row.get(1).map_err(sql())?);
        match decode_job(&bytes) {
            Ok(job) => take(event, &job)?,
            Err(error) => {
                tracing::warn!(event, %error, "a job of the history cannot be read and is left out of its indexes")
            }
        }
    }
    Ok(())
}

fn check(connection: &Connection, path: &Path) -> Result<(), HistoryError> {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if bytes > CHECKED_BYTES_MAX {
        return Ok(());
    }
    let verdict: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(HistoryError::sql("check"))?;
    if verdict == "ok" { Ok(()) } else { Err(HistoryError::Damaged { path: path.to_owned(), detail: verdict }) }
}

/// Distinguishes damage from other errors when opening a file.
fn opening(path: &Path, source: rusqlite::Error) -> HistoryError {
    let damaged = matches!(source.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase));
    if damaged {
        HistoryError::Damaged { path: path.to_owned(), detail: source.to_string() }
    } else {
        HistoryError::Open { path: path.to_owned(), source }
    }
}
