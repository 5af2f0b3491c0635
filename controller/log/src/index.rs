//! The log's index in memory: the position of each entry on disk, and a bounded cache of the tail.

use std::collections::VecDeque;

use bytes::Bytes;

use super::core::RecordLocation;
use super::record::LogId;

#[derive(Debug, Clone, Copy)]
struct Slot {
    id: LogId,
    /// None until the entry is durable.
    place: Option<RecordLocation>,
}

/// The place from which an entry can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntrySource {
    /// In the cache.
    Cached(LogId, Bytes),
    OnDisk(RecordLocation),
}

/// The entries that the log holds. Their indexes are consecutive, and the newest are also cached.
#[derive(Debug, Clone, Default)]
pub struct Index {
    slots: VecDeque<Slot>,
    /// The bodies of the last `cache.len()` slots.
    cache: VecDeque<Bytes>,
    cached_bytes: usize,
    /// The index that the next entry must have.
    next: u64,
    purged: Option<LogId>,
}

impl Index {
    /// The id of the last entry, or of the last purged one.
    pub fn last(&self) -> Option<LogId> {
        self.slots.back().map(|slot| slot.id).or(self.purged)
    }

    /// The last purged entry.
    pub fn purged(&self) -> Option<LogId> {
        self.purged
    }

    /// The index that the next entry must have.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The index of the first entry; [`Index::next`] if there is none.
    pub fn first(&self) -> u64 {
        self.next - self.slots.len() as u64
    }

    /// Sets the first index of an empty log to another one than the index after the purged entry.
    pub(super) fn start_at(&mut self, index: u64) {
        debug_assert!(self.slots.is_empty());
        self.next = index;
    }

    /// Adds an entry. False if it is not the next one. An index that never held an entry accepts any as its first.
    #[must_use]
    pub fn push(&mut self, id: LogId, data: Bytes, place: Option<RecordLocation>) -> bool {
        if self.slots.is_empty() && self.purged.is_none() {
            self.next = id.index;
        }
        if id.index != self.next {
            return false;
        }
        self.next += 1;
        self.slots.push_back(Slot { id, place });
        self.cached_bytes += data.len();
        self.cache.push_back(data);
        true
    }

    /// Stores the location of an entry on disk.
    pub fn placed(&mut self, index: u64, place: RecordLocation) {
        if let Some(at) = index.checked_sub(self.first())
            && let Some(slot) = self.slots.get_mut(at as usize)
        {
            slot.place = Some(place);
        }
    }

    /// Drops the entries from `next` on.
    pub fn truncate(&mut self, next: u64) {
        while self.next > next && self.slots.pop_back().is_some() {
            self.next -= 1;
            if let Some(data) = self.cache.pop_back() {
                self.cached_bytes -= data.len();
            }
        }
        if self.slots.is_empty() {
            // While a log without its older segments is read, a truncation may lie before the first remaining entry.
            self.next = self.next.min(next).max(self.purged.map_or(0, |purged| purged.index + 1));
        }
    }

    /// Drops the entries up to `id`. They need not be in the log, because a snapshot may be ahead of it.
    pub fn purge(&mut self, id: LogId) {
        if self.purged.is_some_and(|purged| purged.index >= id.index) {
            return;
        }
        self.purged = Some(id);
        while self.first() <= id.index && self.slots.pop_front().is_some() {
            if self.cache.len() > self.slots.len() {
                self.uncache();
            }
        }
        self.next = self.next.max(id.index + 1);
    }

    /// Removes the bodies of the oldest durable entries from the cache until it holds at most `limit` bytes.
    pub fn trim(&mut self, limit: usize) {
        while self.cached_bytes > limit {
            let front = self.slots.len() - self.cache.len();
            if self.slots.get(front).is_none_or(|slot| slot.place.is_none()) {
                return;
            }
            self.uncache();
        }
    }

    fn uncache(&mut self) {
        if let Some(data) = self.cache.pop_front() {
            self.cached_bytes -= data.len();
        }
    }

    /// The source of the entry at `index`; none if the log does not hold it.
    pub fn find(&self, index: u64) -> Option<EntrySource> {
        let at = usize::try_from(index.checked_sub(self.first())?).ok()?;
        let slot = self.slots.get(at)?;
        let cached_from = self.slots.len() - self.cache.len();
        match at.checked_sub(cached_from) {
            Some(cached) => Some(EntrySource::Cached(slot.id, self.cache.get(cached)?.clone())),
            None => slot.place.map(EntrySource::OnDisk),
        }
    }

    /// The size on disk of the entries from `index` on.
    pub fn bytes_from(&self, index: u64) -> u64 {
        let skipped = index.saturating_sub(self.first()) as usize;
        self.slots.iter().skip(skipped).filter_map(|slot| slot.place).map(|place| u64::from(place.len)).sum()
    }

    /// The highest index up to which entries can be purged so that the remaining ones still take `bytes`. None if all
    /// entries together take less.
    pub fn index_before_last(&self, bytes: u64) -> Option<u64> {
        let mut kept = 0;
        for slot in self.slots.iter().rev() {
            if kept >= bytes {
                return Some(slot.id.index);
            }
            kept += slot.place.map_or(0, |place| u64::from(place.len));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(index: u64) -> LogId {
        LogId { term: 1, node: 1, index }
    }

    fn place(offset: u32) -> RecordLocation {
        RecordLocation { sequence: 1, offset, len: 10, seed: 0 }
    }

    fn filled() -> Index {
        let mut index = Index::default();
        for at in 0..10 {
            assert!(index.push(id(at), Bytes::from(vec![at as u8; 10]), Some(place(at as u32))));
        }
        index
    }

    #[test]
    fn only_the_next_entry_is_taken() {
        let mut index = filled();
        assert!(!index.push(id(9), Bytes::new(), None));
        assert!(!index.push(id(11), Bytes::new(), None));
        assert_eq!((index.first(), index.next(), index.last()), (0, 10, Some(id(9))));
    }

    #[test]
    fn the_cache_keeps_the_tail_and_what_is_not_durable() {
        let mut index = filled();
        assert!(index.push(id(10), Bytes::from_static(b"staged"), None));
        index.trim(26);
        assert_eq!(index.find(7), Some(EntrySource::OnDisk(place(7))));
        assert!(matches!(index.find(8), Some(EntrySource::Cached(..))));
        index.trim(0);
        assert_eq!(index.find(9), Some(EntrySource::OnDisk(place(9))));
        assert!(matches!(index.find(10), Some(EntrySource::Cached(..))));
        index.placed(10, place(10));
        index.trim(0);
        assert_eq!(index.find(10), Some(EntrySource::OnDisk(place(10))));
    }

    #[test]
    fn truncate_and_purge_leave_consecutive_entries() {
        let mut index = filled();
        index.truncate(8);
        index.purge(id(2));
        assert_eq!((index.first(), index.next(), index.find(2), index.find(8)), (3, 8, None, None));
        assert!(matches!(index.find(3), Some(EntrySource::Cached(..))));
        index.purge(id(20));
        assert_eq!((index.first(), index.next(), index.last()), (21, 21, Some(id(20))));
        assert!(index.push(id(21), Bytes::new(), None));
    }

    #[test]
    fn bytes_are_counted_from_either_end() {
        let index = filled();
        assert_eq!(index.bytes_from(7), 30);
        assert_eq!(index.index_before_last(25), Some(6));
        assert_eq!(index.index_before_last(100), None);
    }
}
