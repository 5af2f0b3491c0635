//! Retention: old events are deleted by count, old jobs by age.
//!
//! The age of a job is computed from the times of its events, which are the leaders' wall clocks. All members delete
//! the same jobs, so a wrong time must not delete jobs early: event times count only as far as this process has run. If
//! they jump ahead, jobs are kept longer than configured until the next start.

use std::sync::Arc;
use std::time::Duration;

use atlas_types::{EventSeq, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use crate::ids::RecentIds;
use crate::rows::{column, remove_jobs};
use crate::{HistoryError, KeepRule};

/// The most jobs that are dropped in one transaction, of all namespaces together.
const DROPPED_MAX: i64 = 4_096;
/// How often jobs are dropped during the time that a job is kept.
const DROPS_PER_TIME: u32 = 24;

/// After so many events, but not sooner than after a second, or after so much time, namespaces are looked at again.
const LOOK_EVENTS: u64 = 1_024;
const LOOK_PAUSE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Decides when jobs have been kept long enough.
pub(crate) struct Retention {
    /// How long an ended job is kept; none for ever.
    kept: Option<Duration>,
    /// The time of the first event that this process wrote, and the monotonic time at that moment.
    began: Option<(Timestamp, Duration)>,
    /// When jobs were last dropped.
    dropped_at: Timestamp,
    /// What is kept of single namespaces.
    namespaces: Arc<[KeepRule]>,
    /// The event and the time up to which their jobs were dropped; none if they have to be looked at again.
    looked_at: Option<(EventSeq, Timestamp)>,
}

impl Retention {
    pub(crate) fn new(kept: Option<Duration>) -> Self {
        let namespaces = [].into();
        Self { kept, began: None, dropped_at: Timestamp::NOT_YET, namespaces, looked_at: None }
    }

    /// Sets what is kept of single namespaces.
    pub(crate) fn keep(&mut self, kept: &Arc<[KeepRule]>) {
        if self.namespaces != *kept {
            self.namespaces = Arc::clone(kept);
            self.looked_at = None;
        }
    }

    /// The time of an event, as far as this process has run.
    fn time(&mut self, at: Timestamp, now: Duration) -> Timestamp {
        let (began, since) = *self.began.get_or_insert((at, now));
        at.min(Timestamp(began.0.saturating_add(micros(now.saturating_sub(since)))))
    }

    /// If a check is due, drops jobs of which their namespaces keep no more. Events keep their numbers. Returns the argument for
    /// [`Self::dropped_of_namespaces`], to be passed once the transaction is committed.
    pub(crate) fn drop_of_namespaces(
        &mut self,
        (connection, ids): (&Connection, &RecentIds),
        at: Option<Timestamp>,
        through: EventSeq,
        now: Duration,
    ) -> Result<Option<(EventSeq, Timestamp)>, HistoryError> {
        if self.namespaces.is_empty() {
            return Ok(None);
        }
        // Without an event there is no time, and only counts are looked at.
        let now = at.map_or(Timestamp(i64::MIN), |at| self.time(at, now));
        let is_due = self.looked_at.is_none_or(|(event, time)| {
            let (events, passed) = (through.0.saturating_sub(event.0), now.0.saturating_sub(time.0));
            (events >= LOOK_EVENTS && passed >= micros(LOOK_PAUSE)) || passed >= micros(LOOK_EVERY)
        });
        if !is_due {
            return Ok(None);
        }
        let mut left = DROPPED_MAX;
        for kept in self.namespaces.iter() {
            left -= drop_of_namespace((connection, ids), kept, (now, left))?;
            if left <= 0 {
                // The next transaction goes on.
                return Ok(None);
            }
        }
        Ok(Some((through, now)))
    }

    /// Records how far the jobs of namespaces are dropped.
    pub(crate) fn dropped_of_namespaces(&mut self, looked_at: Option<(EventSeq, Timestamp)>) {
        self.looked_at = looked_at.or(self.looked_at);
    }

    /// If a check is due, drops jobs that are old enough at `at`, the time of the latest event. Returns the argument
    /// for [`Self::dropped`], to be passed once the transaction is committed.
    pub(crate) fn drop_jobs(
        &mut self,
        (connection, ids): (&Connection, &RecentIds),
        at: Timestamp,
        now: Duration,
    ) -> Result<Option<Timestamp>, HistoryError> {
        let Some(kept) = self.kept else { return Ok(None) };
        let now = self.time(at, now);
        if now.0.saturating_sub(self.dropped_at.0) < micros(kept / DROPS_PER_TIME) {
            return Ok(None);
        }
        let is_done = drop_jobs(connection, ids, Timestamp(now.0.saturating_sub(micros(kept))))?;
        Ok(is_done.then_some(now))
    }

    /// Records the time up to which all old jobs are dropped.
    pub(crate) fn dropped(&mut self, at: Option<Timestamp>) {
        self.dropped_at = at.unwrap_or(self.dropped_at);
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Drops the oldest jobs that ended before `before`, with their artifact references and all events up to them. True if
/// no more are left to drop.
fn drop_jobs(connection: &Connection, ids: &RecentIds, before: Timestamp) -> Result<bool, HistoryError> {
    let sql = || HistoryError::sql("prune");
    // Event order and time order are the same.
    let oldest =
        "SELECT max(event_seq), count(*) FROM (SELECT event_seq, completed_at FROM jobs ORDER BY event_seq LIMIT ?2)
        WHERE completed_at < ?1";
    let (last, count): (Option<i64>, i64) =
        connection.query_row(oldest, [before.0, DROPPED_MAX], |row| Ok((row.get(0)?, row.get(1)?))).map_err(sql())?;
    let Some(last) = last else { return Ok(true) };
    remove_jobs(connection, ids, "event_seq <= ?1", [last])?;
    let through = EventSeq(last.unsigned_abs());
    drop_events(connection, through)?;
    raise_floor(connection, through)?;
    Ok(count < DROPPED_MAX)
}

/// Drops jobs of one namespace that are too old now, or too many, the oldest first, at most `most`. Returns how many.
fn drop_of_namespace(
    (connection, ids): (&Connection, &RecentIds),
    kept: &KeepRule,
    (now, most): (Timestamp, i64),
) -> Result<i64, HistoryError> {
    let sql = || HistoryError::sql("prune");
    let namespace = kept.namespace.as_str();
    let mut last = None;
    if let Some(max) = kept.jobs_max {
        let beyond = "SELECT event_seq FROM jobs WHERE namespace = ?1 ORDER BY event_seq DESC LIMIT 1 OFFSET ?2";
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let found = connection.query_row(beyond, params![namespace, max], |row| row.get(0)).optional();
        last = found.map_err(sql())?;
    }
    if let Some(age) = kept.age_max {
        let oldest = "SELECT max(event_seq) FROM
            (SELECT event_seq, completed_at FROM jobs WHERE namespace = ?1 ORDER BY event_seq LIMIT ?3)
            WHERE completed_at < ?2";
        let before = now.0.saturating_sub(micros(age));
        let found = connection.query_row(oldest, params![namespace, before, most], |row| row.get(0));
        last = last.max(found.map_err(sql())?);
    }
    let Some(last): Option<i64> = last else { return Ok(0) };
    let some = "SELECT max(event_seq), count(*) FROM
        (SELECT event_seq FROM jobs WHERE namespace = ?1 AND event_seq <= ?2 ORDER BY event_seq LIMIT ?3)";
    let (last, count): (Option<i64>, i64) = connection
        .query_row(some, params![namespace, last, most], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(sql())?;
    let Some(last) = last else { return Ok(0) };
    remove_jobs(connection, ids, "namespace = ?1 AND event_seq <= ?2", (namespace, last))?;
    Ok(count)
}

/// Drops events up to `through`.
pub(crate) fn drop_events(connection: &Connection, through: EventSeq) -> Result<(), HistoryError> {
    connection
        .execute("DELETE FROM events WHERE last_seq <= ?1", [column(through)])
        .and_then(|_| {
            connection.execute(
                "UPDATE progress SET floor = max(floor, coalesce((SELECT first_seq - 1 FROM events ORDER BY last_seq LIMIT 1), 0))",
                [],
            )
        })
        .map(|_| ())
        .map_err(HistoryError::sql("prune"))
}

pub(crate) fn raise_floor(connection: &Connection, floor: EventSeq) -> Result<(), HistoryError> {
    connection
        .execute("UPDATE progress SET floor = max(floor, ?1)", [column(floor)])
        .map(|_| ())
        .map_err(HistoryError::sql("write"))
}
