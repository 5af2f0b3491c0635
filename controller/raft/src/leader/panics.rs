//! Panics of leader tasks: reported in the log and counted, because the task itself is only paused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use atlas_duty::tasks::TaskPanic;

/// Counts the panics of leader tasks. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Panics(Arc<AtomicU64>);

impl Panics {
    /// The number of panics since the start of this member.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Logs and counts panics.
    pub(crate) fn note(&self, panicked: &[TaskPanic]) {
        for TaskPanic { task, in_a_row, retry_in } in panicked {
            self.0.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%task, in_a_row, ?retry_in, "a leader task panicked; the others continue");
        }
    }
}
