//! Remembered requests: a repeat within the retention gets the first answer again (design §2, rule 5).

use std::sync::Arc;

use atlas_types::{
    ClusterConfig, ClusterTime, Namespace, Origin, Outcome, Principal, Rejection, RequestId, RequestImage,
};

use crate::map::Map;

/// Most expired requests that one entry forgets, so that no entry pays for a long silence.
const FORGOTTEN_PER_ENTRY_MAX: usize = 64;

/// What names a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    namespace: Namespace,
    principal: Principal,
    request_id: RequestId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Remembered {
    number: u64,
    body_hash: u64,
    at: ClusterTime,
    outcome: Outcome,
}

/// The table, bounded by time and count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dedupe {
    by_key: Map<Arc<Key>, Arc<Remembered>>,
    /// Oldest first. The numbers are local to this table: only their order counts, so they are not in the image.
    by_age: Map<u64, Arc<Key>>,
    last: u64,
}

impl Dedupe {
    /// The first answer to this request, if it is remembered.
    pub(crate) fn answer(&self, origin: &Origin) -> Option<Result<Outcome, Rejection>> {
        let found = self.by_key.get(&key(origin)?)?;
        if found.body_hash != origin.body_hash {
            return Some(Err(Rejection::RequestConflict));
        }
        Some(Ok(match found.outcome {
            Outcome::Submitted { job, .. } => Outcome::Submitted { job, repeated: true },
            ref other => other.clone(),
        }))
    }

    /// Remembers an accepted request; the oldest make room.
    pub(crate) fn remember(&mut self, origin: &Origin, outcome: &Outcome, at: ClusterTime, config: &ClusterConfig) {
        let Some(key) = key(origin) else { return };
        self.trim(config.dedupe_max.saturating_sub(1));
        if config.dedupe_max > 0 {
            self.insert(key, origin.body_hash, at, outcome.clone());
        }
    }

    /// Forgets the oldest until at most `count` are left.
    pub(crate) fn trim(&mut self, count: u64) {
        while self.len() > count {
            self.forget_oldest();
        }
    }

    /// Forgets some of those whose retention has passed.
    pub(crate) fn expire(&mut self, now: ClusterTime, config: &ClusterConfig) {
        for _ in 0..FORGOTTEN_PER_ENTRY_MAX {
            let oldest = self.by_age.get_min().and_then(|(_, key)| self.by_key.get(key));
            if oldest.is_none_or(|oldest| now.since(oldest.at) <= config.dedupe_retention) {
                return;
            }
            self.forget_oldest();
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.by_key.len() as u64
    }

    /// True if both maps hold the same requests and none is younger than a later one.
    pub(crate) fn is_consistent(&self) -> bool {
        let mut at = ClusterTime::default();
        let ordered = self.by_age.iter().all(|(number, key)| {
            let Some(found) = self.by_key.get(key) else { return false };
            let ordered = found.number == *number && found.at >= at;
            at = found.at;
            ordered
        });
        ordered && self.by_age.len() == self.by_key.len()
    }

    pub(crate) fn to_image(&self) -> Vec<RequestImage> {
        let images = self.by_age.values().filter_map(|key| {
            let found = self.by_key.get(key)?;
            Some(RequestImage {
                namespace: key.namespace.clone(),
                principal: key.principal.clone(),
                request_id: key.request_id.clone(),
                body_hash: found.body_hash,
                at: found.at,
                outcome: found.outcome.clone(),
            })
        });
        images.collect()
    }

    pub(crate) fn from_image(images: Vec<RequestImage>) -> Self {
        let mut table = Self::default();
        for RequestImage { namespace, principal, request_id, body_hash, at, outcome } in images {
            table.insert(Key { namespace, principal, request_id }, body_hash, at, outcome);
        }
        table
    }

    fn insert(&mut self, key: Key, body_hash: u64, at: ClusterTime, outcome: Outcome) {
        self.last += 1;
        let key = Arc::new(key);
        self.by_age.insert(self.last, Arc::clone(&key));
        self.by_key.insert(key, Arc::new(Remembered { number: self.last, body_hash, at, outcome }));
    }

    fn forget_oldest(&mut self) {
        let Some((number, key)) = self.by_age.get_min().cloned() else { return };
        self.by_age.remove(&number);
        self.by_key.remove(&key);
    }
}

fn key(origin: &Origin) -> Option<Key> {
    let request_id = origin.request_id.clone()?;
    Some(Key { namespace: origin.namespace.clone(), principal: origin.principal.clone(), request_id })
}
