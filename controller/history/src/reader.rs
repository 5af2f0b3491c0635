//! The queries. They block, so the caller runs them on blocking threads.

use std::cmp::Reverse;

use atlas_format::decode_job;
use atlas_types::{Digest, EventSeq, Job, JobId, JobStatus};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::ids::{RecentIds, has_its_time};
use crate::record::{decode_event, id_column, id_of};
use crate::rows::column;
use crate::{HistoryError, JobFilter, JobKey, StoredEvent, sum, words};

fn read<T>(result: rusqlite::Result<T>) -> Result<T, HistoryError> {
    result.map_err(HistoryError::sql("read"))
}

/// Decodes the job of a row of `event_seq, job, sum`.
fn job_of(connection: &Connection) -> impl Fn(&Row<'_>) -> rusqlite::Result<Result<Job, HistoryError>> {
    move |row| {
        let (event, body, sum) = (row.get(0)?, row.get_ref(1)?.as_bytes()?, row.get(2)?);
        let checked = sum::check(connection, sum::Row::Job, event, body, sum);
        Ok(checked.and_then(|()| decode_job(body).map_err(HistoryError::Record)))
    }
}

pub(crate) fn job(connection: &Connection, ids: &RecentIds, id: JobId) -> Result<Option<Job>, HistoryError> {
    let Some(event) = ids.event_of(connection, id_column(id))? else { return Ok(None) };
    let mut query = read(connection.prepare_cached("SELECT event_seq, job, sum FROM jobs WHERE event_seq = ?1"))?;
    read(query.query_row([event], job_of(connection)).optional())?.transpose()
}

pub(crate) fn jobs_between(
    connection: &Connection,
    ids: &RecentIds,
    (first, last): (JobId, JobId),
    limit: usize,
) -> Result<Vec<JobId>, HistoryError> {
    let found = ids.between(connection, (id_column(first), id_column(last)), limit)?;
    Ok(found.into_iter().map(id_of).collect())
}

/// All places in the order of submission.
const EVERYWHERE: (i64, i64) = (0, i64::MAX);

/// The places in the order of submission between which a time lies. They may reach over a few jobs more, because only some jobs have
/// their time in the index.
fn places(connection: &Connection, filter: &JobFilter) -> Result<(i64, i64), HistoryError> {
    let place = |sql: &str, time: i64| -> Result<Option<i64>, HistoryError> {
        read(read(connection.prepare_cached(sql))?.query_row([time], |row| row.get(0)).optional())
    };
    let (mut first, mut last) = EVERYWHERE;
    if let Some(since) = filter.since {
        first = place(LAST_BEFORE, since.0)?.map_or(first, |place| place + 1);
    }
    if let Some(until) = filter.until {
        last = place(FIRST_AFTER, until.0)?.map_or(last, |place| place - 1);
    }
    if let Some(before) = filter.before {
        last = last.min(i64::try_from(before).unwrap_or(i64::MAX) - 1);
    }
    Ok((first, last))
}

const LAST_BEFORE: &str = concat!(
    "SELECT queue_seq FROM jobs WHERE created_at < ?1 AND ",
    has_its_time!(),
    " ORDER BY created_at DESC, queue_seq DESC LIMIT 1"
);
const FIRST_AFTER: &str = concat!(
    "SELECT queue_seq FROM jobs WHERE created_at > ?1 AND ",
    has_its_time!(),
    " ORDER BY created_at, queue_seq LIMIT 1"
);

/// The statements of a list, and their values. There is no index without a status, so a list of a namespace without one is put together
/// from those of each.
fn list_statements(filter: &JobFilter, places: (i64, i64)) -> Vec<(String, Vec<Value>)> {
    let is_joined = !filter.words.is_empty() || !filter.labels.is_empty();
    if filter.namespace.is_none() || filter.status.is_some() || filter.by_end || is_joined {
        return vec![list_statement(filter, places)];
    }
    let ended = JobStatus::ALL.into_iter().filter(|status| status.is_terminal());
    ended.map(|status| list_statement(&JobFilter { status: Some(status), ..filter.clone() }, places)).collect()
}

/// The statement of a list, and its values.
///
/// A text is looked up first, then the first label; `CROSS JOIN` keeps that order.
fn list_statement(filter: &JobFilter, (first, last): (i64, i64)) -> (String, Vec<Value>) {
    let mut wanted: Vec<(&str, Value)> = Vec::new();
    let mut labels = filter.labels.iter();
    let (tables, place) = if !filter.words.is_empty() {
        wanted.push(("words MATCH ?", words::question(&filter.words).into()));
        ("words CROSS JOIN jobs ON jobs.queue_seq = words.rowid", "words.rowid")
    } else if let Some((key, value)) = labels.next() {
        if let Some(namespace) = &filter.namespace {
            wanted.push(("labels.namespace = ?", namespace.as_str().to_owned().into()));
        }
        wanted.push(("labels.key = ?", key.clone().into()));
        wanted.push(("labels.value = ?", value.clone().into()));
        ("labels CROSS JOIN jobs ON jobs.queue_seq = labels.queue_seq", "labels.queue_seq")
    } else {
        ("jobs", "jobs.queue_seq")
    };
    if let Some(namespace) = &filter.namespace {
        // Jobs that are found by words or labels are read by their place, and the namespace is only compared.
        let condition = if tables == "jobs" { "jobs.namespace = ?" } else { "+jobs.namespace = ?" };
        wanted.push((condition, namespace.as_str().to_owned().into()));
    }
    if let Some(status) = filter.status {
        wanted.push(("status = ?", status.as_str().to_owned().into()));
    }
    if let Some(agent) = &filter.agent {
        wanted.push(("agent = ?", agent.as_str().to_owned().into()));
    }
    if let Some(since) = filter.since {
        wanted.push(("created_at >= ?", since.0.into()));
    }
    if let Some(until) = filter.until {
        wanted.push(("created_at <= ?", until.0.into()));
    }
    if filter.by_end {
        wanted.push(("status <> ?", JobStatus::Cancelled.as_str().to_owned().into()));
    }
    let mut conditions: Vec<String> = wanted.iter().map(|(condition, _)| (*condition).to_owned()).collect();
    let mut values: Vec<Value> = wanted.into_iter().map(|(_, value)| value).collect();
    for (key, value) in labels {
        conditions.push(
            "EXISTS (SELECT 1 FROM labels AS other WHERE other.namespace = jobs.namespace AND other.key = ? \
             AND other.value = ? AND other.queue_seq = jobs.queue_seq)"
                .to_owned(),
        );
        values.extend([key.clone().into(), value.clone().into()]);
    }
    if (first, last) != EVERYWHERE {
        conditions.push(format!("{place} BETWEEN ? AND ?"));
        values.extend([first.into(), last.into()]);
    }
    let order = if filter.by_end { "jobs.event_seq" } else { place };
    let conditions = if conditions.is_empty() { "1".to_owned() } else { conditions.join(" AND ") };
    let sql = format!(
        "SELECT jobs.event_seq, jobs.id, jobs.queue_seq FROM {tables} WHERE {conditions} ORDER BY {order} DESC LIMIT ?"
    );
    values.push(i64::try_from(filter.limit).unwrap_or(i64::MAX).into());
    (sql, values)
}

pub(crate) fn list(connection: &Connection, filter: &JobFilter) -> Result<Vec<JobKey>, HistoryError> {
    let statements = list_statements(filter, places(connection, filter)?);
    let is_merged = statements.len() > 1;
    let mut keys = Vec::new();
    for (sql, values) in statements {
        let mut query = read(connection.prepare_cached(&sql))?;
        let mut rows = read(query.query(rusqlite::params_from_iter(values)))?;
        while let Some(row) = read(rows.next())? {
            let (event, queue_seq): (i64, i64) = (read(row.get(0))?, read(row.get(2))?);
            keys.push(JobKey {
                event: EventSeq(event.unsigned_abs()),
                id: id_of(read(row.get(1))?),
                queue_seq: queue_seq.unsigned_abs(),
            });
        }
    }
    if is_merged {
        keys.sort_unstable_by_key(|key| Reverse(key.queue_seq));
        keys.truncate(filter.limit);
    }
    Ok(keys)
}

pub(crate) fn ended_by(connection: &Connection, events: &[EventSeq]) -> Result<Vec<Job>, HistoryError> {
    let mut query = read(connection.prepare_cached("SELECT event_seq, job, sum FROM jobs WHERE event_seq = ?1"))?;
    let mut jobs = Vec::with_capacity(events.len());
    for event in events {
        jobs.extend(read(query.query_row([column(*event)], job_of(connection)).optional())?.transpose()?);
    }
    Ok(jobs)
}

/// Events up to this one cannot be read, because they were dropped or never received.
fn floor(view: &Connection) -> Result<i64, HistoryError> {
    let sql = "SELECT max(floor, coalesce((SELECT max(through) FROM gaps), 0)) FROM progress";
    read(view.query_row(sql, [], |row| row.get(0)))
}

pub(crate) fn events(connection: &Connection, after: EventSeq, limit: usize) -> Result<Vec<StoredEvent>, HistoryError> {
    // One transaction, so that the floor, the blobs and the jobs come from the same state of the file.
    let view = read(connection.unchecked_transaction())?;
    let floor = floor(&view)?;
    if column(after) < floor {
        return Err(HistoryError::Gone { earliest: EventSeq(floor as u64).next() });
    }
    let mut ended = |seq: EventSeq| {
        let mut query = read(view.prepare_cached("SELECT event_seq, job, sum FROM jobs WHERE event_seq = ?1"))?;
        read(query.query_row([column(seq)], job_of(&view)).optional())?.transpose()
    };
    let mut blobs =
        read(view.prepare_cached("SELECT last_seq, body, sum FROM events WHERE last_seq > ?1 ORDER BY last_seq"))?;
    let mut rows = read(blobs.query([column(after)]))?;
    let mut found = Vec::new();
    while let Some(row) = read(rows.next())? {
        let mut blob = blob_of(&view, row)?;
        while !blob.is_empty() && found.len() < limit {
            let event = decode_event(&mut blob, &mut ended)?;
            if event.seq > after {
                found.push(event);
            }
        }
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

/// The events of a row of `last_seq, body, sum`.
pub(crate) fn blob_of<'r>(connection: &Connection, row: &'r Row<'_>) -> Result<&'r [u8], HistoryError> {
    let blob = read(row.get_ref(1))?.as_bytes().map_err(|_| HistoryError::Field("events"))?;
    sum::check(connection, sum::Row::Events, read(row.get(0))?, blob, read(row.get(2))?)?;
    Ok(blob)
}

pub(crate) fn artifacts(
    connection: &Connection,
    after: EventSeq,
    limit: usize,
) -> Result<Vec<(EventSeq, Digest)>, HistoryError> {
    // The artifacts of one event are returned together. A job refers to at most three: its input, its output and its
    // stream.
    let limit = limit.max(ARTIFACTS_OF_JOB_MAX + 1);
    let mut query = read(
        connection
            .prepare_cached("SELECT event_seq, digest FROM artifacts WHERE event_seq > ?1 ORDER BY event_seq LIMIT ?2"),
    )?;
    let rows = query.query_map([column(after), i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
        let event: i64 = row.get(0)?;
        Ok((EventSeq(event.unsigned_abs()), Digest(row.get(1)?)))
    });
    let mut found: Vec<(EventSeq, Digest)> = read(rows.and_then(Iterator::collect))?;
    if let (true, Some((last, _))) = (found.len() == limit, found.last().copied()) {
        found.retain(|(event, _)| *event != last);
    }
    Ok(found)
}

/// The most artifacts to which one job refers.
const ARTIFACTS_OF_JOB_MAX: usize = 3;

pub(crate) fn refers(connection: &Connection, digests: &[Digest]) -> Result<Vec<bool>, HistoryError> {
    let mut query = read(connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM artifacts WHERE digest = ?1)"))?;
    digests.iter().map(|digest| read(query.query_row([digest.0], |row| row.get(0)))).collect()
}

#[cfg(test)]
mod tests {
    use atlas_env::Env;
    use atlas_types::{AgentName, Namespace};
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{Options, SqliteHistory, schema};

    /// How SQLite answers each of these statements.
    fn check(statements: &[(String, Vec<Value>)], expected: &Expect) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("history.sqlite");
        let _history = SqliteHistory::open(Options::new(path.clone()), Env::system(), |_| ()).expect("opens");
        let connection = schema::open_reader(&path).expect("opens");
        let mut told = String::new();
        for (sql, values) in statements {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a plan");
            let steps = plan.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3));
            for step in steps.expect("steps") {
                told.push_str(&format!("{}\n", step.expect("a text")));
            }
        }
        expected.assert_eq(&told);
    }

    fn check_list(change: impl FnOnce(&mut JobFilter), expected: &Expect) {
        let mut filter =
            JobFilter { namespace: Some(Namespace::default_namespace()), limit: 50, ..JobFilter::default() };
        change(&mut filter);
        let bounded = filter.before.is_some() || filter.since.is_some() || filter.until.is_some();
        check(&list_statements(&filter, if bounded { (7, 9) } else { EVERYWHERE }), expected);
    }

    fn agent() -> Option<AgentName> {
        Some("echo".parse().expect("a name"))
    }

    fn label(key: &str) -> (String, String) {
        (key.to_owned(), "blue".to_owned())
    }

    #[test]
    fn lists_read_what_they_show_in_its_order_and_sort_nothing() {
        check_list(
            |_| (),
            &expect![[r#"
            SEARCH jobs USING INDEX jobs_of_status (namespace=? AND status=?)
            SEARCH jobs USING INDEX jobs_of_status (namespace=? AND status=?)
            SEARCH jobs USING INDEX jobs_of_status (namespace=? AND status=?)
        "#]],
        );
        check_list(
            |filter| filter.agent = agent(),
            &expect![[r#"
            SEARCH jobs USING INDEX jobs_of_agent_and_status (namespace=? AND agent=? AND status=?)
            SEARCH jobs USING INDEX jobs_of_agent_and_status (namespace=? AND agent=? AND status=?)
            SEARCH jobs USING INDEX jobs_of_agent_and_status (namespace=? AND agent=? AND status=?)
        "#]],
        );
        check_list(
            |filter| filter.status = Some(JobStatus::Failed),
            &expect![[r#"
            SEARCH jobs USING INDEX jobs_of_status (namespace=? AND status=?)
        "#]],
        );
        check_list(
            |filter| (filter.agent, filter.status) = (agent(), Some(JobStatus::Failed)),
            &expect![[r#"
            SEARCH jobs USING INDEX jobs_of_agent_and_status (namespace=? AND agent=? AND status=?)
        "#]],
        );
        check_list(
            |filter| filter.namespace = None,
            &expect![[r#"
            SCAN jobs USING INDEX jobs_by_queue_seq
        "#]],
        );
    }

    #[test]
    fn pages_and_times_begin_at_their_place() {
        check_list(
            |filter| filter.before = Some(10),
            &expect![[r#"
            SEARCH jobs USING INDEX jobs_of_status (namespace=? AND status=? AND queue_seq>? AND queue_seq<?)
            SEARCH jobs USING INDEX jobs_of_status (namespace=? AND status=? AND queue_seq>? AND queue_seq<?)
            SEARCH jobs USING INDEX jobs_of_status (namespace=? AND status=? AND queue_seq>? AND queue_seq<?)
        "#]],
        );
        check_list(
            |filter| (filter.agent, filter.before) = (agent(), Some(10)),
            &expect![[r#"
            SEARCH jobs USING INDEX jobs_of_agent_and_status (namespace=? AND agent=? AND status=? AND queue_seq>? AND queue_seq<?)
            SEARCH jobs USING INDEX jobs_of_agent_and_status (namespace=? AND agent=? AND status=? AND queue_seq>? AND queue_seq<?)
            SEARCH jobs USING INDEX jobs_of_agent_and_status (namespace=? AND agent=? AND status=? AND queue_seq>? AND queue_seq<?)
        "#]],
        );
        check_list(
            |filter| filter.until = Some(atlas_types::Timestamp(5)),
            &expect![[r#"
            SEARCH jobs USING INDEX jobs_of_status (namespace=? AND status=? AND queue_seq>? AND queue_seq<?)
            SEARCH jobs USING INDEX jobs_of_status (namespace=? AND status=? AND queue_seq>? AND queue_seq<?)
            SEARCH jobs USING INDEX jobs_of_status (namespace=? AND status=? AND queue_seq>? AND queue_seq<?)
        "#]],
        );
        let bound = |sql: &str| (sql.to_owned(), vec![Value::Integer(5)]);
        check(
            &[bound(LAST_BEFORE), bound(FIRST_AFTER)],
            &expect![[r#"
            SEARCH jobs USING COVERING INDEX jobs_by_time (created_at<?)
            SEARCH jobs USING COVERING INDEX jobs_by_time (created_at>?)
        "#]],
        );
    }

    /// Other namespaces may have all other places, and keep nothing of them.
    #[test]
    fn times_are_near_their_places_whatever_pattern_is_left() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("history.sqlite");
        let _history = SqliteHistory::open(Options::new(path.clone()), Env::system(), |_| ()).expect("opens");
        let file = Connection::open(&path).expect("opens");
        let insert = "WITH RECURSIVE each(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM each WHERE n < 9999)
            INSERT INTO jobs (event_seq, id, namespace, agent, status, queue_seq, created_at, completed_at, job)
            SELECT n + 1, n, 'default', 'echo', 'completed', ?1 + n * ?2, ?1 + n * ?2, 0, x'' FROM each";
        // Also behind the first four thousand million jobs.
        for start in [1_i64, 5_000_000_001] {
            for stride in [1_i64, 2, 3, 64, 69, 4_096] {
                file.execute("DELETE FROM jobs", []).expect("deletes");
                file.execute(insert, [start, stride]).expect("writes");
                let middle = start + 5_000 * stride;
                let at = Some(atlas_types::Timestamp(middle));
                let narrow = JobFilter { since: at, until: at, ..JobFilter::default() };
                let (first, last) = places(&file, &narrow).expect("reads");
                assert!((first..=last).contains(&middle), "{first} to {last} from {start} by {stride}");
                let read = (last.saturating_sub(first)) / stride;
                assert!(read < 1_500, "{read} rows from {start} by {stride}");
            }
        }
    }

    #[test]
    fn labels_and_words_are_looked_up() {
        check_list(
            |filter| filter.labels = vec![label("team")],
            &expect![[r#"
            SEARCH labels USING PRIMARY KEY (namespace=? AND key=? AND value=?)
            SEARCH jobs USING INDEX jobs_by_queue_seq (queue_seq=?)
        "#]],
        );
        check_list(
            |filter| filter.labels = vec![label("team"), label("wave")],
            &expect![[r#"
            SEARCH labels USING PRIMARY KEY (namespace=? AND key=? AND value=?)
            SEARCH jobs USING INDEX jobs_by_queue_seq (queue_seq=?)
            SEARCH other EXISTS USING COVERING INDEX labels_of_job (queue_seq=? AND namespace=? AND key=? AND value=?)
        "#]],
        );
        check_list(
            |filter| filter.words = vec!["refused".to_owned()],
            &expect![[r#"
            SCAN words VIRTUAL TABLE INDEX 192:M1
            SEARCH jobs USING INDEX jobs_by_queue_seq (queue_seq=?)
        "#]],
        );
        check_list(
            |filter| {
                (filter.words, filter.labels, filter.before) =
                    (vec!["refused".to_owned()], vec![label("team")], Some(9))
            },
            &expect![[r#"
                SCAN words VIRTUAL TABLE INDEX 192:M1><
                SEARCH jobs USING INDEX jobs_by_queue_seq (queue_seq=?)
                SEARCH other EXISTS USING COVERING INDEX labels_of_job (queue_seq=? AND namespace=? AND key=? AND value=?)
            "#]],
        );
    }

    #[test]
    fn traces_are_read_in_the_order_of_their_end() {
        check_list(
            |filter| filter.by_end = true,
            &expect![[r#"
            SEARCH jobs USING INDEX jobs_by_end (namespace=?)
        "#]],
        );
        check_list(
            |filter| (filter.agent, filter.by_end) = (agent(), true),
            &expect![[r#"
            SEARCH jobs USING INDEX jobs_by_end_of_agent (namespace=? AND agent=?)
        "#]],
        );
    }
}
