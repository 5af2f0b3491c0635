//! Panics of leader tasks: reported in the log and counted, since the task itself is only left out for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use atlas_duty::tasks::Panicked;

use crate::handle::Handle;

/// How many panics of leader tasks there were. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Panics(Arc<AtomicU64>);

impl Panics {
    /// Reports panics.
    pub(crate) fn note(&self, panicked: &[Panicked]) {
        for Panicked { task, in_a_row, retry_in } in panicked {
            self.0.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%task, in_a_row, ?retry_in, "a leader task panicked; the others go on without it");
        }
    }
}

impl Handle {
    /// How many times a leader task has panicked on this member since its start.
    pub fn task_panics(&self) -> u64 {
        self.panics.0.load(Ordering::Relaxed)
    }
}
