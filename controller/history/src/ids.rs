//! Where ended jobs are by their ids.
//!
//! Ids are random. An index of them in the file takes a page of its own for nearly each job, where everything else is appended: half of
//! the cost of a transaction. So the ids of the latest jobs are in memory, and each transaction moves a range of them into the table
//! `ids`, where those that are close together share pages. The next transaction goes on where that range ended, and after the last id
//! another round begins with the first one.
//!
//! `progress.indexed` is the event up to which all jobs are in the table: the last one when the previous round began. Later jobs are read
//! again when the file is opened.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, params};

use crate::HistoryError;

/// Whether a row of `jobs` has its time in the index, in SQL: about one of 64. The places are mixed twice, because namespaces that take
/// turns have each second place, or each 64th, and each must have its share also where the other ones keep nothing. 31 bits are enough,
/// and with more the products would not be integers.
macro_rules! has_its_time {
    () => {
        "((((queue_seq & 2147483647) * 2654435761 >> 15) & 2147483647) * 2246822519 >> 26) & 63 = 0"
    };
}
pub(crate) use has_its_time;

/// Added in version 7, with fewer indexes: lists of all statuses are put together from those of each, and of 64 jobs one has its time.
pub(crate) const TABLES: &str = concat!(
    "
CREATE TABLE ids (
    id        INTEGER NOT NULL, -- as in `jobs`
    event_seq INTEGER NOT NULL, -- the event that ended the job
    PRIMARY KEY (id, event_seq)
) WITHOUT ROWID;
INSERT INTO ids SELECT id, event_seq FROM jobs ORDER BY id, event_seq;
ALTER TABLE progress ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
UPDATE progress SET indexed = (SELECT coalesce(max(event_seq), 0) FROM jobs);

DROP INDEX jobs_by_id;
DROP INDEX jobs_of_agent;
DROP INDEX jobs_of_namespace;
DROP INDEX jobs_by_time;
CREATE INDEX jobs_by_time ON jobs (created_at, queue_seq) WHERE ",
    has_its_time!(),
    ";\n"
);

/// How many ids stay in memory, 2 MiB. With a million jobs, a page gets ten of them at a time.
pub(crate) const RECENT_MAX: usize = 32_768;
/// The most ids that one transaction moves.
const MOVED_MAX: usize = 8_192;

/// An id as a column, and the event that ended its job.
type Entry = (i64, i64);

/// The ids in memory. Written by the writer, read by everybody.
#[derive(Debug, Default)]
pub(crate) struct RecentIds(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    entries: BTreeSet<Entry>,
    /// Entries whose rows are removed by the transaction that is open.
    removed: BTreeSet<Entry>,
    /// The last entry that was moved; none at the begin of a round.
    moved: Option<Entry>,
    /// The last event when the round began.
    round: i64,
}

/// What a transaction has moved. It counts once the transaction is committed.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    entries: Vec<Entry>,
    /// The last event, if the round has ended.
    ended: Option<i64>,
}

impl RecentIds {
    /// The ids that may not be in the table.
    pub(crate) fn load(connection: &Connection) -> Result<Self, HistoryError> {
        let sql = || HistoryError::sql("read");
        let watermark = connection.query_row("SELECT watermark FROM progress", [], |row| row.get(0)).map_err(sql())?;
        let mut query = connection
            .prepare("SELECT id, event_seq FROM jobs WHERE event_seq > (SELECT indexed FROM progress)")
            .map_err(sql())?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(sql())?;
        let entries = rows.collect::<Result<_, _>>().map_err(sql())?;
        Ok(Self(Mutex::new(Recent { entries, round: watermark, ..Recent::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Recent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transaction begins; one before it may have failed.
    pub(crate) fn begin(&self) {
        self.lock().removed.clear();
    }

    /// Adds the job of a row that is being written. Readers that look for it already find no row.
    pub(crate) fn add(&self, id: i64, event: i64) {
        self.lock().entries.insert((id, event));
    }

    /// Takes the job of a row that is being removed out of the table, and out of memory once that is committed.
    pub(crate) fn remove(&self, connection: &Connection, entry: Entry) -> Result<(), HistoryError> {
        connection
            .prepare_cached("DELETE FROM ids WHERE id = ?1 AND event_seq = ?2")
            .and_then(|mut delete| delete.execute([entry.0, entry.1]))
            .map_err(HistoryError::sql("prune"))?;
        let mut recent = self.lock();
        if recent.entries.contains(&entry) {
            recent.removed.insert(entry);
        }
        Ok(())
    }

    /// Moves ids into the table, if there are more than `max`. `through` is the last event that is written.
    pub(crate) fn move_some(&self, connection: &Connection, max: usize, through: i64) -> Result<Moved, HistoryError> {
        let (moved, round) = {
            let recent = self.lock();
            let count = recent.entries.len().saturating_sub(max).min(MOVED_MAX);
            if count == 0 {
                return Ok(Moved::default());
            }
            let after = recent.moved.map_or(Bound::Unbounded, Bound::Excluded);
            let entries: Vec<Entry> = recent.entries.range((after, Bound::Unbounded)).take(count).copied().collect();
            let ended = (entries.len() < count).then_some(through);
            let is_left = |entry: &Entry| !recent.removed.contains(entry);
            (Moved { entries: entries.into_iter().filter(is_left).collect(), ended }, recent.round)
        };
        for (id, event) in &moved.entries {
            write(connection, *id, *event)?;
        }
        if moved.ended.is_some() {
            connection
                .execute("UPDATE progress SET indexed = max(indexed, ?1)", [round])
                .map_err(HistoryError::sql("write"))?;
        }
        Ok(moved)
    }

    /// The transaction is committed.
    pub(crate) fn commit(&self, moved: &Moved) {
        let recent = &mut *self.lock();
        for entry in std::mem::take(&mut recent.removed) {
            recent.entries.remove(&entry);
        }
        for entry in &moved.entries {
            recent.entries.remove(entry);
        }
        recent.moved = moved.entries.last().copied().or(recent.moved);
        if let Some(through) = moved.ended {
            (recent.moved, recent.round) = (None, through);
        }
    }

    /// The event that ended a job; the first one if there are several.
    pub(crate) fn event_of(&self, connection: &Connection, id: i64) -> Result<Option<i64>, HistoryError> {
        // Memory first: what has left it is committed, and found by a query that begins afterwards.
        let recent = self.lock().entries.range((id, i64::MIN)..=(id, i64::MAX)).next().map(|(_, event)| *event);
        let stored: Option<i64> = connection
            .prepare_cached("SELECT min(event_seq) FROM ids WHERE id = ?1")
            .and_then(|mut query| query.query_row([id], |row| row.get(0)))
            .map_err(HistoryError::sql("read"))?;
        Ok(recent.into_iter().chain(stored).min())
    }

    /// At most `limit` ids of a range, in order.
    pub(crate) fn between(
        &self,
        connection: &Connection,
        (first, last): (i64, i64),
        limit: usize,
    ) -> Result<BTreeSet<i64>, HistoryError> {
        let sql = || HistoryError::sql("read");
        let range = (first, i64::MIN)..=(last, i64::MAX);
        let mut found: BTreeSet<i64> = match first <= last {
            true => self.lock().entries.range(range).map(|(id, _)| *id).take(limit).collect(),
            false => BTreeSet::new(),
        };
        let mut query = connection
            .prepare_cached("SELECT id FROM ids WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3")
            .map_err(sql())?;
        let rows = query.query_map(params![first, last, i64::try_from(limit).unwrap_or(i64::MAX)], |row| row.get(0));
        for id in rows.map_err(sql())? {
            found.insert(id.map_err(sql())?);
        }
        while found.len() > limit {
            found.pop_last();
        }
        Ok(found)
    }
}

/// Writes an entry of the table.
pub(crate) fn write(connection: &Connection, id: i64, event: i64) -> Result<(), HistoryError> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO ids VALUES (?1, ?2)")
        .and_then(|mut insert| insert.execute([id, event]))
        .map(|_| ())
        .map_err(HistoryError::sql("write"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "CREATE TABLE jobs (event_seq INTEGER PRIMARY KEY, id INTEGER);
        CREATE TABLE progress (watermark INTEGER, indexed INTEGER NOT NULL DEFAULT 0);
        INSERT INTO progress VALUES (0, 0);
        CREATE TABLE ids (id INTEGER NOT NULL, event_seq INTEGER NOT NULL, PRIMARY KEY (id, event_seq)) WITHOUT ROWID;";

    /// Jobs end one after the other, some are removed, transactions fail, and the file is opened again: each job is found at any time.
    #[test]
    fn each_job_is_found_wherever_its_id_is() {
        let file = Connection::open_in_memory().expect("opens");
        file.execute_batch(FILE).expect("creates");
        let mut recent = RecentIds::load(&file).expect("loads");
        let (mut drawn, mut kept) = (7_u64, BTreeSet::new());
        let mut draw = || {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (drawn >> 20).cast_signed()
        };
        for transaction in 0..200_i64 {
            let fails = draw() % 5 == 0;
            file.execute_batch("BEGIN").expect("begins");
            recent.begin();
            let before = kept.clone();
            for number in 0..7 {
                let entry @ (id, event) = (draw(), transaction * 7 + number + 1);
                file.execute("INSERT INTO jobs VALUES (?1, ?2)", [event, id]).expect("writes");
                recent.add(id, event);
                kept.insert(entry);
            }
            if draw() % 3 == 0
                && let Some(entry) = kept.iter().nth(kept.len() / 2).copied()
            {
                file.execute("DELETE FROM jobs WHERE event_seq = ?1", [entry.1]).expect("deletes");
                recent.remove(&file, entry).expect("removes");
                kept.remove(&entry);
            }
            file.execute("UPDATE progress SET watermark = ?1", [transaction * 7 + 7]).expect("writes");
            let moved = recent.move_some(&file, 20, transaction * 7 + 7).expect("moves");
            if fails {
                file.execute_batch("ROLLBACK").expect("fails");
                // The writer repeats it; here the jobs come again as others.
                let gone: Vec<Entry> = kept.difference(&before).copied().collect();
                let recent = &mut *recent.lock();
                recent.entries.retain(|entry| !gone.contains(entry));
                kept = before;
            } else {
                file.execute_batch("COMMIT").expect("commits");
                recent.commit(&moved);
            }
            if draw() % 20 == 0 {
                recent = RecentIds::load(&file).expect("loads");
            }
            for (id, event) in &kept {
                assert_eq!(recent.event_of(&file, *id).expect("reads"), Some(*event), "in transaction {transaction}");
            }
            let all = recent.between(&file, (i64::MIN, i64::MAX), 5).expect("reads");
            assert_eq!(all, kept.iter().map(|(id, _)| *id).take(5).collect());
        }
        let (ids, jobs) = ("SELECT count(*) FROM ids", "SELECT count(*) FROM jobs");
        let count = |sql| file.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("reads");
        assert!(count(ids) > count(jobs) / 2, "most are in the table");
        assert!(recent.lock().entries.len() < 200, "few are in memory");
        let indexed: i64 = file.query_row("SELECT indexed FROM progress", [], |row| row.get(0)).expect("reads");
        assert!(indexed > 700, "rounds end: {indexed}");
    }
}
