use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};

use atlas_audit::{Filter, GENESIS, Verifier};
use atlas_env::{Clock, FileReader, FileWriter, Files, SystemFiles};
use atlas_types::{Door, Outcome, Rejection, Timestamp};

use super::*;

fn options(dir: &Path, bytes_max: u64) -> AuditOptions {
    AuditOptions { dir: dir.to_owned(), controller: "1".to_owned(), bytes_max }
}

fn caller() -> Caller {
    Caller::anonymous(Door::Http)
}

fn attempted(object: &str) -> Attempted<'_> {
    Attempted { verb: "cancelJob", object }
}

async fn all(audit: &Audit) -> Vec<String> {
    let (mut lines, mut after) = (Vec::new(), 0);
    loop {
        let page = audit.page(AuditAsk { after, limit: 100, ..AuditAsk::default() }).await.expect("a page");
        lines.extend(page.lines);
        if !page.more {
            return lines;
        }
        assert!(page.last > after);
        after = page.last;
    }
}

/// The numbers of a chain that is whole.
fn verified(lines: &[String]) -> Option<(u64, u64)> {
    let mut verifier = Verifier::default();
    for line in lines {
        verifier.line(line).unwrap_or_else(|broken| panic!("{broken}: {line}"));
    }
    verifier.span()
}

#[tokio::test]
async fn a_chain_goes_on_after_a_restart_and_a_torn_write() {
    let (dir, env) = (tempfile::tempdir().expect("a folder"), Env::system());
    for round in 0..3_u64 {
        let (audit, task) = Audit::open(options(dir.path(), 1 << 30), &Metrics::new(), &env).expect("opens");
        for at in 0..10 {
            audit.done(&caller(), attempted(&format!("job/{round}.{at}"))).await.expect("recorded");
        }
        assert_eq!(verified(&all(&audit).await), Some((1, (round + 1) * 10)));
        task.abort();
        // A power cut in the middle of the next lines, of which one sector was not written.
        let last = std::fs::read_dir(dir.path()).expect("a folder").map(|entry| entry.expect("a file").path()).max();
        let last = last.expect("a segment");
        let mut bytes = std::fs::read(&last).expect("a segment");
        assert_eq!(bytes.len(), 4 << 20, "a sync need not write its size");
        let torn = br#"{"number":11,"contr"#;
        let end = bytes.iter().position(|byte| *byte == 0).expect("zeros");
        bytes[end..end + torn.len()].copy_from_slice(torn);
        bytes[end + 512..end + 520].copy_from_slice(b"\"y\"}\n{}\n");
        std::fs::write(&last, bytes).expect("writes");
    }
    let (audit, _task) = Audit::open(options(dir.path(), 1 << 30), &Metrics::new(), &env).expect("opens");
    assert_eq!(verified(&all(&audit).await), Some((1, 30)));
    let other = AuditOptions { controller: "2".to_owned(), ..options(dir.path(), 1 << 30) };
    assert!(Audit::open(other, &Metrics::new(), &env).is_err(), "the files of another controller");
}

#[tokio::test]
async fn denials_are_bounded_and_counted() {
    let (dir, env, metrics) = (tempfile::tempdir().expect("a folder"), Env::system(), Metrics::new());
    let (audit, _task) = Audit::open(options(dir.path(), 1 << 30), &metrics, &env).expect("opens");
    let (caller, error) = (caller(), Error::Unauthenticated("the token is not valid here"));
    futures::future::join_all((0..2_000).map(|_| audit.denied(&caller, attempted("job/1"), &error))).await;
    audit.done(&caller, attempted("job/2")).await.expect("recorded");
    let lines = all(&audit).await;
    verified(&lines);
    let records: Vec<Record> = lines.iter().map(|line| Verifier::default().line(line).expect("a record")).collect();
    let denied = records.iter().filter(|record| record.decision == Decision::Deny).count() as u64;
    let dropped: u64 = records.iter().map(|record| record.count).sum();
    assert!((50..2_000).contains(&denied) && denied + dropped == 2_000, "{denied} and {dropped}");
    assert!(records.iter().any(|record| record.code == "E2106"));
    let page = audit
        .page(AuditAsk { after: 0, filter: Filter { decision: Some(Decision::Allow), ..Filter::default() }, limit: 10 })
        .await
        .expect("a page");
    assert_eq!((page.lines.len(), page.more, page.end), (1, false, lines.len() as u64), "the change is there");
    let scrape = metrics.render();
    for line in [
        format!("atlas_audit_dropped_total {dropped}\n"),
        format!("atlas_audit_records_total{{atlas_audit_decision=\"deny\"}} {denied}\n"),
        "atlas_audit_records_total{atlas_audit_decision=\"allow\"} 1\n".to_owned(),
    ] {
        assert!(scrape.contains(&line), "{line}{scrape}");
    }
}

#[tokio::test]
async fn a_flood_of_strangers_is_counted_and_keeps_no_other_out() {
    let (dir, env, metrics) = (tempfile::tempdir().expect("a folder"), Env::system(), Metrics::new());
    let (audit, _task) = Audit::open(options(dir.path(), 1 << 30), &metrics, &env).expect("opens");
    let stranger = |claimed: String| TurnedAway {
        door: Door::Worker,
        proven: String::new(),
        claimed,
        verb: "openSession",
        why: Some(atlas_api::catalogue::NOT_ENROLLED),
    };
    for at in 0..5_000 {
        audit.turned_away(stranger(format!("node/{at}")));
    }
    audit.turned_away(TurnedAway { proven: "node/w1".to_owned(), ..stranger("node/w2".to_owned()) });
    audit.denied(&caller(), attempted("job/1"), &Error::Unauthenticated("the token is not valid here")).await;
    audit.done(&caller(), attempted("job/2")).await.expect("recorded");
    let lines = all(&audit).await;
    verified(&lines);
    let records: Vec<Record> = lines.iter().map(|line| Verifier::default().line(line).expect("a record")).collect();
    let strangers =
        records.iter().filter(|record| record.object.starts_with("node/") && record.principal == "anonymous");
    let (strangers, dropped) = (strangers.count() as u64, records.iter().map(|record| record.count).sum::<u64>());
    assert!((50..500).contains(&strangers) && strangers + dropped == 5_000, "{strangers} and {dropped}");
    assert!(lines.iter().any(|line| line.contains(r#""principal":"node/w1","door":"worker","verb":"openSession","object":"node/w2","decision":"deny","code":"E2108""#)), "{lines:?}");
    assert!(records.iter().any(|record| record.object == "job/1" && record.decision == Decision::Deny));
    assert!(metrics.render().contains(&format!("atlas_audit_dropped_total {dropped}\n")));
}

#[tokio::test]
async fn the_oldest_files_are_removed_and_the_rest_verifies() {
    let (dir, env) = (tempfile::tempdir().expect("a folder"), Env::system());
    let (audit, _task) = Audit::open(options(dir.path(), 256 << 10), &Metrics::new(), &env).expect("opens");
    let long = "x".repeat(500);
    for _ in 0..18 {
        let Some(inner) = &audit.0 else { panic!("it is on") };
        let records = (0..100).map(|_| inner.record(&caller(), attempted(&long), Decision::Allow));
        assert!(inner.is_durable(inner.put(records)).await, "it is written");
    }
    let lines = all(&audit).await;
    let (first, last) = verified(&lines).expect("records");
    assert!(first > 1 && last == 1_800, "{first} to {last}");
    let bytes: u64 = std::fs::read_dir(dir.path())
        .expect("a folder")
        .map(|entry| entry.expect("a file").metadata().expect("its size").len())
        .sum();
    assert!(bytes <= 512 << 10, "{bytes}");
}

#[tokio::test]
async fn damage_is_shown_as_it_is() {
    let (dir, env) = (tempfile::tempdir().expect("a folder"), Env::system());
    let (audit, task) = Audit::open(options(dir.path(), 1 << 30), &Metrics::new(), &env).expect("opens");
    for at in 0..5 {
        audit.done(&caller(), attempted(&format!("job/{at}"))).await.expect("recorded");
    }
    task.abort();
    let path = std::fs::read_dir(dir.path()).expect("a folder").next().expect("a file").expect("a file").path();
    let text = std::fs::read_to_string(&path).expect("a text").replace("job/2", "job/9");
    let text = text.trim_end_matches('\0');
    std::fs::write(&path, format!("{text}{}\n", "y".repeat(1 << 20))).expect("writes");
    let (audit, _task) = Audit::open(options(dir.path(), 1 << 30), &Metrics::new(), &env).expect("opens all the same");
    let lines = all(&audit).await;
    let mut verifier = Verifier::default();
    let broken: Vec<bool> = lines.iter().map(|line| verifier.line(line).is_err()).collect();
    assert!(broken.contains(&true) && lines.len() >= 5, "{lines:?}");
    audit.done(&caller(), attempted("job/5")).await.expect("recorded");
    let last = all(&audit).await;
    assert!(last.last().is_some_and(|line| line.contains("job/5") && !line.contains(GENESIS)));
}

/// A file system with so many bytes left.
struct Small {
    left: Arc<AtomicU64>,
}

struct SmallWriter {
    file: Box<dyn FileWriter>,
    left: Arc<AtomicU64>,
}

impl Write for SmallWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = usize::try_from(self.left.load(Ordering::SeqCst)).expect("few bytes").min(bytes.len());
        if left == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let written = self.file.write(&bytes[..left])?;
        self.left.fetch_sub(written as u64, Ordering::SeqCst);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl FileWriter for SmallWriter {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

impl Files for Small {
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileWriter>> {
        Ok(Box::new(SmallWriter { file: SystemFiles.create(path)?, left: self.left.clone() }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn FileReader>> {
        SystemFiles.open(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        SystemFiles.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        SystemFiles.sync_dir(dir)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        SystemFiles.read(path)
    }

    fn write_durably(&self, _path: &Path, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        SystemFiles.create_dir_all(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        SystemFiles.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        SystemFiles.list(dir)
    }

    fn size(&self, path: &Path) -> io::Result<Option<u64>> {
        SystemFiles.size(path)
    }
}

fn cancel(job: u64) -> Request {
    let command = atlas_types::CancelJob { job: atlas_types::JobId(job), running: true };
    crate::requests::of(&caller(), atlas_types::Command::CancelJob(command))
}

/// A change on a full disk is not confirmed, the next one is refused before it is made, and with room again all are recorded once.
#[tokio::test]
async fn a_full_disk_stops_changes_until_there_is_room() {
    let (dir, left) = (tempfile::tempdir().expect("a folder"), Arc::new(AtomicU64::new(1 << 20)));
    let env = Env { files: Arc::new(Small { left: left.clone() }), ..Env::system() };
    let (audit, _task) = Audit::open(options(dir.path(), 1 << 30), &Metrics::new(), &env).expect("opens");
    audit.done(&caller(), attempted("job/1")).await.expect("recorded");
    // The write of two records ends in the middle of the second.
    left.store(600, Ordering::SeqCst);
    let inner = audit.0.clone().expect("it is on");
    let two = ["job/2", "job/3"].map(|job| inner.record(&caller(), attempted(job), Decision::Allow));
    assert!(!inner.is_durable(inner.put(two)).await);
    assert!(matches!(audit.begin(&[cancel(4)]), Err(Error::AuditFailing)));
    let error = Error::Unauthenticated("the token is not valid here");
    tokio::time::timeout(DURABLE_MAX, audit.denied(&caller(), attempted("job/5"), &error)).await.expect("waits not");
    let page = audit.page(AuditAsk { limit: 100, ..AuditAsk::default() }).await.expect("reads are answered");
    assert!(page.lines[0].contains("job/1"));

    left.store(1 << 20, Ordering::SeqCst);
    audit.done(&caller(), attempted("job/6")).await.expect("recorded");
    assert!(audit.begin(&[]).is_ok());
    let lines = all(&audit).await;
    assert_eq!(verified(&lines), Some((1, 5)));
    for (line, job) in lines.iter().zip(["job/1", "job/2", "job/3", "job/5", "job/6"]) {
        assert!(line.contains(&format!("\"{job}\"")), "{job}: {line}");
    }
    // The same on a disk that is full again, whose last records cannot be copied.
    let (audit, _task) = Audit::open(options(dir.path(), 1 << 30), &Metrics::new(), &env).expect("opens");
    assert_eq!(all(&audit).await, lines);
}

fn cancelled(accepted: bool) -> Answers {
    vec![Ok(Outcome::Cancelled { accepted })]
}

fn unknown(job: u64) -> Result<Outcome, Rejection> {
    Err(Rejection::UnknownJob { job: atlas_types::JobId(job) })
}

#[tokio::test]
async fn a_change_that_is_not_recorded_is_not_confirmed() {
    let (dir, left) = (tempfile::tempdir().expect("a folder"), Arc::new(AtomicU64::new(0)));
    let env = Env { files: Arc::new(Small { left }), ..Env::system() };
    let (audit, _task) = Audit::open(options(dir.path(), 1 << 30), &Metrics::new(), &env).expect("opens");
    let begun = audit.begin(&[cancel(1)]).expect("nothing failed yet");
    let answer = begun.with(async { Ok(cancelled(true)) }).await;
    assert!(matches!(answer, Err(Error::Unrecorded)), "{answer:?}");
}

#[tokio::test]
async fn what_came_to_nothing_has_a_second_record() {
    let (dir, env) = (tempfile::tempdir().expect("a folder"), Env::system());
    let (audit, _task) = Audit::open(options(dir.path(), 1 << 30), &Metrics::new(), &env).expect("opens");
    let begin = |jobs: &[u64]| {
        let requests: Vec<Request> = jobs.iter().copied().map(cancel).collect();
        audit.begin(&requests).expect("it can be recorded")
    };
    // The second of three is refused.
    let answers = begin(&[1, 2, 3]).with(async { Ok([cancelled(true), vec![unknown(2)], cancelled(false)].concat()) });
    assert_eq!(answers.await.expect("recorded").len(), 3);
    assert!(matches!(begin(&[4]).with(async { Err(Error::NoLeader) }).await, Err(Error::NoLeader)));
    // It may have been made, so nothing is said about it.
    let unsure = begin(&[5]).with(async { Err(Error::OutcomeUnknown) }).await;
    assert!(matches!(unsure, Err(Error::OutcomeUnknown)));
    // Whoever asked went away before the answer.
    drop(begin(&[6]));
    audit.settled().await;
    let lines = all(&audit).await;
    assert_eq!(verified(&lines), Some((1, 8)));
    let told: Vec<String> = lines
        .iter()
        .map(|line| Verifier::default().line(line).expect("a record"))
        .map(|record| format!("{} {} {}", record.decision.as_str(), record.object, record.code).trim_end().to_owned())
        .collect();
    let expected = [
        "allow job/job-0000000000000001",
        "allow job/job-0000000000000002",
        "allow job/job-0000000000000003",
        "failed job/job-0000000000000002 E3001",
        "allow job/job-0000000000000004",
        "failed job/job-0000000000000004 E4001",
        "allow job/job-0000000000000005",
        "allow job/job-0000000000000006",
    ];
    assert_eq!(told, expected);
}

/// A clock that is set by hand. Whoever waits has waited long enough, but something happens before.
#[derive(Default)]
struct Hand {
    now: Mutex<Duration>,
    before: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Clock for Hand {
    fn wall(&self) -> Timestamp {
        Timestamp(0)
    }

    fn monotonic(&self) -> Duration {
        *self.now.lock().expect("a time")
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let before = self.before.lock().expect("something").take();
        Box::pin(async { before.into_iter().for_each(|happens| happens()) })
    }
}

/// An audit that writes only what the test writes.
fn by_hand(dir: &Path) -> (Audit, Arc<Inner>, Arc<Hand>) {
    let clock = Arc::new(Hand::default());
    let env = Env { clock: clock.clone(), ..Env::system() };
    let (audit, task) = Audit::open(options(dir, 1 << 30), &Metrics::new(), &env).expect("opens");
    task.abort();
    let inner = audit.0.clone().expect("it is on");
    (audit, inner, clock)
}

/// Changes are refused until something is written, so they must not be when nothing is left to write.
#[tokio::test]
async fn a_record_that_is_written_at_the_last_moment_is_durable() {
    let dir = tempfile::tempdir().expect("a folder");
    let (audit, inner, clock) = by_hand(dir.path());
    let record = Arc::new(inner.record(&caller(), attempted("job/1"), Decision::Allow));
    let recording = inner.put([record.clone()]);
    let writer = inner.clone();
    *clock.before.lock().expect("nothing") = Some(Box::new(move || writer.tell_written(&[record])));
    assert!(inner.is_durable(recording).await);
    assert!(audit.begin(&[cancel(2)]).is_ok());
}

/// A disk that hangs is noticed while those who began to write still wait for the cluster.
#[tokio::test]
async fn changes_are_refused_once_a_record_waits_too_long() {
    let dir = tempfile::tempdir().expect("a folder");
    let (audit, inner, clock) = by_hand(dir.path());
    let _begun = audit.begin(&[cancel(1)]).expect("nothing waits");
    *clock.now.lock().expect("a time") = DURABLE_MAX;
    let _later = audit.begin(&[cancel(2)]).expect("the first does not wait too long yet");
    *clock.now.lock().expect("a time") += Duration::from_millis(1);
    assert!(matches!(audit.begin(&[cancel(3)]), Err(Error::AuditFailing)));
    let batch = inner.queue().batch();
    inner.tell_written(&batch[..1]);
    assert!(audit.begin(&[cancel(3)]).is_ok(), "the second is young");
    inner.tell_written(&batch[1..]);
    assert!(audit.begin(&[cancel(4)]).is_ok());
}
