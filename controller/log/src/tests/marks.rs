//! The durable mark: damage below it is refused, and no crash at any time leaves a log that is refused.

use super::*;

/// How a machine or a process stops.
#[derive(Debug, Clone, Copy)]
enum Ending {
    /// The power fails.
    Power(u64),
    /// The process is killed.
    Kill,
}

fn end(disk: &SimDisk, ending: Ending) {
    match ending {
        Ending::Power(seed) => disk.crash(seed),
        Ending::Kill => disk.kill(),
    }
}

/// A log with groups of three entries, and the number of its entries.
fn filled(disk: &SimDisk, groups: u64) -> (Log, u64) {
    let log = open(disk).expect("opens");
    for group in 0..groups {
        append(&log, 1, group * 3..group * 3 + 3).expect("appended");
    }
    (log, groups * 3)
}

/// The last segment, and the range of its last group. Groups in these tests are one block long.
fn last_group(disk: &SimDisk) -> (u64, std::ops::Range<usize>) {
    let sequence = *disk.sequences().last().expect("there is one");
    let last = disk.with(sequence, |bytes| bytes.chunks(BLOCK_BYTES).rposition(|block| block.iter().any(|&b| b != 0)));
    let start = last.flatten().expect("something is written") * BLOCK_BYTES;
    let written = disk.with(sequence, |bytes| bytes[start..].iter().rposition(|&byte| byte != 0)).flatten();
    (sequence, start..start + written.expect("something is written") + 1)
}

/// Flips bits of the last group. The log must refuse to open and name the place.
fn check_refused(disk: &SimDisk, entries: u64) {
    let (sequence, group) = last_group(disk);
    assert_eq!(indexes(&open(&disk.copy()).expect("whole")), (0..entries).collect::<Vec<_>>());
    for at in group.clone() {
        let copy = disk.copy();
        copy.with(sequence, |bytes| bytes[at] ^= 1 << (at % 8));
        match open(&copy) {
            Err(LogError::Short { file, offset, found, durable }) => {
                // A segment whose first group is unreadable is reported as damaged from offset 0.
                let start = if group.start == BLOCK_BYTES { 0 } else { group.start as u64 };
                assert_eq!((file, offset), (format!("segment {sequence}"), start), "byte {at}");
                assert!(found < durable, "byte {at}");
            }
            Err(error) => panic!("byte {at}: {error}"),
            Ok(log) => panic!("byte {at}: {} of {entries} entries are left", indexes(&log).len()),
        }
        assert_eq!(copy.sequences(), disk.sequences(), "a log that is refused is left as it is");
    }
}

#[test]
fn a_bit_of_the_last_group_that_turns_after_a_kill_is_refused() {
    // The last group is the first of the log, lies in the middle of a segment, or is the first of a segment.
    for groups in [1, 2, 5, 7, 8, 20, 22] {
        let disk = SimDisk::default();
        let (log, entries) = filled(&disk, groups);
        disk.kill();
        drop(log);
        check_refused(&disk, entries);
    }
}

#[test]
fn a_bit_of_the_last_group_that_turns_in_an_idle_log_is_refused_even_after_a_loss_of_power() {
    let disk = SimDisk::default();
    let (log, entries) = filled(&disk, 5);
    eventually("the mark is synced", || disk.durable_mark().is_some_and(|mark| mark.group == 6));
    disk.crash(1);
    drop(log);
    check_refused(&disk, entries);
}

#[test]
fn a_lost_segment_at_the_end_is_refused() {
    let disk = SimDisk::default();
    let (log, _) = filled(&disk, 8);
    disk.kill();
    drop(log);
    let last = *disk.sequences().last().expect("there is one");
    assert!(last > 1);
    for kept in (0..last).rev() {
        disk.remove(kept + 1);
        let refused = open(&disk.copy()).map(|log| indexes(&log)).expect_err("entries are missing");
        assert!(
            matches!(&refused, LogError::Short { file, offset: 0, .. } if *file == format!("segment {}", kept + 1)),
            "{refused}"
        );
    }
}

/// The actions of a test until the machine or the process stops.
struct Script {
    acknowledged: u64,
    first: u64,
    /// The next index, and the term in which it is written.
    next: u64,
    term: u64,
}

impl Script {
    /// Appends, truncates, purges and votes; ends with the first failure.
    fn run(&mut self, log: &Log) -> Result<(), LogError> {
        for step in 0..12 {
            match step % 6 {
                // A new leader overrules this one, and written entries are truncated.
                2 if self.next > self.first + 2 => {
                    self.term += 1;
                    // If the truncation fails, its result is unknown.
                    self.acknowledged = self.acknowledged.min(self.next - 2);
                    log.truncate(self.next - 2)?;
                    self.next -= 2;
                }
                4 if self.next > self.first + 4 => {
                    log.purge(id(self.term, self.first + 2))?;
                    self.first += 3;
                }
                5 => log.save_vote(Vote { term: self.term, node: 1, committed: false })?,
                _ => {
                    append(log, self.term, self.next..self.next + 3)?;
                    self.next += 3;
                    self.acknowledged = self.next;
                }
            }
        }
        Ok(())
    }
}

#[test]
fn after_a_loss_of_power_at_any_operation_the_log_opens_with_all_that_was_acknowledged() {
    for seed in 0..4_u64 {
        let mut died = 0;
        for operation in 0..60 {
            let disk = SimDisk::default();
            let mut script = Script { acknowledged: 0, first: 0, next: 0, term: 1 };
            let mut log = open(&disk).expect("opens");
            // The second run starts with the data of the first and writes over it.
            for life in 0..2 {
                disk.lose_power_at_operation(operation);
                let failed = script.run(&log).is_err();
                died += u64::from(failed);
                disk.crash(seed + 100 * operation + 10_000 * life);
                drop(log);
                log = open(&disk).unwrap_or_else(|error| panic!("seed {seed}, operation {operation}: {error}"));
                let found = log.bounds().1.map_or(0, |last| last.index + 1);
                assert!(found >= script.acknowledged, "{found} of {} acknowledged", script.acknowledged);
                (script.next, script.acknowledged) = (found, found);
                script.first = log.bounds().0.map_or(0, |purged| purged.index + 1);
                script.term = script.term.max(log.bounds().1.map_or(1, |last| last.term));
            }
        }
        assert!(died > 60, "{died} lives ended in the midst of work");
    }
}

#[test]
fn a_power_loss_that_tears_the_mark_itself_is_no_damage() {
    let disk = SimDisk::default();
    let (log, entries) = filled(&disk, 4);
    disk.kill();
    drop(log);
    let len = disk.with_mark(|bytes| bytes.len());
    for at in (0..64).chain(4096..4160) {
        let copy = disk.copy();
        copy.with_mark(|bytes| bytes[at..len].fill(0));
        assert_eq!(indexes(&open(&copy).expect("opens")).len() as u64, entries, "cut at {at}");
        let copy = disk.copy();
        copy.with_mark(|bytes| bytes[at] ^= 0x20);
        assert_eq!(indexes(&open(&copy).expect("opens")).len() as u64, entries, "turned at {at}");
    }
}

#[test]
fn a_directory_without_a_mark_opens_and_has_one_from_then_on() {
    let disk = SimDisk::default();
    let log = Log::open(Box::new(disk.unmarked_driver()), limits(), Some(7), &Env::system()).expect("opens");
    append(&log, 1, 0..3).expect("appended");
    append(&log, 1, 3..6).expect("appended");
    disk.kill();
    drop(log);
    assert_eq!(disk.durable_mark(), None);
    // Without a mark, the last group may be torn.
    let (sequence, group) = last_group(&disk);
    let torn = disk.copy();
    torn.with(sequence, |bytes| bytes[group.start + 60] ^= 1);
    assert_eq!(indexes(&open(&torn).expect("a torn tail is no damage")), [0, 1, 2]);

    drop(open(&disk).expect("opens"));
    assert_eq!(indexes(&open(&disk).expect("opens")), [0, 1, 2, 3, 4, 5]);
    assert!(disk.durable_mark().is_some(), "it is synced when the log closes");
}

#[test]
fn a_program_without_marks_may_go_on_and_one_with_marks_after_it() {
    for ending in [Ending::Kill, Ending::Power(1), Ending::Power(2), Ending::Power(3)] {
        let disk = SimDisk::default();
        let (log, entries) = filled(&disk, 3);
        end(&disk, Ending::Kill);
        drop(log);
        let older = Log::open(Box::new(disk.unmarked_driver()), limits(), Some(7), &Env::system()).expect("opens");
        append(&older, 2, entries..entries + 3).expect("appended");
        disk.fail_sync(0);
        assert!(append(&older, 2, entries + 3..entries + 6).is_err());
        end(&disk, ending);
        drop(older);
        let found = indexes(&open(&disk).expect("opens")).len() as u64;
        assert!(found == entries + 3 || found == entries + 6, "{found} entries, {ending:?}");
    }
}

#[test]
fn a_mark_of_another_cluster_says_nothing() {
    let disk = SimDisk::default();
    drop(filled(&disk, 3).0);
    disk.with_mark(|bytes| {
        let mark = crate::mark::Mark { cluster_id: 8, group: 1_000, sequence: 9, offset: 4096 };
        bytes[..64].copy_from_slice(&mark.encode());
        bytes[4096..4160].fill(0);
    });
    assert_eq!(indexes(&open(&disk).expect("opens")).len(), 9);
}

#[test]
fn a_mark_that_cannot_be_written_holds_nothing_up() {
    let disk = SimDisk::default();
    let log = open(&disk).expect("opens");
    append(&log, 1, 0..3).expect("appended");
    disk.fail_marks(true);
    append(&log, 1, 3..6).expect("appended");
    append(&log, 1, 6..9).expect("appended");
    assert_eq!(log.poison(), None);
    disk.kill();
    drop(log);
    disk.fail_marks(false);
    assert_eq!(indexes(&open(&disk).expect("opens")).len(), 9);
}
