//! Which store is asked, and repeats of writes to stores that know none.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use atlas_desk::{Caller, Error};
use atlas_types::Namespace;

use crate::store::{KnowledgeStore, MemoryStore, StoreError, StorePlace};
use crate::{Library, MemoryScope, WriteKey};

/// How many writes are remembered.
const RECENT_MAX: usize = 4096;

/// The latest writes to stores outside of the cluster. It is this controller's and ends with it, so it catches the repeats of workers that
/// were lost, and not those after a restart.
#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<WriteKey>>);

impl Recent {
    fn has(&self, key: WriteKey) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }

    fn add(&self, key: WriteKey) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.len() >= RECENT_MAX {
            keys.pop_front();
        }
        keys.push_back(key);
    }
}

impl Library {
    /// The store of a memory outside of the cluster; none if it is kept as objects.
    pub(crate) fn memory_store(&self, caller: &Caller, scope: &MemoryScope) -> Result<Option<&dyn MemoryStore>, Error> {
        let is_meant = *scope == MemoryScope::Namespace && caller.namespace == Namespace::default_namespace();
        match self.stores.memory.as_deref().filter(|_| is_meant) {
            Some(store) => self.usable(store.place()).map(|()| Some(store)),
            None => Ok(None),
        }
    }

    /// The store of the caller's knowledge.
    pub(crate) fn knowledge_store(&self, caller: &Caller) -> Result<&dyn KnowledgeStore, Error> {
        let is_meant = caller.namespace == Namespace::default_namespace();
        match self.stores.knowledge.as_deref().filter(|_| is_meant) {
            Some(store) => store.place().map_or(Ok(()), |place| self.usable(place)).map(|()| store),
            None => Ok(&*self.objects),
        }
    }

    /// A file belongs to one controller: several would each have their own.
    fn usable(&self, place: &StorePlace) -> Result<(), Error> {
        if place.is_shared || self.desk.handle.members().members.len() <= 1 {
            return Ok(());
        }
        let StorePlace { name, .. } = place;
        Err(Error::StoreFailed(format!(
            "{name} belongs to one controller, and this cluster has several; use a server that all of them reach, or the objects of the cluster"
        )))
    }

    /// Makes a write outside of the cluster, unless this controller made it already.
    pub(crate) async fn once(
        &self,
        key: WriteKey,
        write: impl Future<Output = Result<(), StoreError>>,
    ) -> Result<(), Error> {
        if self.recent.has(key) {
            return Ok(());
        }
        write.await?;
        self.recent.add(key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_writes_are_forgotten() {
        let recent = Recent::default();
        (0..RECENT_MAX as u128 + 1).for_each(|key| recent.add(WriteKey::random(key)));
        assert!(!recent.has(WriteKey::random(0)) && recent.has(WriteKey::random(1)));
    }
}
