//! The pure part of writing: turns records into groups, and decides where they are written and which segments are no
//! longer needed.

use std::collections::VecDeque;

use super::block::{BLOCK_BYTES, Block};
use super::mark::Mark;
use super::record::{LogId, Record, Vote};
use super::segment::{GROUP_HEADER_BYTES, GroupHeader, Header};

/// The position of an entry's record on disk. Kept small, because the log holds one per entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLocation {
    /// The segment's number.
    pub sequence: u32,
    /// The offset of the record in the segment.
    pub offset: u32,
    /// The size of the record, including its frame.
    pub len: u32,
    /// The checksum of the previous record, which seeds this record's checksum.
    pub seed: u32,
}

/// The segment that is being filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Active {
    /// Its number.
    pub sequence: u64,
    pub salt: u64,
    pub size: u64,
    /// The offset of the next group.
    pub position: u64,
}

/// The data that every segment repeats at its start, so that older segments can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    pub vote: Option<Vote>,
    /// The last entry known to be committed.
    pub committed: Option<LogId>,
    /// The last purged entry.
    pub purged: Option<LogId>,
}

impl Marks {
    /// Updates the marks from a record.
    pub fn note(&mut self, record: &Record) {
        match record {
            Record::Vote(vote) => self.vote = Some(*vote),
            Record::Committed(id) => self.committed = Some(*id),
            Record::Purge(id) => self.purged = Some(*id),
            Record::Entry { .. } | Record::Truncate(_) => {}
        }
    }

    fn records(&self) -> impl Iterator<Item = Record> + use<> {
        let vote = self.vote.map(Record::Vote);
        let committed = self.committed.map(Record::Committed);
        vote.into_iter().chain(committed).chain(self.purged.map(Record::Purge))
    }
}

/// A finished segment and the index of the last entry written to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedSegment {
    /// Its number.
    pub sequence: u64,
    /// The highest index in it; none if it holds no entry.
    pub last_index: Option<u64>,
}

/// The space at the end of a segment that entries leave free for votes and marks. Those must be writable even when the
/// disk has no space for another segment.
const MARKS_BYTES: u64 = 64 << 10;

/// The possible sizes of a new segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The size that its first group needs.
    pub least: u64,
    /// The usual size of a segment.
    pub usual: u64,
}

/// One group to write: first create the segment if `create` is set, then write the block, then sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WritePlan {
    /// The segment to create first.
    pub create: Option<Sizes>,
    /// The segment to write to.
    pub sequence: u64,
    /// The offset in the segment.
    pub offset: u64,
}

/// The state of the write side.
#[derive(Debug, Clone)]
pub struct Core {
    pub(super) cluster_id: u128,
    pub(super) salt: u64,
    pub(super) segment_bytes: u64,
    pub(super) first_segment_bytes: u64,
    pub(super) active: Option<Active>,
    pub(super) next_sequence: u64,
    /// The highest index in the active segment.
    pub(super) active_last_index: Option<u64>,
    pub(super) finished: VecDeque<FinishedSegment>,
    pub(super) group: u64,
    pub(super) chain: u32,
    pub(super) marks: Marks,
}

impl Core {
    /// An empty log.
    pub fn new(cluster_id: u128, salt: u64, first_segment_bytes: u64, segment_bytes: u64) -> Self {
        Self {
            cluster_id,
            salt,
            segment_bytes,
            first_segment_bytes,
            active: None,
            next_sequence: 1,
            active_last_index: None,
            finished: VecDeque::new(),
            group: 1,
            chain: 0,
            marks: Marks::default(),
        }
    }

    /// The cluster that the log belongs to.
    pub fn cluster_id(&self) -> u128 {
        self.cluster_id
    }

    /// The segment that is being filled.
    pub(super) fn active(&self) -> Option<Active> {
        self.active
    }

    /// The vote and marks after the last planned group.
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// A mark that all groups planned so far are durable; none before the first group.
    pub fn mark(&self) -> Option<Mark> {
        let Active { sequence, position: offset, .. } = self.active?;
        Some(Mark { cluster_id: self.cluster_id, group: self.group, sequence, offset })
    }

    /// Encodes `records` as one group into `block` and returns where to write it. `places` gets one location for each
    /// entry, in order.
    ///
    /// The plan must be executed before the next one is made. If that fails, the log is poisoned.
    pub fn plan(&mut self, records: &[Record], block: &mut Block, places: &mut Vec<RecordLocation>) -> WritePlan {
        let len: usize = records.iter().map(Record::encoded_len).sum();
        let create = self.next_segment(records).map(|(_, sizes)| self.open_next(sizes));
        let active = *self.active.as_ref().expect("a segment was opened above");
        let carried: Vec<Record> = if create.is_some() { self.marks.records().collect() } else { Vec::new() };
        let carried_len: usize = carried.iter().map(Record::encoded_len).sum();
        let header_bytes = if create.is_some() { BLOCK_BYTES } else { 0 };
        block.clear(header_bytes + GROUP_HEADER_BYTES + carried_len + len);
        let bytes = block.as_mut();
        if create.is_some() {
            let header = Header {
                cluster_id: self.cluster_id,
                sequence: active.sequence,
                salt: active.salt,
                group: self.group,
                chain: self.chain,
            };
            header.encode(bytes);
        }
        let group = GroupHeader {
            len: u32::try_from(carried_len + len).expect("a group is far smaller than 4 GiB"),
            sequence: active.sequence,
            salt: active.salt,
            group: self.group,
            life: self.salt,
            chain: self.chain,
        };
        self.chain = group.seed();
        group.encode(&mut bytes[header_bytes..]);
        let offset = if create.is_some() { 0 } else { active.position };
        let mut at = header_bytes + GROUP_HEADER_BYTES;
        for record in carried.iter().chain(records) {
            let record_len = record.encoded_len();
            let seed = self.chain;
            self.chain = record.encode(seed, &mut bytes[at..at + record_len]);
            self.marks.note(record);
            if let Record::Entry { id, .. } = record {
                self.active_last_index = self.active_last_index.max(Some(id.index));
                places.push(RecordLocation {
                    sequence: u32::try_from(active.sequence).expect("fewer than 4 billion segments"),
                    offset: u32::try_from(offset as usize + at).expect("a segment is smaller than 4 GiB"),
                    len: u32::try_from(record_len).expect("a record is smaller than 4 GiB"),
                    seed,
                });
            }
            at += record_len;
        }
        self.group += 1;
        let written = block.as_ref().len() as u64;
        let active = self.active.as_mut().expect("a segment was opened above");
        active.position = offset + written;
        WritePlan { create, sequence: active.sequence, offset }
    }

    /// The number and sizes of the segment that [`Core::plan`] will open for `records`, if they do not fit into the
    /// active one.
    pub fn next_segment(&self, records: &[Record]) -> Option<(u64, Sizes)> {
        let len: usize = records.iter().map(Record::encoded_len).sum();
        let padded = (GROUP_HEADER_BYTES + len).next_multiple_of(BLOCK_BYTES) as u64;
        let kept =
            |size| if records.iter().any(|record| matches!(record, Record::Entry { .. })) { kept(size) } else { 0 };
        if self.active.as_ref().is_some_and(|active| active.position + padded + kept(active.size) <= active.size) {
            return None;
        }
        let marks: usize = self.marks.records().map(|record| record.encoded_len()).sum();
        let least = (BLOCK_BYTES + (GROUP_HEADER_BYTES + marks + len).next_multiple_of(BLOCK_BYTES)) as u64;
        let usual = if self.next_sequence == 1 { self.first_segment_bytes } else { self.segment_bytes };
        Some((self.next_sequence, Sizes { least, usual: usual.max(least) }))
    }

    /// Makes the next segment the active one.
    fn open_next(&mut self, sizes: Sizes) -> Sizes {
        if let Some(active) = self.active.take() {
            self.finished.push_back(FinishedSegment { sequence: active.sequence, last_index: self.active_last_index });
        }
        self.active_last_index = None;
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.active = Some(Active { sequence, salt: self.salt, size: sizes.usual, position: BLOCK_BYTES as u64 });
        sizes
    }

    /// Sets the actual size of the new segment.
    pub fn created(&mut self, size: u64) {
        if let Some(active) = &mut self.active {
            active.size = size;
        }
    }

    /// Removes and returns the segments that contain only purged entries. Call it once the purge mark is durable.
    pub fn retire(&mut self) -> Vec<u64> {
        let purged = self.marks.purged.map(|id| id.index);
        let mut retired = Vec::new();
        // Every later segment repeats the vote and the marks, so a segment is needed only for its entries.
        while self.finished.front().is_some_and(|segment| segment.last_index <= purged) {
            retired.extend(self.finished.pop_front().map(|segment| segment.sequence));
        }
        retired
    }
}

/// The space that entries leave free in a segment of `size` bytes: a sixteenth, in whole blocks.
fn kept(size: u64) -> u64 {
    let kept = (size / 16).min(MARKS_BYTES);
    kept - kept % BLOCK_BYTES as u64
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn entry(index: u64, len: usize) -> Record {
        Record::Entry { id: LogId { term: 1, node: 1, index }, data: Bytes::from(vec![7; len]) }
    }

    #[test]
    fn groups_are_whole_blocks_one_behind_the_other() {
        let mut core = Core::new(1, 2, 1 << 20, 1 << 20);
        let (mut block, mut places) = (Block::default(), Vec::new());
        let plan = core.plan(&[entry(1, 10)], &mut block, &mut places);
        assert_eq!(plan, WritePlan { create: Some(Sizes { least: 8192, usual: 1 << 20 }), sequence: 1, offset: 0 });
        assert_eq!(block.as_ref().len(), 8192);
        let plan = core.plan(&[entry(2, 5000), entry(3, 1)], &mut block, &mut places);
        assert_eq!(plan, WritePlan { create: None, sequence: 1, offset: 8192 });
        assert_eq!(block.as_ref().len(), 8192);
        assert_eq!(places.iter().map(|place| place.offset).collect::<Vec<_>>(), [4144, 8240, 8240 + 33 + 5000]);
    }

    #[test]
    fn a_full_segment_is_followed_by_one_that_repeats_the_marks() {
        let mut core = Core::new(1, 2, 16384, 16384);
        let (mut block, mut places) = (Block::default(), Vec::new());
        core.plan(&[Record::Vote(Vote { term: 1, node: 1, committed: true }), entry(1, 1)], &mut block, &mut places);
        core.plan(&[entry(2, 1)], &mut block, &mut places);
        core.plan(&[entry(3, 1)], &mut block, &mut places);
        let plan = core.plan(&[entry(4, 100_000)], &mut block, &mut places);
        assert_eq!(plan, WritePlan { create: Some(Sizes { least: 106_496, usual: 106_496 }), sequence: 2, offset: 0 });
        assert!(core.retire().is_empty());
        core.plan(&[Record::Purge(LogId { term: 1, node: 1, index: 3 })], &mut block, &mut places);
        assert_eq!(core.retire(), [1]);
    }

    #[test]
    fn entries_leave_room_for_votes_at_the_end_of_a_segment() {
        let mut core = Core::new(1, 2, 128 << 10, 128 << 10);
        let (mut block, mut places) = (Block::default(), Vec::new());
        core.plan(&[entry(1, 10)], &mut block, &mut places);
        let mut index = 2;
        while core.next_segment(&[entry(index, 10)]).is_none() {
            core.plan(&[entry(index, 10)], &mut block, &mut places);
            index += 1;
        }
        let vote = Record::Vote(Vote { term: 2, node: 1, committed: false });
        for _ in 0..2 {
            assert_eq!(core.next_segment(std::slice::from_ref(&vote)), None);
            core.plan(std::slice::from_ref(&vote), &mut block, &mut places);
        }
        assert!(core.next_segment(&[vote]).is_some());
    }
}
