//! The durable mark: how far the log is known to be durable, stored outside of the groups.
//!
//! Without a mark, a damaged last group could be mistaken for a torn one although it was acknowledged, because no later
//! group proves that it was durable. A mark is written after the sync of its group, so that after a crash it never
//! covers too much. It is synced only when the log is idle: a mark lost in a power failure covers too little, which is
//! safe. Two slots alternate, so that a torn write leaves the previous mark.

use std::sync::Arc;

use super::driver::MarkFile;
use super::error::LogError;
use super::record::{u32_at, u64_at};

/// Slots in the file.
pub const SLOTS: usize = 2;
/// The distance between two slots: one block, so that no write touches both.
pub const SLOT_BYTES: usize = 4096;
/// The size of a mark, which lies within one sector.
pub const MARK_BYTES: usize = 64;
/// The size of the file.
pub const FILE_BYTES: usize = SLOTS * SLOT_BYTES;

const MAGIC: [u8; 8] = *b"ATLASMRK";
const FORMAT: u32 = 1;

/// The position up to which a log is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The cluster that the log belongs to.
    pub cluster_id: u128,
    /// Every group with a smaller number is durable.
    pub group: u64,
    /// The segment in which these groups end.
    pub sequence: u64,
    /// The offset in that segment.
    pub offset: u64,
}

impl Mark {
    /// Encodes the mark as the content of a slot.
    pub fn encode(&self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[12..28].copy_from_slice(&self.cluster_id.to_le_bytes());
        bytes[28..36].copy_from_slice(&self.group.to_le_bytes());
        bytes[36..44].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[44..52].copy_from_slice(&self.offset.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..MARK_BYTES - 4]);
        bytes[MARK_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a slot; none if it holds no valid mark of this format.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..MARK_BYTES)?;
        let whole = bytes[..8] == MAGIC && u32_at(bytes, MARK_BYTES - 4)? == crc32c::crc32c(&bytes[..MARK_BYTES - 4]);
        if !whole || u32_at(bytes, 8)? != FORMAT {
            return None;
        }
        Some(Self {
            cluster_id: u128::from(u64_at(bytes, 12)?) | (u128::from(u64_at(bytes, 20)?) << 64),
            group: u64_at(bytes, 28)?,
            sequence: u64_at(bytes, 36)?,
            offset: u64_at(bytes, 44)?,
        })
    }
}

/// The mark that covers the most groups, with its slot. A file without a mark belongs to a log that never had one.
pub fn furthest(file: &[u8]) -> Option<(usize, Mark)> {
    let slots = file.chunks(SLOT_BYTES).take(SLOTS).enumerate();
    slots.filter_map(|(slot, bytes)| Some((slot, Mark::decode(bytes)?))).max_by_key(|(_, mark)| mark.group)
}

/// The end of a log, as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// The number of its next group.
    pub group: u64,
    /// The segment in which its last group ends; 0 if it has no group.
    pub sequence: u64,
    /// The offset in that segment.
    pub offset: u64,
}

impl Mark {
    /// Refuses a log that ends before the mark. `begun` is the segment after the end, if one exists and nothing in it
    /// can be read.
    pub fn check(&self, end: LogEnd, begun: Option<u64>, name: impl Fn(u64) -> String) -> Result<(), LogError> {
        if end.group >= self.group {
            return Ok(());
        }
        let (sequence, offset) = match begun {
            Some(sequence) => (sequence, 0),
            // The segment in which the log continued is missing.
            None if self.sequence > end.sequence => (end.sequence + 1, 0),
            None => (end.sequence, end.offset),
        };
        Err(LogError::Short { file: name(sequence), offset, found: end.group, durable: self.group })
    }
}

/// Writes marks, and stops after a failure. The mark on disk then covers too little, which is safe.
pub struct Marker {
    file: Option<Arc<dyn MarkFile>>,
    next: usize,
}

impl Marker {
    /// Continues in `file` after the slot of the furthest mark, if the log keeps marks.
    pub fn new(file: Option<Arc<dyn MarkFile>>, furthest: Option<usize>) -> Self {
        Self { file, next: furthest.map_or(0, |slot| (slot + 1) % SLOTS) }
    }

    /// Writes a mark. False if none was written. Call it once all groups that the mark covers are synced.
    pub fn write(&mut self, mark: &Mark) -> bool {
        let Some(file) = &self.file else { return false };
        let written = file.write((self.next * SLOT_BYTES) as u64, &mark.encode());
        self.next = (self.next + 1) % SLOTS;
        self.keep(&written)
    }

    /// The file to sync.
    pub fn file(&self) -> Option<Arc<dyn MarkFile>> {
        self.file.clone()
    }

    /// Stops writing marks if `outcome` is an error. True if it is not.
    fn keep(&mut self, outcome: &std::io::Result<()>) -> bool {
        if let Err(error) = outcome {
            tracing::warn!(%error, "could not write the log's durable mark; damage to its last group may go unnoticed");
            self.file = None;
        }
        outcome.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(group: u64) -> Mark {
        Mark { cluster_id: 1 << 100 | 7, group, sequence: 3, offset: 8192 }
    }

    fn file(slots: [Option<Mark>; SLOTS]) -> Vec<u8> {
        let mut bytes = vec![0; FILE_BYTES];
        for (slot, mark) in slots.into_iter().enumerate() {
            if let Some(mark) = mark {
                bytes[slot * SLOT_BYTES..][..MARK_BYTES].copy_from_slice(&mark.encode());
            }
        }
        bytes
    }

    #[test]
    fn the_mark_that_goes_furthest_counts() {
        assert_eq!(furthest(&file([None, None])), None);
        assert_eq!(furthest(&file([Some(mark(4)), None])), Some((0, mark(4))));
        assert_eq!(furthest(&file([Some(mark(4)), Some(mark(5))])), Some((1, mark(5))));
        assert_eq!(furthest(&file([Some(mark(6)), Some(mark(5))])), Some((0, mark(6))));
        assert_eq!(furthest(&[]), None);
    }

    #[test]
    fn a_mark_that_is_torn_or_damaged_leaves_the_one_before() {
        let whole = file([Some(mark(4)), Some(mark(5))]);
        for cut in 0..MARK_BYTES {
            let mut torn = whole.clone();
            torn[SLOT_BYTES + cut..SLOT_BYTES + MARK_BYTES].fill(0);
            assert_eq!(furthest(&torn), Some((0, mark(4))), "cut at {cut}");
            let mut turned = whole.clone();
            turned[SLOT_BYTES + cut] ^= 4;
            assert_eq!(furthest(&turned), Some((0, mark(4))), "turned at {cut}");
            assert!(furthest(&whole[..SLOT_BYTES + cut]).is_some_and(|(_, found)| found == mark(4)), "short by {cut}");
        }
    }
}
