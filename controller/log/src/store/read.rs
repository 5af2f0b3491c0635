//! The read side of an open log: reads entries from the cache and from segments.

use bytes::Bytes;

use super::{Log, View};
use crate::driver::Segment;
use crate::error::LogError;
use crate::index::EntrySource;
use crate::record::{FRAME_BYTES, LogId, Record};

impl Log {
    /// The entries of the log from `from` up to but excluding `to`, in order. Fewer if they exceed `bytes`.
    pub fn read(&self, from: u64, to: u64, bytes: usize) -> Result<Vec<(LogId, Bytes)>, LogError> {
        let mut entries = Vec::new();
        let mut taken = 0;
        let mut next = None;
        while taken < bytes {
            let (found, segment) = {
                let view = self.shared.view();
                let at = next.unwrap_or_else(|| from.max(view.index.first()));
                let found = view.gather(at, to, bytes - taken);
                next = Some(at + found.len() as u64);
                let sequence = found.first().and_then(|entry| match entry {
                    EntrySource::OnDisk(place) => Some(u64::from(place.sequence)),
                    EntrySource::Cached(..) => None,
                });
                (found, sequence.map(|sequence| (sequence, view.segments.get(&sequence).cloned())))
            };
            if found.is_empty() {
                break;
            }
            let before = entries.len();
            match segment {
                None => entries.extend(found.into_iter().filter_map(|entry| match entry {
                    EntrySource::Cached(id, data) => Some((id, data)),
                    EntrySource::OnDisk(_) => None,
                })),
                Some((sequence, segment)) => match self.read_places(sequence, segment.as_deref(), &found)? {
                    Some(read) => entries.extend(read),
                    None => break,
                },
            }
            taken += entries[before..].iter().map(|(_, data)| data.len().max(1)).sum::<usize>();
        }
        Ok(entries)
    }

    /// Reads entries of one segment; none if they were purged meanwhile.
    fn read_places(
        &self,
        sequence: u64,
        segment: Option<&dyn Segment>,
        found: &[EntrySource],
    ) -> Result<Option<Vec<(LogId, Bytes)>>, LogError> {
        let places = || {
            found.iter().filter_map(|entry| match entry {
                EntrySource::OnDisk(place) => Some(*place),
                EntrySource::Cached(..) => None,
            })
        };
        let (Some(first), Some(last), Some(segment)) = (places().next(), places().next_back(), segment) else {
            return Ok(None);
        };
        let mut bytes = vec![0; (last.offset + last.len - first.offset) as usize];
        let outcome = segment.read_at(u64::from(first.offset), &mut bytes);
        let read: Option<Vec<_>> = places()
            .map(|place| {
                let at = (place.offset - first.offset) as usize;
                match Record::decode(place.seed, bytes.get(at..at + place.len as usize)?)? {
                    (Record::Entry { id, data }, ..) => Some((id, data)),
                    _ => None,
                }
            })
            .collect();
        if outcome.is_ok() && read.is_some() {
            return Ok(read);
        }
        if !self.shared.view().segments.contains_key(&sequence) {
            return Ok(None);
        }
        let file = self.shared.writer().driver.name(sequence);
        outcome.map_err(|source| LogError::Io { what: "read", file: file.clone(), source })?;
        let offset = u64::from(first.offset) + FRAME_BYTES as u64;
        Err(LogError::Damaged { file, offset, what: "an entry cannot be read" })
    }
}

impl View {
    /// The entries that one read returns, from `from` up to but excluding `to`: cached entries, or entries of one
    /// segment in the order of their position. Stops when they exceed `bytes`.
    fn gather(&self, from: u64, to: u64, bytes: usize) -> Vec<EntrySource> {
        let mut found: Vec<EntrySource> = Vec::new();
        let mut left = bytes;
        for index in from..to.min(self.index.next()) {
            let Some(entry) = self.index.find(index) else { break };
            let same = match (found.first(), &entry) {
                (None, _) | (Some(EntrySource::Cached(..)), EntrySource::Cached(..)) => true,
                (Some(EntrySource::OnDisk(first)), EntrySource::OnDisk(place)) => {
                    place.sequence == first.sequence && place.offset > first.offset
                }
                _ => false,
            };
            if !same || left == 0 {
                break;
            }
            left = left.saturating_sub(match &entry {
                EntrySource::Cached(_, data) => data.len(),
                EntrySource::OnDisk(place) => place.len as usize,
            });
            found.push(entry);
        }
        found
    }
}
