//! Tests the log under crashes, damage and disk failures.

mod marks;

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use atlas_env::{Clock, Env};
use atlas_types::Timestamp;
use bytes::Bytes;
use proptest::prelude::*;

use super::block::BLOCK_BYTES;
use super::sim::{SimDisk, next};
use super::{Limits, Log, LogError, LogId, Vote};

/// Small segments, so that a few entries fill several.
fn limits() -> Limits {
    Limits { first_segment_bytes: 32 << 10, segment_bytes: 64 << 10, cache_bytes: 2_000, ..Limits::default() }
}

fn open(disk: &SimDisk) -> Result<Log, LogError> {
    Log::open(Box::new(disk.driver()), limits(), Some(7), &Env::system())
}

fn id(term: u64, index: u64) -> LogId {
    LogId { term, node: 1, index }
}

fn body(term: u64, index: u64) -> Bytes {
    let len = usize::try_from(index * 37 % 300).expect("small");
    Bytes::from(format!("{term}.{index}:{}", "x".repeat(len)))
}

/// Appends one group and returns the outcome from its callback.
fn append(log: &Log, term: u64, indexes: std::ops::Range<u64>) -> Result<(), LogError> {
    let outcome = Arc::new(Mutex::new(None));
    let theirs = Arc::clone(&outcome);
    let done = Box::new(move |result| *theirs.lock().expect("not poisoned") = Some(result));
    log.append(indexes.map(|index| (id(term, index), body(term, index))), done)?;
    outcome.lock().expect("not poisoned").take().expect("inline appends answer before they return")
}

fn indexes(log: &Log) -> Vec<u64> {
    let entries = log.read(0, u64::MAX, usize::MAX).expect("readable");
    for (id, data) in &entries {
        assert_eq!(*data, body(id.term, id.index), "entry {id:?}");
    }
    entries.into_iter().map(|(id, _)| id.index).collect()
}

#[test]
fn entries_vote_and_marks_are_there_again_after_a_restart() {
    let disk = SimDisk::default();
    let log = open(&disk).expect("opens");
    let vote = Vote { term: 2, node: 1, committed: true };
    log.save_vote(vote).expect("saved");
    for index in 0..500 {
        log.save_committed(id(2, index)).expect("noted");
        append(&log, 2, index..index + 1).expect("appended");
    }
    log.truncate(400).expect("truncated");
    append(&log, 3, 400..410).expect("appended");
    log.purge(id(2, 99)).expect("purged");
    assert!(disk.sequences()[0] > 1, "whole segments are gone");
    disk.crash(1);
    let log = open(&disk).expect("opens");
    assert_eq!(indexes(&log), (100..410).collect::<Vec<_>>());
    assert_eq!((log.vote(), log.committed()), (Some(vote), Some(id(2, 499))));
    assert_eq!(log.bounds(), (Some(id(2, 99)), Some(id(3, 409))));
}

#[test]
fn a_snapshot_ahead_of_the_log_empties_it() {
    let disk = SimDisk::default();
    let log = open(&disk).expect("opens");
    append(&log, 1, 0..10).expect("appended");
    log.purge(id(2, 50)).expect("purged");
    append(&log, 2, 51..53).expect("appended");
    drop(log);
    assert_eq!(indexes(&open(&disk).expect("opens")), [51, 52]);
}

#[test]
fn two_clusters_do_not_share_a_log() {
    let disk = SimDisk::default();
    drop(append(&open(&disk).expect("opens"), 1, 0..1));
    let other = Log::open(Box::new(disk.driver()), limits(), Some(8), &Env::system());
    assert!(matches!(other, Err(LogError::OtherCluster { found: 7, expected: 8, .. })));
    let any = Log::open(Box::new(disk.driver()), limits(), None, &Env::system()).expect("opens");
    assert_eq!(any.cluster_id(), 7);
}

#[test]
fn a_failed_sync_or_write_is_final() {
    for fail in [SimDisk::fail_sync, SimDisk::fail_write] {
        let disk = SimDisk::default();
        let log = open(&disk).expect("opens");
        append(&log, 1, 0..3).expect("appended");
        fail(&disk, 0);
        assert!(matches!(append(&log, 1, 3..4), Err(LogError::Poisoned { .. })));
        let syncs = disk.syncs();
        assert!(append(&log, 1, 4..5).is_err());
        assert!(log.save_vote(Vote { term: 1, node: 1, committed: false }).is_err());
        assert_eq!(disk.syncs(), syncs, "it is never tried again");
        assert!(log.poison().is_some());
        disk.crash(3);
        let found = indexes(&open(&disk).expect("opens"));
        assert!(found == [0, 1, 2] || found == [0, 1, 2, 3], "{found:?}");
    }
}

/// Waits a few seconds at most until `reached` is true.
fn eventually(what: &str, reached: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if reached() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not in time: {what}");
}

/// A log on a disk that has just become full. Its last entry waits for space.
struct Full {
    disk: SimDisk,
    log: Log,
    /// In the order of the acknowledgements.
    acknowledged: Arc<Mutex<Vec<u64>>>,
    next: u64,
}

impl Full {
    fn new(inline: bool) -> Self {
        let disk = SimDisk::default();
        let log = open_roomy(&disk).expect("opens");
        log.set_inline(inline);
        append_now(&log, 0);
        disk.set_capacity(Some(0));
        let mut full = Self { disk, log, acknowledged: Arc::default(), next: 1 };
        while !full.log.waits_for_space() {
            let index = full.append(1);
            assert!(index < 2_000, "the disk never fills");
            // The writer thread may process the entry late.
            let done = || full.acknowledged().last() == Some(&index);
            eventually("it is written, or waits for room", || done() || full.log.waits_for_space());
        }
        assert!(full.acknowledged().len() < full.next as usize - 1);
        full
    }

    /// Appends the next entry and returns its index.
    fn append(&mut self, term: u64) -> u64 {
        let (index, theirs) = (self.next, Arc::clone(&self.acknowledged));
        let done = Box::new(move |result: Result<(), LogError>| {
            result.expect("a full disk is no failure");
            theirs.lock().expect("not poisoned").push(index);
        });
        self.log.append([(id(term, index), body(term, index))], done).expect("appended");
        self.next += 1;
        index
    }

    fn acknowledged(&self) -> Vec<u64> {
        self.acknowledged.lock().expect("not poisoned").clone()
    }

    /// Runs `work`, which must not wait for disk space, on another thread with a time limit.
    fn at_once(&self, what: &str, work: impl FnOnce(&Log) -> Result<(), LogError> + Send + 'static) {
        let (log, (tell, told)) = (self.log.clone(), mpsc::channel());
        let begun = Env::system().thread("log-test", move || drop(tell.send(work(&log))));
        drop(begun.expect("a thread"));
        let outcome = told.recv_timeout(Duration::from_secs(10));
        outcome.unwrap_or_else(|_| panic!("{what} waits for room")).expect("a full disk is no failure");
        assert_eq!(self.log.poison(), None);
    }

    /// Frees space, waits until `index` is durable, crashes, and opens the remaining log.
    fn after_a_crash(self, index: u64) -> Log {
        self.disk.set_capacity(None);
        eventually("all is acknowledged", || self.acknowledged().last() == Some(&index));
        assert!(!self.log.waits_for_space());
        self.disk.crash(7);
        drop(self.log);
        open_roomy(&self.disk).expect("opens")
    }
}

#[test]
fn on_a_full_disk_entries_wait_and_votes_do_not() {
    for inline in [true, false] {
        let full = Full::new(inline);
        assert_eq!(indexes(&full.log), (0..full.next).collect::<Vec<_>>(), "what waits is readable");
        let vote = Vote { term: 2, node: 1, committed: false };
        full.at_once("a vote", move |log| log.save_vote(vote));
        let (acknowledged, next) = (Arc::clone(&full.acknowledged), full.next);
        let log = full.after_a_crash(next - 1);
        assert_eq!(*acknowledged.lock().expect("not poisoned"), (1..next).collect::<Vec<_>>());
        assert_eq!((indexes(&log), log.vote()), ((0..next).collect(), Some(vote)));
    }
}

#[test]
fn on_a_full_disk_truncating_does_not_wait() {
    // The truncation is after the first waiting entry, at it, or before it.
    for (inline, kept) in [(true, 1_i64), (true, 0), (true, -3), (false, 1), (false, 0), (false, -3)] {
        let mut full = Full::new(inline);
        full.append(1);
        let last = full.append(1);
        let next = (last - 2).checked_add_signed(kept).expect("there are more");
        full.at_once("a truncation", move |log| log.truncate(next));
        assert_eq!(indexes(&full.log), (0..next).collect::<Vec<_>>());
        assert_eq!(full.log.waits_for_space(), kept > 0, "only what is left waits");
        full.next = next;
        let index = full.append(2);
        assert_eq!(index, next);
        let log = full.after_a_crash(index);
        assert_eq!(indexes(&log), (0..=next).collect::<Vec<_>>());
        assert_eq!(log.bounds().1, Some(id(2, next)));
    }
}

#[test]
fn on_a_full_disk_purging_does_not_wait() {
    // Purges up to an entry that is durable, that waits, or that only a snapshot has.
    for (inline, ahead) in [(true, -3_i64), (true, 1), (true, 9), (false, -3), (false, 1), (false, 9)] {
        let mut full = Full::new(inline);
        full.append(1);
        let last = full.append(1);
        let upto = (last - 2).checked_add_signed(ahead).expect("there are more");
        full.at_once("a purge", move |log| log.purge(id(1, upto)));
        full.next = full.next.max(upto + 1);
        let left = (upto + 1..full.next).collect::<Vec<_>>();
        assert_eq!(indexes(&full.log), left);
        let index = full.append(1);
        let log = full.after_a_crash(index);
        assert_eq!(indexes(&log), (upto + 1..=index).collect::<Vec<_>>());
        assert_eq!(log.bounds().0, Some(id(1, upto)));
    }
}

#[test]
fn a_quota_that_is_used_up_is_a_full_disk() {
    let disk = SimDisk::default();
    disk.set_quota(Some(128 << 10));
    let log = open_roomy(&disk).expect("opens");
    append_now(&log, 0);
    for index in 1..2_000 {
        log.append([(id(1, index), body(1, index))], Box::new(|_| {})).expect("appended");
        if log.waits_for_space() {
            break;
        }
    }
    assert!(log.waits_for_space());
    assert_eq!(log.poison(), None);
}

#[test]
fn a_crash_on_a_full_disk_loses_nothing_that_was_acknowledged() {
    let disk = SimDisk::default();
    let log = open(&disk).expect("opens");
    append_now(&log, 0);
    disk.set_capacity(Some(0));
    let mut acknowledged = 0;
    for index in 1..2_000 {
        let answered = Arc::new(Mutex::new(false));
        let theirs = Arc::clone(&answered);
        let done = Box::new(move |result: Result<(), LogError>| *theirs.lock().expect("not poisoned") = result.is_ok());
        log.append([(id(1, index), body(1, index))], done).expect("appended");
        if log.waits_for_space() {
            break;
        }
        assert!(*answered.lock().expect("not poisoned"));
        acknowledged = index;
    }
    disk.crash(3);
    drop(log);
    assert_eq!(indexes(&open(&disk).expect("opens")), (0..=acknowledged).collect::<Vec<_>>());
}

/// A clock that advances by a fixed number of microseconds at every read, which is then the duration of a sync.
struct Steps(AtomicU64, AtomicU64);

impl Clock for Steps {
    fn wall(&self) -> Timestamp {
        Timestamp(0)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.1.fetch_add(self.0.load(Ordering::Relaxed), Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn a_follower_syncs_for_itself_while_its_disk_is_quick() {
    let disk = SimDisk::default();
    let clock = Arc::new(Steps(AtomicU64::new(100), AtomicU64::new(0)));
    let env = Env { clock: clock.clone(), ..Env::system() };
    let log = Log::open(Box::new(disk.driver()), limits(), Some(7), &env).expect("opens");
    log.set_inline(false);
    let here = std::thread::current().id();
    let synced_by = |index| {
        let by = Arc::new(Mutex::new(None));
        let theirs = Arc::clone(&by);
        let done = Box::new(move |outcome: Result<(), LogError>| {
            outcome.expect("synced");
            *theirs.lock().expect("not poisoned") = Some(std::thread::current().id());
        });
        log.append_led([(id(1, index), body(1, index))], done).expect("appended");
        eventually("it is durable", || by.lock().expect("not poisoned").is_some());
        by.lock().expect("not poisoned").expect("it is durable")
    };
    // The writer thread may still be starting and would take the caller's records. So the writer first writes an entry,
    // and saving the vote waits until it is done.
    let written = Arc::new(AtomicU64::new(0));
    let theirs = Arc::clone(&written);
    let done = Box::new(move |_| theirs.store(1, Ordering::Relaxed));
    log.append([(id(1, 0), body(1, 0))], done).expect("appended");
    eventually("the writer is at work", || written.load(Ordering::Relaxed) == 1);
    log.save_vote(Vote { term: 1, node: 1, committed: true }).expect("saved");
    // A slow sync is noticed only after it, so the caller does it. The writer does the following ones until enough fast
    // ones are counted.
    let took = [100, 20_000].into_iter().chain([100; 66]);
    let by_caller: Vec<_> = took
        .zip(1..)
        .map(|(micros, index)| {
            clock.0.store(micros, Ordering::Relaxed);
            synced_by(index) == here
        })
        .collect();
    assert_eq!(by_caller, [&[true; 2][..], &[false; 64], &[true; 2]].concat());
    drop(log);
    assert_eq!(indexes(&open(&disk).expect("opens")), (0..69).collect::<Vec<_>>());
}

/// A log whose segments are large enough to keep room for votes.
fn open_roomy(disk: &SimDisk) -> Result<Log, LogError> {
    let limits = Limits { first_segment_bytes: 64 << 10, ..limits() };
    Log::open(Box::new(disk.driver()), limits, Some(7), &Env::system())
}

/// Appends one entry and waits until it is durable.
fn append_now(log: &Log, index: u64) {
    let acknowledged = Arc::new(Mutex::new(false));
    let theirs = Arc::clone(&acknowledged);
    let done = Box::new(move |result: Result<(), LogError>| *theirs.lock().expect("not poisoned") = result.is_ok());
    log.append([(id(1, index), body(1, index))], done).expect("appended");
    eventually("the first entry is durable", || *acknowledged.lock().expect("not poisoned"));
}

/// A disk with groups of three entries and without a durable mark. Returns also the last segment and the offset of its
/// last group.
fn written() -> (SimDisk, u64, usize) {
    let disk = SimDisk::default();
    let log = open(&disk).expect("opens");
    for group in 0..20 {
        append(&log, 1, group * 3..group * 3 + 3).expect("appended");
    }
    let sequence = *disk.sequences().last().expect("there is one");
    let end = disk.with(sequence, |bytes| bytes.chunks(BLOCK_BYTES).rposition(|block| block.iter().any(|&b| b != 0)));
    let last = end.flatten().expect("something is written") * BLOCK_BYTES;
    // The power fails before the log can mark its last group.
    disk.crash(0);
    drop(log);
    disk.forget_mark();
    (disk, sequence, last)
}

#[test]
fn the_last_group_cut_at_every_byte_is_dropped_whole() {
    let (disk, sequence, last) = written();
    for cut in 0..BLOCK_BYTES {
        let copy = disk.copy();
        copy.with(sequence, |bytes| bytes[last + cut..].fill(0));
        let found = indexes(&open(&copy).expect("a torn tail is no damage"));
        assert!(found.len() == 57 || found.len() == 60, "cut {cut}: {} entries", found.len());
    }
}

#[test]
fn flipped_bits_are_an_error_or_lose_the_last_group() {
    let (disk, last_sequence, last) = written();
    let whole: Vec<u64> = (0..60).collect();
    let mut draw = 5;
    let (mut damaged, mut dropped) = (0, 0);
    for sequence in disk.sequences() {
        let len = disk.with(sequence, |bytes| bytes.len()).expect("exists");
        // Tests all header and record bytes at the start of each block, and a random sample of the other bytes.
        let starts = (0..len).step_by(BLOCK_BYTES).flat_map(|block| block..block + 120);
        let sample: Vec<usize> = starts.chain((0..500).map(|_| next(&mut draw) as usize % len)).collect();
        for at in sample {
            let copy = disk.copy();
            copy.with(sequence, |bytes| bytes[at] ^= 1 << (next(&mut draw) % 8));
            match open(&copy) {
                Err(LogError::Damaged { .. } | LogError::OtherCluster { .. } | LogError::NewerFormat { .. }) => {
                    damaged += 1;
                }
                Err(error) => panic!("byte {at} of segment {sequence}: {error}"),
                Ok(log) => {
                    let found = indexes(&log);
                    if found != whole {
                        assert_eq!(found, whole[..57], "byte {at} of segment {sequence}");
                        assert!(sequence == last_sequence && (at >= last || at < BLOCK_BYTES), "byte {at} was durable");
                        dropped += 1;
                    }
                }
            }
        }
    }
    assert!(damaged > 100 && dropped > 10, "{damaged} damaged, {dropped} dropped");
}

#[test]
fn after_an_orderly_close_no_group_can_be_lost() {
    let (disk, _, _) = written();
    drop(open(&disk).expect("opens"));
    let sequence = *disk.sequences().last().expect("there is one");
    let copy = disk.copy();
    let mark = copy.with(sequence, |bytes| {
        let blocks = bytes.chunks(BLOCK_BYTES);
        blocks.enumerate().filter(|(_, block)| block.iter().any(|&b| b != 0)).map(|(at, _)| at).collect::<Vec<_>>()
    });
    let mark = mark.expect("exists");
    let before = mark[mark.len() - 2] * BLOCK_BYTES;
    copy.with(sequence, |bytes| bytes[before + 60] ^= 1);
    assert!(matches!(open(&copy), Err(LogError::Damaged { offset, .. }) if offset == before as u64));
}

#[test]
fn a_missing_segment_is_damage() {
    let (disk, last, _) = written();
    assert!(last >= 2, "several segments");
    for gone in 1..last {
        let copy = disk.copy();
        copy.remove(gone);
        assert!(matches!(open(&copy), Err(LogError::Damaged { .. })), "segment {gone}");
    }
}

/// One action of a test.
#[derive(Debug, Clone)]
enum Step {
    Append(u64),
    Vote(u64),
    Truncate(u64),
    Purge(u64),
    Crash(u64),
    /// The process is killed.
    Kill,
    Reopen,
    /// The power fails while a group of this many entries is being written.
    CrashWhileWriting(u64, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..6_u64).prop_map(Step::Append),
        1 => (1..9_u64).prop_map(Step::Vote),
        1 => (0..5_u64).prop_map(Step::Truncate),
        1 => (0..30_u64).prop_map(Step::Purge),
        1 => any::<u64>().prop_map(Step::Crash),
        1 => Just(Step::Kill),
        1 => Just(Step::Reopen),
        2 => (1..6_u64, any::<u64>()).prop_map(|(count, seed)| Step::CrashWhileWriting(count, seed)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Compares the log with a model: after every restart all acknowledged entries are there, in order, and at most one
    /// unacknowledged group more.
    #[test]
    fn the_log_is_what_was_acknowledged(steps in proptest::collection::vec(step(), 1..60)) {
        let disk = SimDisk::default();
        let mut log = open(&disk).expect("opens");
        let (mut first, mut next_index, mut term, mut vote) = (0, 0, 1, None);
        for step in steps {
            match step {
                Step::Append(count) => {
                    append(&log, term, next_index..next_index + count).expect("appended");
                    next_index += count;
                }
                Step::Vote(node) => {
                    vote = Some(Vote { term, node, committed: false });
                    log.save_vote(Vote { term, node, committed: false }).expect("saved");
                }
                Step::Truncate(count) => {
                    next_index = next_index.saturating_sub(count).max(first);
                    term += 1;
                    log.truncate(next_index).expect("truncated");
                }
                Step::Purge(count) if count > 0 => {
                    let upto = first + count - 1;
                    log.purge(id(term, upto)).expect("purged");
                    first = upto + 1;
                    next_index = next_index.max(first);
                }
                Step::Purge(_) => {}
                Step::Crash(seed) => {
                    disk.crash(seed);
                    drop(log);
                    log = open(&disk).expect("opens");
                }
                Step::Kill => {
                    disk.kill();
                    drop(log);
                    log = open(&disk).expect("opens");
                }
                Step::Reopen => {
                    drop(log);
                    log = open(&disk).expect("opens");
                }
                Step::CrashWhileWriting(count, seed) => {
                    disk.fail_sync(0);
                    prop_assert!(append(&log, term, next_index..next_index + count).is_err());
                    disk.crash(seed);
                    drop(log);
                    log = open(&disk).expect("opens");
                    let found = log.bounds().1.map_or(0, |last| last.index + 1).max(first);
                    prop_assert!(found == next_index || found == next_index + count, "{} of {}", found, next_index);
                    next_index = found;
                }
            }
            prop_assert_eq!(indexes(&log), (first..next_index).collect::<Vec<_>>());
            prop_assert_eq!(log.vote(), vote);
        }
    }
}
