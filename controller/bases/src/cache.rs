//! Loaded bases. Each is loaded once for all that search it at a time, and kept until it changes or until others need its room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atlas_types::{EventSeq, ObjectKey};
use tokio::sync::OnceCell;

use crate::loaded::SharedLoaded;

/// Most bytes of loaded bases. One base is always kept, however large.
const KEPT_BYTES_MAX: usize = 512 << 20;

/// Most loaded bases, however small.
const KEPT_MAX: usize = 256;

/// A base that is loaded by the first that needs it.
pub(crate) type Cell = Arc<OnceCell<SharedLoaded>>;

/// The loaded bases of a controller.
#[derive(Default)]
pub(crate) struct Cache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_key: HashMap<ObjectKey, Entry>,
    /// Counts uses.
    now: u64,
}

struct Entry {
    /// The object, and its revision.
    version: (EventSeq, EventSeq),
    cell: Cell,
    used: u64,
}

impl Cache {
    /// The place of a version of a base. A newer one that is loaded is as good; one that is being loaded gets no older documents.
    pub(crate) fn cell(&self, key: &ObjectKey, version: (EventSeq, EventSeq)) -> Cell {
        let mut kept = self.lock();
        kept.now += 1;
        let used = kept.now;
        match kept.by_key.get_mut(key) {
            Some(entry) if entry.version == version || (entry.version > version && entry.cell.initialized()) => {
                entry.used = used;
                entry.cell.clone()
            }
            Some(entry) if entry.version > version => Cell::default(),
            _ => {
                let cell = Cell::default();
                kept.by_key.insert(key.clone(), Entry { version, cell: cell.clone(), used });
                cell
            }
        }
    }

    /// What is loaded of a base, whatever its revision is.
    pub(crate) fn loaded(&self, key: &ObjectKey, uid: EventSeq) -> Option<SharedLoaded> {
        let mut kept = self.lock();
        kept.now += 1;
        let used = kept.now;
        let entry = kept.by_key.get_mut(key).filter(|entry| entry.version.0 == uid)?;
        entry.used = used;
        entry.cell.get().cloned()
    }

    /// Forgets a cell, because it holds only a part of its base.
    pub(crate) fn forget(&self, key: &ObjectKey, cell: &Cell) {
        let mut kept = self.lock();
        if kept.by_key.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.cell, cell)) {
            kept.by_key.remove(key);
        }
    }

    /// Forgets a base that is deleted.
    pub(crate) fn remove(&self, key: &ObjectKey) {
        self.lock().by_key.remove(key);
    }

    /// Forgets the bases that were used longest ago, until the others have room.
    pub(crate) fn make_room(&self) {
        let mut kept = self.lock();
        let bytes = |entry: &Entry| entry.cell.get().map_or(0, |loaded| loaded.bytes);
        let mut by_use: Vec<(u64, usize, ObjectKey)> =
            kept.by_key.iter().map(|(key, entry)| (entry.used, bytes(entry), key.clone())).collect();
        by_use.sort_by(|(left, ..), (right, ..)| right.cmp(left));
        let mut total = 0;
        for (place, (_, bytes, key)) in by_use.into_iter().enumerate() {
            total += bytes;
            let is_over = (total > KEPT_BYTES_MAX && bytes > 0) || place >= KEPT_MAX;
            if place > 0 && is_over {
                kept.by_key.remove(&key);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use atlas_objects::BaseSpec;
    use atlas_types::{Namespace, ObjectKind, ObjectName};

    use super::*;
    use crate::loaded::Loaded;
    use crate::vectors::Table;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            namespace: Namespace::default_namespace(),
            kind: ObjectKind::new("base").expect("a word"),
            name: ObjectName::new(name).expect("a name"),
        }
    }

    fn version(revision: u64) -> (EventSeq, EventSeq) {
        (EventSeq(1), EventSeq(revision))
    }

    fn fill(cell: &Cell, bytes: usize) {
        let empty = Loaded::new(&BaseSpec::default(), Vec::new(), &Table::default(), Vec::new());
        assert!(cell.set(Arc::new(Loaded { bytes, ..empty })).is_ok());
    }

    #[test]
    fn a_version_has_one_cell_until_a_newer_one_comes() {
        let cache = Cache::default();
        let first = cache.cell(&key("a"), version(2));
        assert!(Arc::ptr_eq(&first, &cache.cell(&key("a"), version(2))));
        assert!(!Arc::ptr_eq(&first, &cache.cell(&key("a"), version(1))), "it would get what is older");
        fill(&first, 1);
        assert!(Arc::ptr_eq(&first, &cache.cell(&key("a"), version(1))), "what is newer is as good");
        let second = cache.cell(&key("a"), version(3));
        assert!(!Arc::ptr_eq(&first, &second));
        cache.forget(&key("a"), &first);
        assert!(Arc::ptr_eq(&second, &cache.cell(&key("a"), version(3))), "only that cell is forgotten");
        cache.forget(&key("a"), &second);
        assert!(!Arc::ptr_eq(&second, &cache.cell(&key("a"), version(3))));
    }

    #[test]
    fn the_oldest_make_room() {
        let cache = Cache::default();
        for name in ["a", "b", "c"] {
            fill(&cache.cell(&key(name), version(1)), KEPT_BYTES_MAX / 2);
        }
        cache.cell(&key("a"), version(1));
        cache.make_room();
        let is_kept = |name| cache.cell(&key(name), version(1)).get().is_some();
        assert_eq!((is_kept("a"), is_kept("b"), is_kept("c")), (true, false, true));
        fill(&cache.cell(&key("huge"), version(1)), 2 * KEPT_BYTES_MAX);
        cache.make_room();
        assert!(is_kept("huge"), "one is always kept");
    }
}
