//! The checks of agents, as their packages have them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use atlas_contract::Eval;
use atlas_types::Digest;

/// The checks of agents by the digests of their packages; none for a package without checks. A full cache starts anew.
#[derive(Debug, Default)]
pub(crate) struct Evals(Mutex<BTreeMap<Digest, Option<Arc<Eval>>>>);

/// The most packages in the cache.
const EVALS_MAX: usize = 1_000;

impl Evals {
    pub(crate) fn get(&self, digest: Digest) -> Option<Option<Arc<Eval>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned()
    }

    pub(crate) fn put(&self, digest: Digest, eval: Option<Arc<Eval>>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= EVALS_MAX {
            known.clear();
        }
        known.insert(digest, eval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_starts_anew() {
        let evals = Evals::default();
        for number in 0..=EVALS_MAX {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_le_bytes());
            evals.put(Digest(digest), None);
        }
        assert_eq!(evals.0.lock().expect("not poisoned").len(), 1);
    }
}
