//! Tests interleavings of the writer with callers that flush themselves, step by step.

use std::sync::mpsc;

use super::*;
use crate::sim::SimDisk;

/// The time limit for every wait in these tests, even on a busy machine.
const SOON: Duration = Duration::from_secs(20);

/// The size of an entry that does not fit into the first segment.
const LARGE_BYTES: usize = 60 << 10;

fn open(disk: &SimDisk) -> Log {
    let limits = Limits { first_segment_bytes: 64 << 10, segment_bytes: 64 << 10, ..Limits::default() };
    // Durable marks are off, because writing them also wakes the writer.
    let log = Log::open(Box::new(disk.unmarked_driver()), limits, Some(7), &Env::system()).expect("opens");
    log.set_inline(false);
    log
}

fn entry(index: u64, bytes: usize) -> [(LogId, Bytes); 1] {
    [(LogId { term: 1, node: 1, index }, Bytes::from(vec![7; bytes]))]
}

/// A callback, and a channel with the outcome passed to it.
fn answer() -> (AppendAnswer, mpsc::Receiver<Result<(), LogError>>) {
    let (tell, told) = mpsc::channel();
    // A test that dropped the receiver already has its answer.
    (Box::new(move |outcome| drop(tell.send(outcome))), told)
}

/// Waits until the writer is idle.
fn writer_is_idle(log: &Log) {
    while !log.shared.view().idle {
        std::thread::yield_now();
    }
}

/// A log with one durable entry and an idle writer, on a disk without space for another segment.
fn full(disk: &SimDisk) -> Log {
    let log = open(disk);
    let (done, told) = answer();
    log.append(entry(0, 10), done).expect("appended");
    told.recv_timeout(SOON).expect("in time").expect("durable");
    disk.set_capacity(Some(0));
    writer_is_idle(&log);
    log
}

#[test]
fn what_a_mark_puts_back_is_written_when_there_is_room() {
    type Mark = fn(&Log) -> Result<(), LogError>;
    let vote: Mark = |log| log.save_vote(Vote { term: 2, node: 1, committed: false });
    let truncate: Mark = |log| log.truncate(2);
    let purge: Mark = |log| log.purge(LogId { term: 1, node: 1, index: 0 });
    for mark in [vote, truncate, purge] {
        let disk = SimDisk::default();
        let log = full(&disk);
        // The state after the writer checked while `mark` held the staged records: the writer is idle although a record
        // is staged.
        let (done, told) = answer();
        log.stage(entry(1, LARGE_BYTES), done).expect("staged");
        mark(&log).expect("a mark has room");
        assert!(log.waits_for_space());
        disk.set_capacity(None);
        told.recv_timeout(SOON).expect("the writer was woken").expect("durable");
    }
}

#[tokio::test]
async fn what_a_mark_puts_back_is_written_by_a_task_too() {
    let disk = SimDisk::default();
    let limits = Limits { first_segment_bytes: 64 << 10, segment_bytes: 64 << 10, ..Limits::default() };
    let log = Log::open(Box::new(disk.slow_driver().unmarked()), limits, Some(7), &Env::system()).expect("opens");
    let (done, told) = answer();
    log.append(entry(0, 10), done).expect("appended");
    told.try_recv().expect("at once").expect("durable");
    disk.set_capacity(Some(0));
    // Lets the writer run until it waits.
    tokio::task::yield_now().await;
    let (tell, told) = tokio::sync::oneshot::channel();
    log.stage(entry(1, LARGE_BYTES), Box::new(move |outcome| drop(tell.send(outcome)))).expect("staged");
    log.save_vote(Vote { term: 2, node: 1, committed: false }).expect("a mark has room");
    disk.set_capacity(None);
    let told = tokio::time::timeout(SOON, told).await;
    told.expect("the writer was woken").expect("answered").expect("durable");
}

#[test]
fn whoever_staged_while_the_log_failed_is_answered() {
    let disk = SimDisk::default();
    let log = open(&disk);
    log.set_inline(true);
    let (done, told) = answer();
    log.stage(entry(0, 10), done).expect("staged");
    // A write of another thread fails after this one staged its entry and before it flushes.
    log.shared.view().poison = Some("failed on purpose".to_owned());
    log.flush_here(log.shared.writer());
    assert!(matches!(told.recv_timeout(SOON).expect("answered"), Err(LogError::Poisoned { .. })));
}
