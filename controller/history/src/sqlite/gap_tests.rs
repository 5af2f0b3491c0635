//! Tests a history that missed events and another one that fills the gap.

use std::path::Path;

use atlas_types::JobStatus;
use expect_test::expect;

use super::tests::{describe, event, file, job, life, open, synced};
use super::*;
use crate::Record;

/// A history with all events of jobs 1 to `jobs`, three each.
async fn whole(path: &Path, jobs: u64) -> SqliteHistory {
    let options = Options {
        sync_interval: Duration::from_millis(5),
        gather_interval: Duration::from_millis(1),
        ..Options::new(path.to_owned())
    };
    let history = SqliteHistory::open(options, Env::system(), |_| ()).expect("opens");
    for id in 1..=jobs {
        history.append(life(id * 3 - 2, id)).await.expect("queued");
    }
    synced(&history, jobs * 3).await;
    history
}

/// A history whose state came as a snapshot of all events up to `through`, with one job that the state still had.
async fn joined(path: &Path, through: u64) -> SqliteHistory {
    let history = open(path).expect("opens");
    let last = EndedJob { event: EventSeq(through), job: Arc::new(job(through / 3, JobStatus::Completed)) };
    history.resync(vec![last], EventSeq(through)).await.expect("queued");
    synced(&history, through).await;
    history
}

fn gap_of(history: &SqliteHistory) -> Option<Gap> {
    history.gaps().borrow().first().copied()
}

/// Fills the gap and returns how many parts that took.
async fn fill_all(history: &SqliteHistory, from: &SqliteHistory, bytes_max: usize) -> usize {
    let mut parts = 0;
    while let Some(gap) = gap_of(history) {
        let part = from.part(gap, bytes_max).await.expect("reads");
        history.fill(gap, part).await.expect("fits");
        parts += 1;
    }
    parts
}

#[tokio::test]
async fn a_gap_is_filled_in_parts_and_over_restarts() {
    let ((_one, path), (_two, other)) = (file(), file());
    let (from, history) = (whole(&other, 20).await, joined(&path, 60).await);
    assert_eq!(gap_of(&history), Some(Gap { after: EventSeq(0), through: EventSeq(60) }));
    assert!(matches!(history.events(EventSeq(0), 9).await, Err(HistoryError::Gone { .. })));
    assert_eq!(history.job(JobId(7)).await.expect("reads"), None);
    let gap = gap_of(&history).expect("a gap");
    let part = from.part(gap, 700).await.expect("reads");
    assert!(part.reached < EventSeq(60), "{:?}", part.reached);
    history.fill(gap, part.clone()).await.expect("fits");
    history.close().await.expect("closes");
    let history = open(&path).expect("opens again");
    assert_eq!(gap_of(&history), Some(Gap { after: part.reached, through: EventSeq(60) }));
    assert!(fill_all(&history, &from, 700).await > 2);
    history.append(life(61, 21)).await.expect("queued");
    synced(&history, 63).await;
    let (ours, theirs) = (history.events(EventSeq(0), 99).await, from.events(EventSeq(0), 99).await);
    let (ours, theirs) = (ours.expect("reads"), theirs.expect("reads"));
    assert_eq!(describe(&ours[..60]), describe(&theirs));
    for id in 1..=21 {
        assert_eq!(history.job(JobId(id)).await.expect("reads").as_deref(), Some(&job(id, JobStatus::Completed)));
    }
}

#[tokio::test]
async fn where_events_were_dropped_the_jobs_still_come() {
    let ((_one, path), (_two, other)) = (file(), file());
    // This history keeps only the latest ten events.
    let from = open(&other).expect("opens");
    for id in 1..=1_400 {
        from.append(life(id * 3 - 2, id)).await.expect("queued");
    }
    synced(&from, 4_200).await;
    let Err(HistoryError::Gone { earliest }) = from.events(EventSeq(0), 1).await else { panic!("nothing was dropped") };
    let history = joined(&path, 4_200).await;
    fill_all(&history, &from, 100_000).await;
    assert!(history.job(JobId(1)).await.expect("reads").is_some());
    assert!(history.job(JobId(1_399)).await.expect("reads").is_some());
    let gone = history.events(EventSeq(0), 1).await.expect_err("dropped there as well");
    assert_eq!(gone.to_string(), format!("events up to {earliest} have been dropped"));
    let (ours, theirs) = (history.events(EventSeq(4_190), 99).await, from.events(EventSeq(4_190), 99).await);
    assert_eq!(describe(&ours.expect("reads")), describe(&theirs.expect("reads")));
}

#[tokio::test]
async fn a_part_that_is_not_dense_changes_nothing() {
    let ((_one, path), (_two, other)) = (file(), file());
    let (from, history) = (whole(&other, 4).await, joined(&path, 12).await);
    let gap = gap_of(&history).expect("a gap");
    let good = from.part(gap, 1 << 20).await.expect("reads");
    let broken = |change: fn(&mut Part)| {
        let mut part = good.clone();
        change(&mut part);
        part
    };
    let parts = [
        broken(|part| drop(part.records.remove(3))),
        broken(|part| part.records.swap(0, 1)),
        broken(|part| part.records[2].job.clear()),
        broken(|part| part.records[0].job = part.records[2].job.clone()),
        broken(|part| part.records[5].event.truncate(9)),
        broken(|part| part.records[5].event.push(0)),
        broken(|part| part.records[5].job.truncate(20)),
        broken(|part| part.records.truncate(4)),
        broken(|part| part.reached = EventSeq(13)),
        broken(|part| part.reached = EventSeq(0)),
        broken(|part| part.records[1].event = vec![0xFF; 40]),
        broken(|part| part.floor = EventSeq(u64::MAX)),
        broken(|part| part.records.push(Record { seq: EventSeq(u64::MAX), event: vec![], job: vec![] })),
    ];
    let mut told = String::new();
    for part in parts {
        told += &match history.fill(gap, part).await {
            Ok(()) => "taken\n".to_owned(),
            Err(error) => format!("{error}\n"),
        };
    }
    expect![[r#"
        a part of history is refused: it has gaps
        a part of history is refused: it has gaps
        a part of history is refused: an ended job is missing
        a part of history is refused: an ended job is missing
        a record of history is malformed: events are cut short
        a part of history is refused: an event has another number than announced
        a record of history is malformed
        a part of history is refused: it ends before its announced end
        a part of history is refused: it does not begin at missing events, or extends beyond them
        a part of history is refused: it does not begin at missing events, or extends beyond them
        a record of history is malformed: events are cut short
        a part of history is refused: it has gaps
        a part of history is refused: it has gaps
    "#]]
    .assert_eq(&told);
    assert_eq!(gap_of(&history), Some(gap));
    assert_eq!(history.job(JobId(1)).await.expect("reads"), None);
    history.fill(gap, good).await.expect("fits");
    assert_eq!(gap_of(&history), None);
}

#[tokio::test]
async fn a_history_with_a_gap_of_its_own_gives_what_lies_before_it() {
    let ((_one, path), (_two, other), (_three, third)) = (file(), file(), file());
    let from = open(&other).expect("opens");
    for id in 1..=3 {
        from.append(life(id * 3 - 2, id)).await.expect("queued");
    }
    // Event 21 arrives without a resync, so events 10 to 20 become a gap as well.
    from.append([event(21, 7, JobStatus::Running, JobStatus::Failed)].into()).await.expect("queued");
    synced(&from, 21).await;
    assert_eq!(gap_of(&from), Some(Gap { after: EventSeq(9), through: EventSeq(20) }));
    let history = joined(&path, 21).await;
    let gap = gap_of(&history).expect("a gap");
    let part = from.part(gap, 1 << 20).await.expect("reads");
    assert_eq!((part.reached, part.known), (EventSeq(9), EventSeq(21)));
    history.fill(gap, part).await.expect("fits");
    let gap = gap_of(&history).expect("a gap");
    let nothing = from.part(gap, 1 << 20).await.expect("reads");
    assert_eq!((nothing.reached, nothing.records.len()), (EventSeq(9), 0));
    // A third history has the remaining events. Events that were filled twice are stored once.
    let whole = whole(&third, 7).await;
    fill_all(&history, &whole, 200).await;
    assert_eq!(history.events(EventSeq(0), 99).await.expect("reads").len(), 21);
}

#[tokio::test]
async fn a_gap_that_nobody_can_fill_is_given_up() {
    let (_dir, path) = file();
    let history = joined(&path, 30).await;
    let gap = gap_of(&history).expect("a gap");
    history.give_up(gap).await.expect("written");
    history.give_up(gap).await.expect("written already");
    assert_eq!(gap_of(&history), None);
    let gone = history.events(EventSeq(29), 5).await.expect_err("gone");
    assert_eq!(gone.to_string(), "events up to 31 have been dropped");
    assert!(history.events(EventSeq(30), 5).await.expect("reads").is_empty());
}

#[tokio::test]
async fn what_ended_jobs_refer_to_is_known() {
    let ((_one, path), (_two, other)) = (file(), file());
    let (from, history) = (whole(&other, 4).await, joined(&path, 12).await);
    fill_all(&history, &from, 1 << 20).await;
    for history in [&from, &history] {
        let found = history.artifacts(EventSeq(3), 2).await.expect("reads");
        assert_eq!(found, [6, 9, 12].map(|seq| (EventSeq(seq), Digest([1; 32]))));
        let refers = history.refers(vec![Digest([1; 32]), Digest([7; 32])]).await.expect("reads");
        assert_eq!(refers, [true, false], "a package is the state's to keep");
    }
}

#[tokio::test]
async fn a_part_reads_as_events() {
    let (_dir, path) = file();
    let from = whole(&path, 2).await;
    let part = from.part(Gap { after: EventSeq(1), through: EventSeq(u64::MAX) }, 1 << 20).await.expect("reads");
    let events = part.events(EventSeq(1)).expect("decodes");
    assert_eq!(describe(&events), describe(&from.events(EventSeq(1), 99).await.expect("reads")));
    assert!(matches!(part.events(EventSeq(0)), Err(HistoryError::Part(_))));
}
