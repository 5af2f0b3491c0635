//! Totals: what the statistics of agents count, kept beside the jobs so that a controller that starts goes on counting
//! where the cluster is, and retention does not lower them.
//!
//! `totals` has one row per agent. `ends` has one short row for each of the latest jobs that completed or failed.

use std::collections::BTreeMap;
use std::str::FromStr;

use atlas_types::{AgentName, EventSeq, Job, JobStatus, Micros, Timestamp};
use rusqlite::{Connection, params};

use crate::HistoryError;

/// Added in version 6.
pub(crate) const TABLES: &str = "
CREATE TABLE totals (
    agent     TEXT PRIMARY KEY,
    completed INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    warm      INTEGER NOT NULL, -- completed in a slot that was used before
    retries   INTEGER NOT NULL  -- completed or failed retries
) WITHOUT ROWID;

CREATE TABLE ends (
    event_seq INTEGER PRIMARY KEY, -- the event that completed or failed the job
    agent     TEXT NOT NULL,
    at        INTEGER NOT NULL,    -- microseconds since 1970
    execution INTEGER NOT NULL     -- how long the agent ran, microseconds
);
";

/// The most ends that stay when old ones are dropped.
const ENDS_MAX: i64 = 262_144;

/// What ended jobs add up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// The last event that is included.
    pub through: EventSeq,
    /// Per agent.
    pub agents: Vec<AgentTotals>,
    /// The latest jobs that completed or failed, the oldest first.
    pub ends: Vec<End>,
}

/// How many jobs of an agent ended, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTotals {
    pub agent: AgentName,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    /// Completed in a slot that was used before.
    pub warm: u64,
    /// Completed or failed retries.
    pub retries: u64,
}

/// The end of a job that completed or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The event that ended it.
    pub event: EventSeq,
    pub agent: AgentName,
    pub at: Timestamp,
    /// How long the agent ran.
    pub execution: Micros,
}

/// Counts a job whose row was added.
pub(crate) fn add(connection: &Connection, event: i64, job: &Job) -> Result<(), HistoryError> {
    let mut sums = Sums::default();
    sums.add(connection, event, job)?;
    sums.write(connection)
}

/// What the jobs of one transaction add to the totals: one change of an agent's row for all of them.
#[derive(Default)]
pub(crate) struct Sums(BTreeMap<AgentName, [i64; 5]>);

impl Sums {
    /// Counts a job whose row was added.
    pub(crate) fn add(&mut self, connection: &Connection, event: i64, job: &Job) -> Result<(), HistoryError> {
        if job.is_system() {
            return Ok(());
        }
        let counts @ [completed, failed, ..] = counts(job);
        if !self.0.contains_key(&job.agent) {
            self.0.insert(job.agent.clone(), [0; 5]);
        }
        self.0.get_mut(&job.agent).into_iter().flatten().zip(counts).for_each(|(sum, count)| *sum += count);
        if completed + failed == 0 {
            return Ok(());
        }
        let execution = i64::try_from(job.execution.0).unwrap_or(i64::MAX);
        connection
            .prepare_cached("INSERT OR IGNORE INTO ends VALUES (?1, ?2, ?3, ?4)")
            .and_then(|mut insert| insert.execute(params![event, job.agent.as_str(), job.completed_at.0, execution]))
            .map(|_| ())
            .map_err(HistoryError::sql("write"))
    }

    /// Writes the sums.
    pub(crate) fn write(self, connection: &Connection) -> Result<(), HistoryError> {
        for (agent, [completed, failed, cancelled, warm, retries]) in self.0 {
            connection
                .prepare_cached(
                    "INSERT INTO totals VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (agent) DO UPDATE SET
                     completed = completed + ?2, failed = failed + ?3, cancelled = cancelled + ?4, warm = warm + ?5,
                     retries = retries + ?6",
                )
                .and_then(|mut add| add.execute(params![agent.as_str(), completed, failed, cancelled, warm, retries]))
                .map_err(HistoryError::sql("write"))?;
        }
        Ok(())
    }
}

/// Takes back a job that a copy does not include.
pub(crate) fn subtract(connection: &Connection, event: i64, job: &Job) -> Result<(), HistoryError> {
    if job.is_system() {
        return Ok(());
    }
    let [completed, failed, cancelled, warm, retries] = counts(job);
    connection
        .execute(
            "UPDATE totals SET completed = completed - ?2, failed = failed - ?3, cancelled = cancelled - ?4,
             warm = warm - ?5, retries = retries - ?6 WHERE agent = ?1",
            params![job.agent.as_str(), completed, failed, cancelled, warm, retries],
        )
        .and_then(|_| connection.execute("DELETE FROM ends WHERE event_seq = ?1", [event]))
        .map(|_| ())
        .map_err(HistoryError::sql("copy"))
}

fn counts(job: &Job) -> [i64; 5] {
    let is = |status| i64::from(job.status == status);
    let (completed, failed) = (is(JobStatus::Completed), is(JobStatus::Failed));
    let warm = if job.warm { completed } else { 0 };
    let retries = if job.retry_count > 0 { completed + failed } else { 0 };
    [completed, failed, is(JobStatus::Cancelled), warm, retries]
}

/// Drops the oldest ends.
pub(crate) fn drop_ends(connection: &Connection) -> Result<(), HistoryError> {
    connection
        .execute(
            "DELETE FROM ends WHERE event_seq <=
             (SELECT event_seq FROM ends ORDER BY event_seq DESC LIMIT 1 OFFSET ?1)",
            [ENDS_MAX],
        )
        .map(|_| ())
        .map_err(HistoryError::sql("prune"))
}

/// Reads everything as of one moment.
pub(crate) fn read(connection: &Connection) -> Result<Totals, HistoryError> {
    let sql = || HistoryError::sql("read");
    let view = connection.unchecked_transaction().map_err(sql())?;
    let through: i64 = view.query_row("SELECT watermark FROM progress", [], |row| row.get(0)).map_err(sql())?;
    let mut totals = Totals { through: EventSeq(through.unsigned_abs()), ..Totals::default() };
    let mut query = view.prepare_cached("SELECT * FROM totals ORDER BY agent").map_err(sql())?;
    let mut rows = query.query([]).map_err(sql())?;
    while let Some(row) = rows.next().map_err(sql())? {
        let count = |at: usize| row.get(at).map(i64::unsigned_abs).map_err(sql());
        totals.agents.push(AgentTotals {
            agent: name(row)?,
            completed: count(1)?,
            failed: count(2)?,
            cancelled: count(3)?,
            warm: count(4)?,
            retries: count(5)?,
        });
    }
    let mut query =
        view.prepare_cached("SELECT agent, event_seq, at, execution FROM ends ORDER BY event_seq").map_err(sql())?;
    let mut rows = query.query([]).map_err(sql())?;
    while let Some(row) = rows.next().map_err(sql())? {
        let (event, at, execution): (i64, i64, i64) =
            (row.get(1).map_err(sql())?, row.get(2).map_err(sql())?, row.get(3).map_err(sql())?);
        totals.ends.push(End {
            event: EventSeq(event.unsigned_abs()),
            agent: name(row)?,
            at: Timestamp(at),
            execution: Micros(execution.unsigned_abs()),
        });
    }
    Ok(totals)
}

/// The agent of a row's first column.
fn name(row: &rusqlite::Row<'_>) -> Result<AgentName, HistoryError> {
    let name = row.get_ref(0).and_then(|name| Ok(name.as_str()?)).map_err(HistoryError::sql("read"))?;
    AgentName::from_str(name).map_err(|_| HistoryError::Field("the name of an agent"))
}
