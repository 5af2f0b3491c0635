//! What is known of what agents need, as it answered a moment ago.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_types::{Namespace, ObjectKey};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use crate::probes::OwnAgent;

/// Most jobs that ask at one time.
const ASKING_MAX: usize = 16;
/// Most answers that are kept.
const ANSWERS_MAX: usize = 1_024;
/// Most namespaces whose foreign agents are remembered, so that the log names each once.
const NAMED_MAX: usize = 1_024;

/// What is known of something that an agent needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Up,
    /// It does not answer, or refuses; why.
    Down(String),
    /// Nobody could ask; why.
    Unknown(String),
}

pub(crate) type Answer = Arc<AsyncMutex<Option<(Duration, Verdict)>>>;

/// The answers of a while ago.
pub(crate) struct Needs {
    answers: Mutex<HashMap<ObjectKey, Answer>>,
    pub(crate) asking: Semaphore,
    /// The foreign agents that the log has named.
    named: Mutex<BTreeSet<(Namespace, &'static str)>>,
}

impl Default for Needs {
    fn default() -> Self {
        Self { answers: Mutex::default(), asking: Semaphore::new(ASKING_MAX), named: Mutex::default() }
    }
}

impl Needs {
    /// Where the answer about an object is. Who locks it asks, and the others wait for that.
    pub(crate) fn answer(&self, key: &ObjectKey) -> Answer {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= ANSWERS_MAX && !answers.contains_key(key) {
            answers.retain(|_, answer| Arc::strong_count(answer) > 1);
        }
        answers.entry(key.clone()).or_default().clone()
    }

    /// Says in the log, once for a namespace, that it has another agent instead of one of the cluster's.
    pub(crate) fn is_foreign(&self, namespace: &Namespace, own: &'static OwnAgent) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() < NAMED_MAX && named.insert((namespace.clone(), own.name.as_str())) {
            tracing::warn!(%namespace, agent = %own.name, "{}", own.foreign());
        }
    }
}
