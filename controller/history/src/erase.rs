//! Erasing what was sent to and made by ended jobs: in their rows, in their search words and artifact references, and in
//! the stored events that contain them.
//!
//! Every erasure is noted, because a part of another member's history that fills a gap later may have been read before
//! that member erased the same.

use std::collections::BTreeMap;

use atlas_format::{decode_job, encode_job};
use atlas_types::{Event, EventSeq, Job, JobId, Namespace};
use rusqlite::{Connection, OptionalExtension, params};

use crate::ids::RecentIds;
use crate::reader::blob_of;
use crate::record::{decode_event, id_column, id_of, split_event, without_job};
use crate::rows::{column, index, refer, remove_jobs};
use crate::{HistoryError, sum};

/// The most blobs that are changed in memory at once.
const CHANGED_MAX: usize = 64;

/// Added in version 6.
pub(crate) const TABLES: &str = "
CREATE TABLE erased (
    event_seq INTEGER PRIMARY KEY, -- the event that asked for it
    namespace TEXT NOT NULL,
    id        INTEGER              -- the job; none for all that ended before
);
CREATE INDEX erased_of ON erased (namespace, id);
";

/// Erasures, each with the event that asked for it: what happened later is not erased.
#[derive(Default)]
struct Marks {
    jobs: BTreeMap<JobId, EventSeq>,
    namespaces: BTreeMap<Namespace, EventSeq>,
    /// Jobs of these namespaces, for events that contain only a job's id.
    known: BTreeMap<JobId, EventSeq>,
}

impl Marks {
    fn note(&mut self, event: EventSeq, namespace: &Namespace, job: Option<JobId>) {
        let mark = match job {
            Some(id) => self.jobs.entry(id).or_default(),
            None => self.namespaces.entry(namespace.clone()).or_default(),
        };
        *mark = event.max(*mark);
    }

    /// Whether the event with this number contains something of an erased job.
    fn covers(&mut self, seq: EventSeq, event: &Event) -> bool {
        let before = |mark: Option<&EventSeq>| mark.is_some_and(|mark| seq < *mark);
        match event {
            Event::Job { job, .. } => {
                if let Some(mark) = self.namespaces.get(&job.namespace) {
                    self.known.insert(job.id, *mark);
                }
                before(self.jobs.get(&job.id)) || before(self.namespaces.get(&job.namespace))
            }
            Event::QuestionAsked { question } | Event::QuestionEnded { question } => {
                before(self.jobs.get(&question.job)) || before(self.namespaces.get(&question.namespace))
            }
            Event::StepsRecorded { job, .. } | Event::StepsFolded { job, .. } | Event::MessageDelivered { job, .. } => {
                before(self.jobs.get(job)) || before(self.known.get(job))
            }
            Event::Run { run, .. } => before(self.namespaces.get(&run.namespace)),
            Event::ObjectPut { object } | Event::ObjectDeleted { object } => object
                .writer()
                .is_some_and(|job| before(self.jobs.get(&job)) || before(self.namespaces.get(&object.key.namespace))),
            _ => false,
        }
    }
}

/// Erases one job, or all jobs of a namespace that ended before `event`. All events before it are in the tables.
pub(crate) fn erase(
    connection: &Connection,
    ids: &RecentIds,
    event: EventSeq,
    namespace: &Namespace,
    job: Option<JobId>,
) -> Result<(), HistoryError> {
    let sql = || HistoryError::sql("erase");
    note(connection, event, namespace, job)?;
    let mut marks = Marks::default();
    marks.note(event, namespace, job);
    let ended_by = match job {
        Some(id) => Some(ids.event_of(connection, id_column(id))?),
        None => None,
    };
    let condition = match ended_by {
        Some(_) => "namespace = ?1 AND event_seq < ?2 AND event_seq = ?3",
        None => "namespace = ?1 AND event_seq < ?2 AND ?3 IS NULL",
    };
    let values = params![namespace.as_str(), column(event), ended_by.flatten()];
    if ended_by.is_none() {
        let mut query = connection.prepare(&format!("SELECT id FROM jobs WHERE {condition}")).map_err(sql())?;
        let mut rows = query.query(values).map_err(sql())?;
        while let Some(row) = rows.next().map_err(sql())? {
            marks.known.insert(id_of(row.get(0).map_err(sql())?), event);
        }
        remove_jobs(connection, ids, condition, values)?;
    } else {
        let row = format!("SELECT event_seq, job FROM jobs WHERE {condition}");
        let found = connection
            .query_row(&row, values, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))
            .optional()
            .map_err(sql())?;
        let Some((ended_by, bytes)) = found else { return Ok(()) };
        match decode_job(&bytes) {
            Ok(old) => erase_row(connection, ended_by, &old)?,
            // A row that nobody can read is removed: an error here would be tried again for ever.
            Err(_) => remove_jobs(connection, ids, "event_seq = ?1", [ended_by])?,
        }
    }
    erase_events(connection, (0, column(event)), &mut marks)
}

/// Erases again what a part of another history has brought: events from `first` to `last`, and these jobs.
pub(crate) fn erase_part(
    connection: &Connection,
    ids: &RecentIds,
    (first, last): (EventSeq, EventSeq),
    jobs: &[(EventSeq, Job)],
) -> Result<(), HistoryError> {
    let sql = || HistoryError::sql("erase");
    let mut marks = Marks::default();
    let mut query =
        connection.prepare_cached("SELECT event_seq, namespace, id FROM erased WHERE event_seq > ?1").map_err(sql())?;
    let mut rows = query.query([column(first)]).map_err(sql())?;
    while let Some(row) = rows.next().map_err(sql())? {
        let (event, namespace, id): (i64, String, Option<i64>) =
            (row.get(0).map_err(sql())?, row.get(1).map_err(sql())?, row.get(2).map_err(sql())?);
        let namespace = Namespace::new(&namespace).map_err(|_| HistoryError::Field("a namespace"))?;
        marks.note(EventSeq(event.unsigned_abs()), &namespace, id.map(id_of));
    }
    if marks.jobs.is_empty() && marks.namespaces.is_empty() {
        return Ok(());
    }
    for (event, job) in jobs {
        let is_before = |mark: Option<&EventSeq>| mark.is_some_and(|mark| event < mark);
        if is_before(marks.namespaces.get(&job.namespace)) {
            remove_jobs(connection, ids, "event_seq = ?1", [column(*event)])?;
        } else if is_before(marks.jobs.get(&job.id)) {
            erase_row(connection, column(*event), job)?;
        }
    }
    erase_events(connection, (column(first), column(last)), &mut marks)
}

/// Notes an erasure.
pub(crate) fn note(
    connection: &Connection,
    event: EventSeq,
    namespace: &Namespace,
    job: Option<JobId>,
) -> Result<(), HistoryError> {
    connection
        .execute(
            "INSERT OR IGNORE INTO erased VALUES (?1, ?2, ?3)",
            params![column(event), namespace.as_str(), job.map(id_column)],
        )
        .map(|_| ())
        .map_err(HistoryError::sql("erase"))
}

/// Replaces the row of an ended job.
fn erase_row(connection: &Connection, event: i64, old: &Job) -> Result<(), HistoryError> {
    let new = old.without_payloads();
    let body = encode_job(&new);
    let place = i64::try_from(old.queue_seq).unwrap_or(i64::MAX);
    connection
        .execute("UPDATE jobs SET job = ?2, sum = ?3 WHERE event_seq = ?1", params![event, body, sum::of(event, &body)])
        .and_then(|_| connection.execute("DELETE FROM words WHERE rowid = ?1", [place]))
        .and_then(|_| connection.execute("DELETE FROM artifacts WHERE event_seq = ?1", [event]))
        .map_err(HistoryError::sql("erase"))?;
    refer(connection, event, &new)?;
    index(connection, &new)
}

/// Leaves only number and time of the stored events that contain something erased. Reads every stored event in the range.
fn erase_events(connection: &Connection, (first, last): (i64, i64), marks: &mut Marks) -> Result<(), HistoryError> {
    let sql = || HistoryError::sql("erase");
    let mut query = connection
        .prepare("SELECT last_seq, body, sum FROM events WHERE last_seq >= ?1 AND first_seq <= ?2 ORDER BY last_seq")
        .map_err(sql())?;
    let mut rows = query.query([first, last]).map_err(sql())?;
    let mut changed = Vec::new();
    while let Some(row) = rows.next().map_err(sql())? {
        let key: i64 = row.get(0).map_err(sql())?;
        match blob_of(connection, row).and_then(|blob| without_erased(blob, marks)) {
            Ok(Some(body)) => changed.push((key, body)),
            Ok(None) => {}
            Err(error @ HistoryError::Sql { .. }) => return Err(error),
            // Reading them fails as before, and an error here would be tried again for ever.
            Err(error) => tracing::warn!(%error, "events up to {key} cannot be read, and were not erased"),
        }
        // What was read is written before memory grows.
        if changed.len() >= CHANGED_MAX {
            break;
        }
    }
    let is_done = changed.len() < CHANGED_MAX;
    let next = changed.last().map_or(last, |(key, _)| key + 1);
    drop(rows);
    drop(query);
    for (key, body) in changed {
        connection
            .execute(
                "UPDATE events SET body = ?2, sum = ?3 WHERE last_seq = ?1",
                params![key, body, sum::of(key, &body)],
            )
            .map_err(sql())?;
    }
    if is_done { Ok(()) } else { erase_events(connection, (next, last), marks) }
}

/// The events of a blob without what was erased; none if nothing was.
fn without_erased(mut blob: &[u8], marks: &mut Marks) -> Result<Option<Vec<u8>>, HistoryError> {
    let (mut body, mut is_changed) = (Vec::with_capacity(blob.len()), false);
    while !blob.is_empty() {
        let raw = split_event(&mut blob)?;
        // The event that ended a job refers to the job's row.
        let event = decode_event(&mut &raw.bytes[..], &mut |_| Ok(None))?.event;
        if event.is_some_and(|event| marks.covers(raw.seq, &event)) {
            is_changed = true;
            body.extend_from_slice(&without_job(raw.bytes));
        } else {
            body.extend_from_slice(raw.bytes);
        }
    }
    Ok(is_changed.then_some(body))
}
