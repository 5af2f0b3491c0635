//! What orchestrators of chains decided, and which of them did not answer.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_types::{JobId, Namespace};

use crate::wish::Wish;

/// Most decisions, and most orchestrators that did not answer, that are remembered.
const REMEMBERED_MAX: usize = 4_096;

/// What is remembered of the orchestrators of chains.
#[derive(Default)]
pub(crate) struct ChainOrchestrators(Mutex<Remembered>);

#[derive(Default)]
pub(crate) struct Remembered {
    pub(crate) decided: BTreeMap<JobId, Wish>,
    /// Those that did not answer, and until when they are not asked.
    pub(crate) silent: BTreeMap<(Namespace, String), Duration>,
}

impl ChainOrchestrators {
    pub(crate) fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a value, within the bound.
pub(crate) fn remember<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V) {
    if map.len() >= REMEMBERED_MAX {
        map.clear();
    }
    map.insert(key, value);
}
