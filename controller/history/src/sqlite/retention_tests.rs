//! How long jobs are kept: by their number and age in a namespace, and by their age everywhere.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};

use atlas_env::Clock;
use atlas_types::{Digest, Event, JobChange, JobStatus, Namespace, Payload, PayloadBody, Timestamp};

use super::tests::{blue, file, job, open, places, synced};
use super::*;

/// The end of a job of a namespace, at second `seq`.
fn end_in(namespace: &str, seq: u64) -> Arc<[EventRecord]> {
    let at = Timestamp(1_000_000 * seq as i64);
    let mut ended = job(seq, JobStatus::Completed);
    (ended.namespace, ended.completed_at) = (Namespace::new(namespace).expect("a name"), at);
    let (change, old_status) = (JobChange::Ended, JobStatus::Running);
    [EventRecord { seq: EventSeq(seq), at, event: Event::Job { change, old_status, job: Arc::new(ended) } }].into()
}

fn kept(namespace: &str, jobs_max: Option<u64>, seconds: Option<u64>) -> KeepRule {
    let namespace = Namespace::new(namespace).expect("a name");
    KeepRule { namespace, jobs_max, age_max: seconds.map(Duration::from_secs) }
}

#[tokio::test]
async fn a_namespace_keeps_its_latest_jobs_and_others_keep_theirs() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    for seq in 1..=8 {
        history.append(end_in(if seq % 2 == 0 { "even" } else { "odd" }, seq)).await.expect("queued");
    }
    history.keep([kept("even", Some(2), None), kept("empty", Some(0), None)].into()).await.expect("queued");
    history.append(end_in("odd", 9)).await.expect("queued");
    synced(&history, 9).await;
    let all = JobFilter { limit: 9, ..JobFilter::default() };
    assert_eq!(places(&history, all.clone()).await, [9, 8, 7, 6, 5, 3, 1]);
    assert!(history.job(JobId(4)).await.expect("reads").is_none());
    let even = Some(Namespace::new("even").expect("a name"));
    assert_eq!(places(&history, JobFilter { namespace: even, ..blue("") }).await, [8, 6], "labels are gone as well");
    let referred: Vec<u64> =
        history.artifacts(EventSeq(0), 100).await.expect("reads").iter().map(|(event, _)| event.0).collect();
    assert_eq!(referred, [1, 3, 5, 6, 7, 8, 9]);
    // Another history that missed everything gets what is left, and all numbers.
    let (_other_dir, other) = file();
    let other = open(&other).expect("opens");
    other.resync(Vec::new(), EventSeq(9)).await.expect("queued");
    synced(&other, 9).await;
    let gap = Gap { after: EventSeq(0), through: EventSeq(9) };
    other.fill(gap, history.part(gap, 1 << 20).await.expect("reads")).await.expect("it fits");
    assert_eq!(places(&other, all.clone()).await, [9, 8, 7, 6, 5, 3, 1]);
    for history in [&history, &other] {
        let events = history.events(EventSeq(0), 100).await.expect("reads");
        let told: Vec<bool> = events.iter().map(|event| event.event.is_some()).collect();
        assert_eq!(told, [true, false, true, false, true, true, true, true, true]);
    }
    // Without a limit nothing more is removed.
    history.keep([].into()).await.expect("queued");
    history.append(end_in("even", 10)).await.expect("queued");
    synced(&history, 10).await;
    assert_eq!(places(&history, all).await, [10, 9, 8, 7, 6, 5, 3, 1]);
}

#[tokio::test]
async fn a_namespace_forgets_old_jobs_by_the_times_of_events_as_far_as_the_process_has_run() {
    let (_dir, path) = file();
    let history = open(&path).expect("opens");
    history.append(end_in("short", 1)).await.expect("queued");
    history.append(end_in("long", 1_000)).await.expect("queued");
    history.close().await.expect("closes");
    // The time of the first event after a start counts: it is later than what it looks at.
    let history = open(&path).expect("opens");
    history.keep([kept("short", None, Some(100)), kept("long", None, Some(10_000))].into()).await.expect("queued");
    history.append(end_in("short", 1_001)).await.expect("queued");
    synced(&history, 1_001).await;
    history.append(end_in("long", 1_000_000)).await.expect("queued");
    synced(&history, 1_000_000).await;
    let all = JobFilter { limit: 9, ..JobFilter::default() };
    assert_eq!(places(&history, all).await, [1_000_000, 1_001, 1_000], "a wrong time removes nothing early");
}

/// Clocks that the test sets.
#[derive(Default)]
struct Clocks(AtomicU64);

impl Clock for Clocks {
    fn wall(&self) -> Timestamp {
        Timestamp::default()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

/// A history that keeps jobs for 100 s.
fn forgetful(path: PathBuf, clock: &Arc<Clocks>) -> SqliteHistory {
    let options = Options {
        sync_interval: Duration::ZERO,
        gather_interval: Duration::from_millis(1),
        jobs_kept_for: Some(Duration::from_secs(100)),
        ..Options::new(path)
    };
    let env = Env { clock: Arc::clone(clock) as Arc<dyn Clock>, ..Env::system() };
    SqliteHistory::open(options, env, |_| ()).expect("opens")
}

/// Ends a job that refers to an artifact, at the given event time.
async fn end_at(history: &SqliteHistory, id: u8, second: i64) {
    let at = Timestamp(second * 1_000_000);
    let mut ended = Job { completed_at: at, ..job(id.into(), JobStatus::Completed) };
    ended.output =
        Some(Payload { key_id: 0, body: PayloadBody::Artifact { digest: Digest([id; 32]), size_bytes: 70_000 } });
    let event = Event::Job { change: JobChange::Ended, old_status: JobStatus::Running, job: Arc::new(ended) };
    history.append([EventRecord { seq: EventSeq(id.into()), at, event }].into()).await.expect("queued");
    synced(history, id.into()).await;
}

#[tokio::test]
async fn jobs_that_were_kept_long_enough_are_dropped_with_what_they_show() {
    let (_dir, path) = file();
    let clock = Arc::new(Clocks::default());
    let history = forgetful(path, &clock);
    for id in 1..=200 {
        clock.0.store(id.into(), Ordering::Relaxed);
        end_at(&history, id, id.into()).await;
    }
    let kept = async |id: u64| history.job(JobId(id)).await.expect("reads").is_some();
    assert!(!kept(90).await);
    assert!(kept(100).await && kept(200).await);
    let digests = [90, 100, 200].map(|byte| Digest([byte; 32])).to_vec();
    assert_eq!(history.refers(digests).await.expect("reads"), [false, true, true]);
    let gone = history.events(EventSeq(80), 1).await.expect_err("dropped");
    assert!(matches!(gone, HistoryError::Gone { .. }), "{gone}");
    assert_eq!(history.events(EventSeq(100), 999).await.expect("reads").len(), 100);
}

#[tokio::test]
async fn times_that_jump_ahead_drop_no_job_early() {
    const TEN_YEARS: i64 = 10 * 365 * 24 * 3_600;
    let (_dir, path) = file();
    let clock = Arc::new(Clocks::default());
    let history = forgetful(path, &clock);
    let kept = async |id: u64| history.job(JobId(id)).await.expect("reads").is_some();
    end_at(&history, 1, 1_000).await;
    end_at(&history, 2, 1_001).await;
    // It is unknown which time was right, so each job is kept for its full time.
    end_at(&history, 3, TEN_YEARS).await;
    clock.0.store(90, Ordering::Relaxed);
    end_at(&history, 4, TEN_YEARS + 90).await;
    assert!(kept(1).await && kept(2).await && kept(3).await);
    clock.0.store(110, Ordering::Relaxed);
    end_at(&history, 5, TEN_YEARS + 110).await;
    assert!(!kept(1).await && !kept(2).await);
    assert!(kept(3).await && kept(4).await);
}
