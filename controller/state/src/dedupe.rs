//! Remembered requests: a repeat within the retention gets the first answer again (design §2, rule 5).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use atlas_types::{
    ClusterConfig, ClusterTime, Namespace, Origin, Outcome, Principal, Rejection, RequestId, RequestImage,
};

use crate::map::{Map, Set};

/// Most expired requests that one entry forgets, so that no entry pays for a long silence.
const FORGOTTEN_PER_ENTRY_MAX: usize = 64;

/// What names a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    namespace: Namespace,
    principal: Principal,
    request_id: RequestId,
}

impl Key {
    /// A number to find the key by. Others may have the same, so whoever finds it compares the key as well; it is never
    /// written down and nothing is ordered by it that anybody sees.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Remembered {
    key: Key,
    body_hash: u64,
    at: ClusterTime,
    outcome: Outcome,
}

/// The table, bounded by time and count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dedupe {
    /// Oldest first. The numbers are local to this table: only their order counts, so they are not in the image.
    by_age: Map<u64, Arc<Remembered>>,
    /// Fingerprint and number: what random keys lead through holds numbers only, which are cheap to copy.
    numbers: Set<(u64, u64)>,
    last: u64,
}

impl Dedupe {
    /// The first answer to this request, if it is remembered.
    pub(crate) fn answer(&self, origin: &Origin) -> Option<Result<Outcome, Rejection>> {
        let found = self.find(&key(origin)?)?;
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
            let oldest = self.by_age.get_min();
            if oldest.is_none_or(|(_, oldest)| now.since(oldest.at) <= config.dedupe_retention) {
                return;
            }
            self.forget_oldest();
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.by_age.len() as u64
    }

    /// True if each request is found by its name, and none is younger than a later one.
    pub(crate) fn is_consistent(&self) -> bool {
        let mut at = ClusterTime::default();
        let ordered = self.by_age.iter().all(|(number, found)| {
            let ordered = self.numbers.contains(&(found.key.fingerprint(), *number)) && found.at >= at;
            at = found.at;
            ordered
        });
        ordered && self.by_age.len() == self.numbers.len()
    }

    pub(crate) fn to_image(&self) -> Vec<RequestImage> {
        let image = |found: &Arc<Remembered>| RequestImage {
            namespace: found.key.namespace.clone(),
            principal: found.key.principal.clone(),
            request_id: found.key.request_id.clone(),
            body_hash: found.body_hash,
            at: found.at,
            outcome: found.outcome.clone(),
        };
        self.by_age.values().map(image).collect()
    }

    /// Of requests that are there twice, the first alone.
    pub(crate) fn from_image(images: Vec<RequestImage>) -> Self {
        let mut table = Self::default();
        for RequestImage { namespace, principal, request_id, body_hash, at, outcome } in images {
            let key = Key { namespace, principal, request_id };
            if table.find(&key).is_none() {
                table.insert(key, body_hash, at, outcome);
            }
        }
        table
    }

    fn find(&self, key: &Key) -> Option<&Arc<Remembered>> {
        let fingerprint = key.fingerprint();
        let same = self.numbers.range((fingerprint, 0)..=(fingerprint, u64::MAX));
        same.filter_map(|(_, number)| self.by_age.get(number)).find(|found| found.key == *key)
    }

    fn insert(&mut self, key: Key, body_hash: u64, at: ClusterTime, outcome: Outcome) {
        self.last += 1;
        self.numbers.insert((key.fingerprint(), self.last));
        self.by_age.insert(self.last, Arc::new(Remembered { key, body_hash, at, outcome }));
    }

    fn forget_oldest(&mut self) {
        let Some((number, oldest)) = self.by_age.get_min().cloned() else { return };
        self.by_age.remove(&number);
        self.numbers.remove(&(oldest.key.fingerprint(), number));
    }
}

fn key(origin: &Origin) -> Option<Key> {
    let request_id = origin.request_id.clone()?;
    Some(Key { namespace: origin.namespace.clone(), principal: origin.principal.clone(), request_id })
}
