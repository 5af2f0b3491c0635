//! Tests of erasing: nothing of an erased job is left in the file, and what another history brings later is erased too.

use atlas_types::{
    Event, JOB_LABEL, JobStatus, Namespace, Object, ObjectKey, ObjectKind, ObjectName, Principal, Timestamp,
};

use super::tests::{blue, event, file, life, open, places, synced};
use super::*;

fn erased(seq: u64, job: Option<u64>) -> Arc<[EventRecord]> {
    let event = Event::Erased { namespace: Namespace::default_namespace(), job: job.map(JobId) };
    [EventRecord { seq: EventSeq(seq), at: Timestamp(1), event }].into()
}

/// Which of the events still say something.
async fn told(history: &SqliteHistory) -> String {
    let events = history.events(EventSeq(0), 100).await.expect("reads");
    events.iter().map(|event| if event.event.is_some() { '+' } else { '-' }).collect()
}

async fn input(history: &SqliteHistory, id: u64) -> Option<String> {
    let job = history.job(JobId(id)).await.expect("reads")?;
    Some(format!("{:?} {} {:?}", job.input, job.status.as_str(), job.labels))
}

/// Jobs 2 and 4 complete, then job 2 is erased.
async fn fill(history: &SqliteHistory) {
    history.append(life(1, 2)).await.expect("queued");
    history.append(life(4, 4)).await.expect("queued");
    history.append(erased(7, Some(2))).await.expect("queued");
    synced(history, 7).await;
}

/// What a job wrote into the shared memory.
fn appended(seq: u64, job: u64) -> Arc<[EventRecord]> {
    let key = ObjectKey {
        namespace: Namespace::default_namespace(),
        kind: ObjectKind::new("memory").expect("a kind"),
        name: ObjectName::new(&format!("namespace@{seq}")).expect("a name"),
    };
    let object = Object {
        key,
        uid: EventSeq(seq),
        revision: EventSeq(seq),
        labels: Arc::new([(JOB_LABEL.to_owned(), JobId(job).to_string())].into()),
        spec: br#"{"text":"a secret"}"#.as_slice().into(),
        spec_version: 1,
        created: Timestamp(1),
        updated: Timestamp(1),
        by: Principal::new("ops").expect("a name"),
        status: Arc::from([]),
    };
    let event = Event::ObjectPut { object: Arc::new(object) };
    [EventRecord { seq: EventSeq(seq), at: Timestamp(1), event }].into()
}

#[tokio::test]
async fn what_a_job_wrote_into_the_memory_is_erased_with_it() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    history.append(life(1, 2)).await.expect("queued");
    history.append(appended(4, 2)).await.expect("queued");
    history.append(appended(5, 3)).await.expect("queued");
    history.append(erased(6, Some(2))).await.expect("queued");
    synced(&history, 6).await;
    assert_eq!(told(&history).await, "--+-++");
    history.append(erased(7, None)).await.expect("queued");
    synced(&history, 7).await;
    assert_eq!(told(&history).await, "-----++");
}

fn bytes_with(path: &std::path::Path, text: &str) -> usize {
    let bytes = std::fs::read(path).expect("reads");
    bytes.windows(text.len()).filter(|found| *found == text.as_bytes()).count()
}

#[tokio::test]
async fn nothing_of_an_erased_job_is_left() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    fill(&history).await;
    assert_eq!(told(&history).await, "--+++++");
    let (gone, kept) = (input(&history, 2).await.expect("a row"), input(&history, 4).await.expect("a row"));
    assert!(gone.contains("atlas.erased") && !gone.contains("\"n\""), "{gone}");
    assert!(kept.contains("n") && !kept.contains("atlas.erased"), "{kept}");
    let artifacts = history.artifacts(EventSeq(0), 100).await.expect("reads");
    assert_eq!(artifacts.iter().map(|(event, _)| event.0).collect::<Vec<_>>(), [6]);
    assert_eq!(places(&history, blue("")).await, [4, 2], "it is still found by its labels");
    let wal = path.with_file_name("history.sqlite-wal");
    let found = |text| bytes_with(&path, text) + bytes_with(&wal, text);
    let (gone, kept) = (found(r#"{"n":2}"#), found(r#"{"n":4}"#));
    assert!(gone == 0 && kept > 0, "{gone} {kept}");
}

#[tokio::test]
async fn a_namespace_is_erased_up_to_the_event() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    fill(&history).await;
    history.append(erased(8, None)).await.expect("queued");
    history.append(life(9, 6)).await.expect("queued");
    synced(&history, 11).await;
    assert_eq!(told(&history).await, "------+++++");
    assert_eq!(places(&history, blue("")).await, [6]);
    assert_eq!(history.totals().await.expect("reads").agents[0].completed, 3, "statistics stay");
}

#[tokio::test]
async fn what_fills_a_gap_is_erased_as_well() {
    let (_dir, path) = file();
    let whole = open(&path).expect("opens");
    whole.append(life(1, 2)).await.expect("queued");
    whole.append(life(4, 4)).await.expect("queued");
    synced(&whole, 6).await;
    let gap = Gap { after: EventSeq(0), through: EventSeq(6) };
    let part = whole.part(gap, 1 << 20).await.expect("reads");
    // Another history missed these events, and has seen since that job 2 and, later, the namespace was erased.
    for (job, left, shown) in [(Some(2), "--+++++", vec![4, 2]), (None, "------+", vec![])] {
        let (_other_dir, other) = file();
        let other = open(&other).expect("opens");
        other.resync(Vec::new(), EventSeq(6)).await.expect("queued");
        other.append(erased(7, job)).await.expect("queued");
        synced(&other, 7).await;
        other.fill(gap, part.clone()).await.expect("it fits");
        assert_eq!(places(&other, blue("")).await, shown);
        assert_eq!(told(&other).await, left);
        if job.is_some() {
            assert!(input(&other, 2).await.expect("a row").contains("atlas.erased"));
        }
    }
}

#[tokio::test]
async fn a_job_that_ends_after_the_erasure_stays() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    history.append(erased(1, Some(2))).await.expect("queued");
    history.append([event(2, 2, JobStatus::Running, JobStatus::Failed)].into()).await.expect("queued");
    synced(&history, 2).await;
    assert_eq!(told(&history).await, "++");
    assert!(!input(&history, 2).await.expect("a row").contains("atlas.erased"));
}

#[tokio::test]
async fn damage_does_not_stop_an_erasure_or_what_follows() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    history.append(life(1, 2)).await.expect("queued");
    synced(&history, 3).await;
    let connection = Connection::open(&path).expect("opens");
    connection.execute_batch("UPDATE jobs SET job = x'00'; UPDATE events SET body = x'00'").expect("damaged");
    drop(connection);
    history.append(erased(4, Some(2))).await.expect("queued");
    history.append(life(5, 4)).await.expect("queued");
    synced(&history, 7).await;
    assert!(history.job(JobId(2)).await.expect("the row is gone").is_none());
    assert!(history.job(JobId(4)).await.expect("reads").is_some());
}
