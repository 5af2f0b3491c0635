//! Recovery of a log: its contents, the position where writing continues, and whether missing data is legitimate.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::block::BLOCK_BYTES;
use super::core::{Active, Core, FinishedSegment, RecordLocation};
use super::driver::{Driver, MarkFile, Segment};
use super::error::LogError;
use super::index::Index;
use super::mark::{LogEnd, Mark, Marker, furthest};
use super::record::Record;
use super::segment::{FORMAT, GROUP_HEADER_BYTES, GroupHeader, Header, HeaderRead};
use super::store::Limits;

/// A log as it was read from disk.
pub struct RecoveredLog {
    /// The write side.
    pub core: Core,
    /// The entries.
    pub index: Index,
    /// The segments, open.
    pub segments: BTreeMap<u64, Arc<dyn Segment>>,
    /// True if there was data after the last durable group: a write that was never acknowledged.
    pub torn: bool,
    /// Writes the durable mark from now on.
    pub marker: Marker,
    /// The end of the log.
    pub end: LogEnd,
    /// The durable mark that was found, if the log had one.
    pub mark: Option<Mark>,
}

/// Reads the whole log. If `cluster_id` is none, the log's own is used, or `drawn` for a new log.
pub fn recover(
    driver: &mut dyn Driver,
    cluster_id: Option<u128>,
    drawn: u128,
    salt: u64,
    limits: &Limits,
) -> Result<RecoveredLog, LogError> {
    let sequences = driver.list().map_err(|source| LogError::Io { what: "list", file: String::new(), source })?;
    let core = Core::new(cluster_id.unwrap_or(drawn), salt, limits.first_segment_bytes, limits.segment_bytes);
    let mut reader = Reader {
        core,
        index: Index::default(),
        cluster_id,
        started: false,
        cache_bytes: limits.cache_bytes,
        torn: false,
        last_end: (0, 0),
    };
    let (mut segments, mut begun) = (BTreeMap::new(), None);
    for (at, &sequence) in sequences.iter().enumerate() {
        let file = driver.name(sequence);
        if at > 0 && sequence != sequences[at - 1] + 1 {
            return Err(LogError::Damaged { file, offset: 0, what: "the segment before it is missing" });
        }
        let failed = |source| LogError::Io { what: "read", file: file.clone(), source };
        let segment = driver.open(sequence).map_err(failed)?;
        if !segment.size().is_multiple_of(BLOCK_BYTES as u64) {
            // No crash causes this, because a segment gets its size before its name.
            return Err(LogError::Damaged { file, offset: segment.size(), what: "the file is cut short" });
        }
        let mut bytes = vec![0; usize::try_from(segment.size()).unwrap_or(usize::MAX)];
        segment.read_at(0, &mut bytes).map_err(failed)?;
        let before = at.checked_sub(1).map(|before| driver.name(sequences[before]));
        let last = at + 1 == sequences.len();
        if reader.segment(sequence, &bytes, &file, before, last)? {
            segments.insert(sequence, segment);
        } else {
            begun = Some(sequence);
        }
    }
    let (file, slot, mark) = read_mark(driver, reader.cluster_id.or(reader.started.then_some(reader.core.cluster_id)));
    let end = reader.end();
    if let Some(mark) = mark {
        mark.check(end, begun, |sequence| driver.name(sequence))?;
    }
    if let Some(sequence) = begun {
        // The segment was created, but nothing durable was written into it, so it is removed.
        let file = driver.name(sequence);
        driver.retire(sequence).map_err(|source| LogError::Io { what: "retire", file, source })?;
    }
    reader.finish(driver, segments, (Marker::new(file, slot), mark))
}

/// The file of the durable mark, and the furthest mark of `cluster_id` in it with its slot. An unreadable mark is
/// ignored and does not make a readable log fail.
fn read_mark(
    driver: &mut dyn Driver,
    cluster_id: Option<u128>,
) -> (Option<Arc<dyn MarkFile>>, Option<usize>, Option<Mark>) {
    let read = driver.mark().and_then(|file| match file {
        Some(file) => Ok((file.read()?, Some(file))),
        None => Ok((Vec::new(), None)),
    });
    let (bytes, file) = read.unwrap_or_else(|error| {
        tracing::warn!(%error, "could not read the log's durable mark; damage to its last group may go unnoticed");
        (Vec::new(), None)
    });
    let found = furthest(&bytes).filter(|(_, mark)| cluster_id.is_none_or(|id| id == mark.cluster_id));
    (file, found.map(|(slot, _)| slot), found.map(|(_, mark)| mark))
}

struct Reader {
    core: Core,
    index: Index,
    cluster_id: Option<u128>,
    /// True once a segment has been read.
    started: bool,
    cache_bytes: usize,
    torn: bool,
    /// The segment and the offset at which the last valid group ended.
    last_end: (u64, u64),
}

impl Reader {
    /// Reads one segment. False if it was created but cannot contain durable data.
    fn segment(
        &mut self,
        sequence: u64,
        bytes: &[u8],
        file: &str,
        before: Option<String>,
        last: bool,
    ) -> Result<bool, LogError> {
        let damaged = |offset: usize, what| LogError::Damaged { file: file.to_owned(), offset: offset as u64, what };
        let header = match Header::decode(bytes) {
            HeaderRead::Newer(found) => {
                return Err(LogError::NewerFormat { file: file.to_owned(), found, known: FORMAT });
            }
            HeaderRead::Header(header) if header.sequence == sequence => header,
            // A recycled file keeps the header of its previous use until the first write.
            HeaderRead::Header(_) | HeaderRead::Unreadable if last => {
                return self.not_begun(sequence, bytes, file, |group| group.sequence == sequence);
            }
            HeaderRead::Header(_) | HeaderRead::Unreadable => {
                return Err(damaged(0, "the header cannot be read"));
            }
        };
        if let Some(expected) = self.cluster_id.or(self.started.then_some(self.core.cluster_id))
            && header.cluster_id != expected
        {
            return Err(LogError::OtherCluster { file: file.to_owned(), found: header.cluster_id, expected });
        }
        if self.started && (header.group != self.core.group || header.chain != self.core.chain) {
            let (_, offset) = self.last_end;
            let what = "the next segment does not continue it";
            return Err(LogError::Damaged { file: before.unwrap_or_default(), offset, what });
        }
        if !self.started {
            (self.core.group, self.core.chain) = (header.group, header.chain);
        }
        // The first group repeats the vote and the marks, and is written together with the header. Without it, the
        // segment is unused.
        if last && self.group(&header, bytes, BLOCK_BYTES).is_none() {
            return self.not_begun(sequence, bytes, file, |group| own(&header, group));
        }
        if self.started {
            self.core.finished.push_back(FinishedSegment {
                sequence: self.last_end.0,
                last_index: self.core.active_last_index.take(),
            });
        }
        self.started = true;
        self.core.cluster_id = header.cluster_id;
        let end = self.groups(&header, bytes, file)?;
        self.last_end = (sequence, end as u64);
        self.core.next_sequence = sequence + 1;
        self.core.active = Some(Active { sequence, salt: header.salt, size: bytes.len() as u64, position: end as u64 });
        Ok(true)
    }

    /// Drops the last segment, whose first group is missing, unless a later group of it `is_own`.
    fn not_begun(
        &mut self,
        sequence: u64,
        bytes: &[u8],
        file: &str,
        is_own: impl Fn(&GroupHeader) -> bool,
    ) -> Result<bool, LogError> {
        let damaged = |what| Err(LogError::Damaged { file: file.to_owned(), offset: 0, what });
        let expected = self.core.group;
        if behind(bytes, BLOCK_BYTES, |group| is_own(group) && group.group > expected) {
            return damaged("its beginning cannot be read, but a later group can");
        }
        if !self.started && sequence != 1 {
            return damaged("the beginning of the only segment cannot be read");
        }
        if !self.started {
            (self.core.group, self.core.chain) = (1, 0);
        }
        self.torn = true;
        self.core.next_sequence = sequence;
        Ok(false)
    }

    /// Reads the groups of a segment and returns the offset after the last valid one.
    fn groups(&mut self, header: &Header, bytes: &[u8], file: &str) -> Result<usize, LogError> {
        let mut at = BLOCK_BYTES;
        while at + GROUP_HEADER_BYTES <= bytes.len() {
            let Some(records) = self.group(header, bytes, at) else { break };
            let padded = (GROUP_HEADER_BYTES + records.len).next_multiple_of(BLOCK_BYTES);
            self.core.chain = records.chain;
            self.core.group += 1;
            for (record, place) in records.all {
                self.take(header.sequence, record, place).map_err(|what| LogError::Damaged {
                    file: file.to_owned(),
                    offset: u64::from(place.offset),
                    what,
                })?;
            }
            self.index.trim(self.cache_bytes);
            at += padded;
        }
        let expected = self.core.group;
        if behind(bytes, at, |group| own(header, group) && group.group > expected) {
            let what = "a group cannot be read, but a later one can";
            return Err(LogError::Damaged { file: file.to_owned(), offset: at as u64, what });
        }
        let rest = bytes.get(at..).unwrap_or_default();
        if GroupHeader::decode(rest).is_some_and(|group| own(header, &group)) {
            self.torn = true;
        }
        Ok(at)
    }

    /// Reads the group at `at`. None unless all of it is valid.
    fn group(&self, segment: &Header, bytes: &[u8], at: usize) -> Option<Records> {
        let header = GroupHeader::decode(&bytes[at..])?;
        if !own(segment, &header) || header.group != self.core.group || header.chain != self.core.chain {
            return None;
        }
        let start = at + GROUP_HEADER_BYTES;
        let end = start.checked_add(header.len as usize)?;
        bytes.get(start..end)?;
        let mut records = Records { all: Vec::new(), chain: header.seed(), len: header.len as usize };
        let mut offset = start;
        while offset < end {
            let seed = records.chain;
            let (record, len, chain) = Record::decode(seed, &bytes[offset..end])?;
            let place = RecordLocation {
                sequence: u32::try_from(segment.sequence).ok()?,
                offset: u32::try_from(offset).ok()?,
                len: u32::try_from(len).ok()?,
                seed,
            };
            records.all.push((record, place));
            records.chain = chain;
            offset += len;
        }
        Some(records)
    }

    fn take(&mut self, sequence: u64, record: Record, place: RecordLocation) -> Result<(), &'static str> {
        self.core.marks.note(&record);
        match record {
            Record::Entry { id, data } => {
                // If older segments were removed, the entries before the first entry of this segment are missing as
                // well.
                if self.index.first() == self.index.next() && self.core.active_last_index.is_none() && sequence > 1 {
                    self.index.start_at(id.index.max(self.index.next()));
                }
                self.core.active_last_index = self.core.active_last_index.max(Some(id.index));
                if !self.index.push(id, data, Some(place)) {
                    return Err("an entry is out of order");
                }
            }
            Record::Truncate(next) => self.index.truncate(next),
            Record::Purge(id) => self.index.purge(id),
            Record::Vote(_) | Record::Committed(_) => {}
        }
        Ok(())
    }

    fn end(&self) -> LogEnd {
        let (sequence, offset) = self.last_end;
        LogEnd { group: self.core.group, sequence, offset }
    }

    fn finish(
        self,
        driver: &mut dyn Driver,
        segments: BTreeMap<u64, Arc<dyn Segment>>,
        (marker, mark): (Marker, Option<Mark>),
    ) -> Result<RecoveredLog, LogError> {
        // A log without purged entries may begin at any index, provided that its first segment exists.
        let whole = self.index.purged().is_none() && segments.keys().next().is_none_or(|&sequence| sequence == 1);
        let expected = self.index.purged().map_or(0, |purged| purged.index + 1);
        if !whole && self.index.first() > expected {
            let file = segments.keys().next().map(|&sequence| driver.name(sequence)).unwrap_or_default();
            let what = "the entries before its first entry are missing";
            return Err(LogError::Damaged { file, offset: 0, what });
        }
        let end = self.end();
        Ok(RecoveredLog { core: self.core, index: self.index, segments, torn: self.torn, marker, end, mark })
    }
}

struct Records {
    all: Vec<(Record, RecordLocation)>,
    chain: u32,
    len: usize,
}

/// True if a group was written during the current use of the segment.
fn own(segment: &Header, group: &GroupHeader) -> bool {
    group.sequence == segment.sequence && group.salt == segment.salt
}

/// True if a block at or after `from` begins with a group that `matches`.
fn behind(bytes: &[u8], from: usize, matches: impl Fn(&GroupHeader) -> bool) -> bool {
    let blocks = bytes.get(from..).unwrap_or_default().chunks_exact(BLOCK_BYTES);
    blocks.filter_map(GroupHeader::decode).any(|group| matches(&group))
}
