//! Tests through the public interface: all written data is read back once, in order, also after a restart.

use std::collections::BTreeMap;
use std::path::Path;

use atlas_types::{
    AgentPin, Attempt, ClusterTime, Digest, Door, Event, Failure, FailureKind, Fold, JobChange, JobStatus, Journal,
    Micros, Namespace, Payload, PayloadBody, Reason, Seq, Step, StepKey, StepKind, StepUsage, Timestamp, Version,
};
use expect_test::expect;

use super::*;

pub(super) fn open(path: &Path) -> Result<SqliteHistory, HistoryError> {
    let options = Options {
        sync_interval: Duration::from_millis(5),
        gather_interval: Duration::from_millis(1),
        events_kept: 10,
        // Most ids go into the file.
        recent_ids_max: 2,
        ..Options::new(path.to_owned())
    };
    SqliteHistory::open(options, Env::system(), |_| ())
}

pub(super) fn job(id: u64, status: JobStatus) -> Job {
    let ended = status.is_terminal();
    Job {
        pin: Some(AgentPin { version: Version { major: 1, minor: 2, patch: 3 }, digest: Digest([7; 32]) }),
        spec: None,
        status,
        reason: if ended { Reason::Running } else { Reason::Backoff { until: ClusterTime(9) } },
        priority: -3,
        submitted_seq: Seq(5),
        input: Payload::inline(format!("{{\"n\":{id}}}").as_bytes()),
        output: ended.then_some(Payload {
            key_id: 2,
            body: PayloadBody::Artifact { digest: Digest([1; 32]), size_bytes: 70_000 },
        }),
        failure: (status == JobStatus::Failed)
            .then(|| Failure { kind: FailureKind::Timeout, error: "too \"slow\" é".into() }),
        created_at: Timestamp(1_000_000 + id as i64),
        started_at: Timestamp(2_000_000),
        completed_at: Timestamp(if ended { 3_000_000 } else { 0 }),
        queued_at: ClusterTime(4),
        warmup: Micros(5),
        execution: Micros(6),
        warm: true,
        attempt: Attempt(2),
        retry_count: 1,
        original: Some(JobId(u64::MAX)),
        metadata: br#"{"_a":1}"#.as_slice().into(),
        labels: Arc::new(BTreeMap::from([("team".to_owned(), "blue".to_owned())])),
        execution_timeout: Some(Micros(7)),
        door: Door::Http,
        stream: Some(Box::new(Payload::inline(b"[]"))),
        ..atlas_kit::job(id).of(if id.is_multiple_of(2) { "echo" } else { "count" }).pending()
    }
}

pub(super) fn event(seq: u64, id: u64, old_status: JobStatus, status: JobStatus) -> EventRecord {
    let change = match status {
        JobStatus::Pending => JobChange::Submitted,
        JobStatus::Running => JobChange::Granted,
        _ => JobChange::Ended,
    };
    EventRecord {
        seq: EventSeq(seq),
        at: Timestamp(10 * seq as i64),
        event: Event::Job { change, old_status, job: Arc::new(job(id, status)) },
    }
}

/// The three events of a job that completes.
pub(super) fn life(first: u64, id: u64) -> Arc<[EventRecord]> {
    [
        event(first, id, JobStatus::Pending, JobStatus::Pending),
        event(first + 1, id, JobStatus::Pending, JobStatus::Running),
        event(first + 2, id, JobStatus::Running, JobStatus::Completed),
    ]
    .into()
}

pub(super) async fn synced(history: &SqliteHistory, seq: u64) {
    let mut synced = history.synced();
    let reached = synced.wait_for(|synced| *synced >= EventSeq(seq));
    tokio::time::timeout(Duration::from_secs(10), reached).await.expect("in time").expect("the writer lives");
}

pub(super) fn file() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("history.sqlite");
    (dir, path)
}

pub(super) fn describe(events: &[StoredEvent]) -> String {
    let lines = events.iter().map(|event| {
        let what = match &event.event {
            None => "-".to_owned(),
            Some(Event::Job { job, old_status, .. }) => {
                format!("{} {} → {}", job.id.0, old_status.as_str(), job.status.as_str())
            }
            Some(other) => format!("{other:?}"),
        };
        format!("{} {what}\n", event.seq)
    });
    lines.collect()
}

#[tokio::test]
async fn an_ended_job_reads_back_whole() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    let failed = job(8, JobStatus::Failed);
    let events =
        [event(1, 8, JobStatus::Running, JobStatus::Failed), event(2, 9, JobStatus::Pending, JobStatus::Running)];
    history.append(events.into()).await.expect("queued");
    synced(&history, 2).await;
    assert_eq!(history.job(JobId(8)).await.expect("reads").as_deref(), Some(&failed));
    assert_eq!(history.job(JobId(9)).await.expect("reads"), None, "a live job is the state's");
    let events = history.events(EventSeq(1), 10).await.expect("reads");
    let Some(Event::Job { job: running, .. }) = &events[0].event else { panic!("{events:?} is no job's") };
    assert_eq!(**running, job(9, JobStatus::Running));
}

#[tokio::test]
async fn a_stream_is_told_again_whole() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    let removed = Event::NodeRemoved { node: "w1".parse().expect("a name") };
    let configured = Event::Configured { config: Arc::default() };
    let other = |seq, event| EventRecord { seq: EventSeq(seq), at: Timestamp(9), event };
    let others = [other(5, removed), other(6, configured)];
    let told = [&*life(1, 2), &[event(4, 3, JobStatus::Pending, JobStatus::Pending)], &others].concat();
    history.append(told.clone().into()).await.expect("queued");
    synced(&history, 6).await;
    let again = history.events(EventSeq(0), 10).await.expect("reads");
    let again = again.into_iter().map(|StoredEvent { seq, at, event }| EventRecord {
        seq,
        at,
        event: event.expect("an event that is known"),
    });
    assert_eq!(again.collect::<Vec<_>>(), told);
}

#[tokio::test]
async fn events_come_once_and_in_order_over_a_restart() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    history.append(life(1, 2)).await.expect("queued");
    synced(&history, 3).await;
    drop(history);
    let history = open(&path).expect("opens again");
    assert_eq!(*history.synced().borrow(), EventSeq(3));
    // The log is replayed from an older snapshot. Known events are skipped.
    history.append(life(1, 2)).await.expect("queued");
    history.append(life(4, 3)).await.expect("queued");
    synced(&history, 6).await;
    let events = history.events(EventSeq(0), 100).await.expect("reads");
    expect![[r#"
        1 2 pending → pending
        2 2 pending → running
        3 2 running → completed
        4 3 pending → pending
        5 3 pending → running
        6 3 running → completed
    "#]]
    .assert_eq(&describe(&events));
    let part = history.events(EventSeq(1), 3).await.expect("reads");
    expect![[r#"
        2 2 pending → running
        3 2 running → completed
        4 3 pending → pending
    "#]]
    .assert_eq(&describe(&part));
}

#[tokio::test]
async fn missed_events_are_gone_and_said_to_be() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    history.append(life(1, 2)).await.expect("queued");
    let ended = vec![EndedJob { event: EventSeq(9), job: Arc::new(job(5, JobStatus::Cancelled)) }];
    history.resync(ended, EventSeq(20)).await.expect("queued");
    history.append(life(21, 6)).await.expect("queued");
    synced(&history, 23).await;
    assert!(history.job(JobId(5)).await.expect("reads").is_some());
    let gone = history.events(EventSeq(3), 5).await.expect_err("a gap");
    assert_eq!(gone.to_string(), "events up to 21 have been dropped");
    assert_eq!(history.events(EventSeq(20), 5).await.expect("reads").len(), 3);
}

#[tokio::test]
async fn lists_are_filtered_and_newest_first() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    for id in 1..=9 {
        history.append(life(id * 3 - 2, id)).await.expect("queued");
    }
    synced(&history, 27).await;
    let list = async |filter: JobFilter| {
        let listed = history.list(filter).await.expect("reads");
        let jobs = history.ended_by(listed.iter().map(|job| job.event).collect()).await.expect("reads");
        assert!(listed.iter().map(|job| job.id).eq(jobs.iter().map(|job| job.id)));
        jobs.iter().map(|job| job.id.0).collect::<Vec<_>>()
    };
    let all = JobFilter { limit: 3, ..JobFilter::default() };
    assert_eq!(list(all.clone()).await, [9, 8, 7]);
    assert_eq!(list(JobFilter { agent: Some("echo".parse().expect("a name")), ..all.clone() }).await, [8, 6, 4]);
    assert_eq!(list(JobFilter { status: Some(JobStatus::Failed), ..all.clone() }).await, [0; 0]);
    let between = JobFilter { since: Some(Timestamp(1_000_002)), until: Some(Timestamp(1_000_003)), ..all };
    assert_eq!(list(between).await, [3, 2]);
    let ids = history.jobs_between(JobId(4), JobId(u64::MAX), 2).await.expect("reads");
    assert_eq!(ids, [JobId(4), JobId(5)]);
}

#[tokio::test]
async fn damage_and_newer_files_are_named() {
    let (_dir, path) = file();
    std::fs::write(&path, [b'x'; 8192]).expect("writable");
    let error = open(&path).err().expect("damaged");
    assert!(error.to_string().contains("is damaged: file is not a database; move the file"), "{error}");
    std::fs::remove_file(&path).expect("removable");
    drop(open(&path).expect("opens"));
    let connection = Connection::open(&path).expect("opens");
    connection.pragma_update(None, "user_version", 99).expect("writable");
    drop(connection);
    let error = open(&path).err().expect("too new");
    assert!(error.to_string().contains("has schema 99, this program knows up to 7"), "{error}");
}

#[tokio::test]
async fn a_file_of_version_1_learns_what_its_jobs_refer_to() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    history.append(life(1, 2)).await.expect("queued");
    history.close().await.expect("closes");
    let connection = Connection::open(&path).expect("opens");
    connection
        .execute_batch(&format!(
            "{BEFORE_7} {BEFORE_6} {BEFORE_5} {BEFORE_4} DROP TABLE artifacts; DROP TABLE gaps;
             ALTER TABLE jobs DROP COLUMN sum; ALTER TABLE events DROP COLUMN sum; PRAGMA user_version = 1"
        ))
        .expect("as version 1 left it");
    drop(connection);
    let history = open(&path).expect("opens");
    let found = history.refers(vec![Digest([1; 32]), Digest([2; 32])]).await.expect("reads");
    assert_eq!(found, [true, false]);
    assert_eq!(*history.gaps().borrow(), [].into());
}

#[tokio::test]
async fn a_file_of_version_3_gets_its_indexes() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    history.append(life(1, 2)).await.expect("queued");
    history.close().await.expect("closes");
    let connection = Connection::open(&path).expect("opens");
    let older = format!("{BEFORE_7} {BEFORE_6} {BEFORE_5} {BEFORE_4} PRAGMA user_version = 3");
    connection.execute_batch(&older).expect("as version 3 left it");
    let history = open(&path).expect("opens");
    assert!(history.job(JobId(2)).await.expect("reads").is_some());
    let count = "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name LIKE 'jobs_%of_%'";
    let indexes: i64 = connection.query_row(count, [], |row| row.get(0)).expect("reads");
    assert_eq!(indexes, 3);
}

/// Make a file as the version before left it.
const BEFORE_4: &str = "DROP INDEX jobs_of_agent; DROP INDEX jobs_of_status; DROP INDEX jobs_by_end_of_agent;";
pub(super) const BEFORE_7: &str = "DROP TABLE ids; ALTER TABLE progress DROP COLUMN indexed; DROP INDEX jobs_by_time;
    CREATE INDEX jobs_by_id ON jobs (id); CREATE INDEX jobs_of_agent ON jobs (namespace, agent, queue_seq);
    CREATE INDEX jobs_by_time ON jobs (created_at, queue_seq); CREATE INDEX jobs_of_namespace ON jobs (namespace, queue_seq);";
pub(super) const BEFORE_6: &str = "DROP TABLE totals; DROP TABLE ends; DROP TABLE erased;";
const BEFORE_5: &str = "DROP TABLE words; DROP TABLE labels; DROP INDEX jobs_by_time; DROP INDEX jobs_of_namespace;
    DROP INDEX jobs_of_agent_and_status; DROP INDEX jobs_by_end;";

/// Selects jobs by their label and a word.
pub(super) fn blue(word: &str) -> JobFilter {
    let labels = vec![("team".to_owned(), "blue".to_owned())];
    JobFilter {
        namespace: Some(Namespace::default_namespace()),
        labels,
        words: crate::words(word),
        limit: 9,
        ..JobFilter::default()
    }
}

pub(super) async fn places(history: &SqliteHistory, filter: JobFilter) -> Vec<u64> {
    history.list(filter).await.expect("reads").into_iter().map(|listed| listed.queue_seq).collect()
}

#[tokio::test]
async fn a_file_of_version_4_learns_labels_and_words() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    history.append(life(1, 2)).await.expect("queued");
    history.append(life(4, 3)).await.expect("queued");
    history.close().await.expect("closes");
    let connection = Connection::open(&path).expect("opens");
    let older = format!("{BEFORE_7} {BEFORE_6} {BEFORE_5} PRAGMA user_version = 4");
    connection.execute_batch(&older).expect("as version 4 left it");
    // A damaged job is not found, and does not keep the others from being found.
    connection.execute("UPDATE jobs SET job = x'00' WHERE event_seq > 3", []).expect("damaged");
    let history = open(&path).expect("opens");
    assert_eq!(places(&history, blue("")).await, [2]);
    assert_eq!(places(&history, blue("team")).await, [2]);
}

#[tokio::test]
async fn a_file_of_version_6_finds_its_jobs_by_their_ids() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    for id in 1..=200 {
        history.append(life(id * 3 - 2, id)).await.expect("queued");
    }
    history.close().await.expect("closes");
    let connection = Connection::open(&path).expect("opens");
    connection.execute_batch(&format!("{BEFORE_7} PRAGMA user_version = 6")).expect("as version 6 left it");
    let history = open(&path).expect("opens");
    for id in 1..=200 {
        assert_eq!(history.job(JobId(id)).await.expect("reads").map(|job| job.id), Some(JobId(id)));
    }
    assert!(history.job(JobId(201)).await.expect("reads").is_none());
    // Of 64 jobs, one has its time in an index.
    for at in [1_i64, 63, 64, 65, 127, 128, 129, 200] {
        let since = JobFilter { since: Some(Timestamp(1_000_000 + at)), limit: 500, ..blue("") };
        assert_eq!(places(&history, since).await, (at.unsigned_abs()..=200).rev().collect::<Vec<_>>());
        let until = JobFilter { until: Some(Timestamp(1_000_000 + at)), limit: 500, labels: Vec::new(), ..blue("") };
        assert_eq!(places(&history, until).await, (1..=at.unsigned_abs()).rev().collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn jobs_are_found_by_label_text_and_place() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    for id in 1..=6 {
        let status = if id == 3 { JobStatus::Failed } else { JobStatus::Completed };
        let end = event(id, id, JobStatus::Running, status);
        history.append([end].into()).await.expect("queued");
    }
    synced(&history, 6).await;
    assert_eq!(places(&history, blue("")).await, [6, 5, 4, 3, 2, 1]);
    assert_eq!(places(&history, JobFilter { before: Some(4), limit: 2, ..blue("") }).await, [3, 2]);
    assert_eq!(places(&history, JobFilter { before: Some(1), ..blue("") }).await, [0; 0]);
    // The error of the job that failed is: too "slow" é
    assert_eq!(places(&history, blue("SLOW")).await, [3]);
    assert_eq!(places(&history, blue("é slow, too")).await, [3]);
    assert_eq!(places(&history, blue("slow fast")).await, [0; 0]);
    assert_eq!(places(&history, JobFilter { before: Some(3), ..blue("slow") }).await, [0; 0]);
    let none = vec![("team".to_owned(), "red".to_owned())];
    assert_eq!(places(&history, JobFilter { labels: none.clone(), ..blue("") }).await, [0; 0]);
    assert_eq!(places(&history, JobFilter { labels: [blue("").labels, none].concat(), ..blue("") }).await, [0; 0]);
    let elsewhere = Some(Namespace::new("elsewhere").expect("a name"));
    assert_eq!(places(&history, JobFilter { namespace: elsewhere, ..blue("slow") }).await, [0; 0]);
    // A repeated event writes nothing again.
    history.resync(Vec::new(), EventSeq(6)).await.expect("queued");
    let old = JobFilter { until: Some(Timestamp(1_000_002)), ..blue("") };
    assert_eq!(places(&history, old).await, [2, 1]);
    assert_eq!(places(&history, JobFilter { since: Some(Timestamp(1_000_007)), ..blue("") }).await, [0; 0]);
    assert_eq!(places(&history, JobFilter { until: Some(Timestamp(1)), ..blue("") }).await, [0; 0]);
}

#[tokio::test]
async fn a_row_that_is_not_what_was_written_is_refused_by_name() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    history.append(life(1, 2)).await.expect("queued");
    history.append(life(4, 3)).await.expect("queued");
    history.close().await.expect("closes");
    // Flips a bit of text inside a job, which SQLite's page check does not detect.
    let connection = Connection::open(&path).expect("opens");
    let read = "SELECT job FROM jobs WHERE event_seq = 3";
    let mut body: Vec<u8> = connection.query_row(read, [], |row| row.get(0)).expect("it ended");
    let at = body.windows(4).position(|text| text == b"blue").expect("its label");
    body[at] ^= 1;
    connection.execute("UPDATE jobs SET job = ?1 WHERE event_seq = 3", [&body]).expect("writable");
    drop(connection);
    let history = open(&path).expect("its pages are whole");
    let refused = "is damaged: the checksum of the job that event 3 ended does not match";
    let error = history.job(JobId(2)).await.expect_err("damaged");
    assert!(error.to_string().contains(refused), "{error}");
    let error = history.events(EventSeq(0), 10).await.expect_err("damaged");
    assert!(error.to_string().contains(refused), "{error}");
    let gap = Gap { after: EventSeq(0), through: EventSeq(6) };
    assert!(matches!(history.part(gap, 1 << 20).await, Err(HistoryError::Damaged { .. })));
    assert!(history.job(JobId(3)).await.expect("reads").is_some(), "the others are there");
    let connection = Connection::open(&path).expect("opens");
    connection.execute("UPDATE events SET body = zeroblob(length(body))", []).expect("writable");
    let error = history.events(EventSeq(0), 10).await.expect_err("damaged");
    assert!(error.to_string().contains("does not match"), "{error}");
}

#[tokio::test]
async fn a_history_belongs_to_one_cluster() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    history.bind(7).expect("was nobody's");
    history.bind(7).expect("is the same");
    let error = history.bind(8).expect_err("another cluster");
    assert!(matches!(error, HistoryError::OtherCluster { .. }), "{error}");
}

#[tokio::test]
async fn closing_writes_what_was_handed_over() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    history.append(life(1, 2)).await.expect("queued");
    history.close().await.expect("closes");
    assert!(matches!(history.append(life(4, 3)).await, Err(HistoryError::Stopped)));
    let history = open(&path).expect("opens again");
    assert_eq!(*history.synced().borrow(), EventSeq(3));
}

#[tokio::test]
async fn old_events_are_dropped_and_jobs_stay() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    for id in 1..=1_400 {
        history.append(life(id * 3 - 2, id)).await.expect("queued");
    }
    synced(&history, 4_200).await;
    let gone = history.events(EventSeq(0), 1).await.expect_err("dropped");
    assert!(matches!(gone, HistoryError::Gone { .. }), "{gone}");
    assert!(history.job(JobId(1)).await.expect("reads").is_some());
}

#[tokio::test]
async fn a_copy_ends_at_one_event_and_can_go_to_another_cluster() {
    let (dir, path) = file();
    let history = open(&path).expect("opens");
    history.bind(1).expect("bound");
    history.append([life(1, 2), life(4, 3)].concat().into()).await.expect("queued");
    synced(&history, 6).await;
    let copied = dir.path().join("copy.sqlite");
    history.copy(copied.clone(), EventSeq(5)).await.expect("copied");
    assert!(history.copy(copied.clone(), EventSeq(5)).await.is_err(), "a copy overwrites nothing");

    crate::rebind(&copied, 7).expect("closed and whole");
    let copy = open(&copied).expect("opens");
    copy.bind(7).expect("it is of the other cluster");
    assert_eq!(*copy.synced().borrow(), EventSeq(5));
    assert!(copy.job(JobId(2)).await.expect("reads").is_some());
    assert_eq!(copy.job(JobId(3)).await.expect("reads"), None, "it ended behind the cut");
    let events = copy.events(EventSeq(0), 100).await.expect("reads");
    expect![[r#"
        1 2 pending → pending
        2 2 pending → running
        3 2 running → completed
        4 3 pending → pending
        5 3 pending → running
    "#]]
    .assert_eq(&describe(&events));
    // The other cluster continues after the cut with its own events.
    copy.append([event(6, 3, JobStatus::Running, JobStatus::Failed)].into()).await.expect("queued");
    synced(&copy, 6).await;
    assert_eq!(copy.job(JobId(3)).await.expect("reads").expect("ended").status, JobStatus::Failed);
}

#[tokio::test]
async fn an_ended_job_keeps_its_journal_and_the_artifacts_of_it() {
    let (_dir, path) = file();
    let history = open(&path).expect("a new file");
    let folded = Payload { key_id: 0, body: PayloadBody::Artifact { digest: Digest([9; 32]), size_bytes: 30_000 } };
    let (outcome, usage) = (Payload::inline(b"{}"), StepUsage::default());
    let step = Arc::new(Step { kind: StepKind::Model, key: StepKey([3; 16]), outcome, usage });
    let folds = vec![Fold { upto: 4, artifact: folded }];
    let journal = Journal { folds, steps: vec![Arc::clone(&step)], ..Journal::default() };
    let ended = Job { journal: Some(Arc::new(journal.clone())), ..job(2, JobStatus::Completed) };
    let events = [
        EventRecord {
            seq: EventSeq(1),
            at: Timestamp(1),
            event: Event::StepsRecorded { job: JobId(2), from: 4, steps: [step].into() },
        },
        EventRecord {
            seq: EventSeq(2),
            at: Timestamp(2),
            event: Event::Job { change: JobChange::Ended, old_status: JobStatus::Running, job: Arc::new(ended) },
        },
    ];
    history.append(events.into()).await.expect("queued");
    synced(&history, 2).await;
    let found = history.job(JobId(2)).await.expect("read").expect("it ended");
    assert_eq!(found.journal.as_deref(), Some(&journal));
    assert_eq!(history.refers(vec![Digest([9; 32])]).await.expect("read"), [true]);
    let events = history.events(EventSeq(0), 10).await.expect("read");
    let [recorded, ended] = &events[..] else { panic!("two events") };
    let Some(Event::StepsRecorded { from: 4, steps, .. }) = &recorded.event else { panic!("{recorded:?}") };
    assert_eq!(steps[0].outcome, Payload::inline(b""), "the job has the outcome");
    assert!(matches!(&ended.event, Some(Event::Job { .. })));
}
