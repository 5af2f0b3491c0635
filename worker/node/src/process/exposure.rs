//! Whether the packages of this node may have been changed by agents since they were last looked at.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the process trees that could change packages: those that nothing keeps from it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exposure(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    started: AtomicU64,
    running: AtomicU64,
}

/// A moment at which no such tree ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quiet(u64);

impl Exposure {
    /// This moment, if no such tree runs. It is asked for before packages are looked at.
    pub(crate) fn quiet(&self) -> Option<Quiet> {
        let started = self.0.started.load(Ordering::SeqCst);
        (self.0.running.load(Ordering::SeqCst) == 0).then_some(Quiet(started))
    }

    /// Counts a tree until the returned value is dropped.
    pub(super) fn begin(&self) -> Exposed {
        self.0.running.fetch_add(1, Ordering::SeqCst);
        self.0.started.fetch_add(1, Ordering::SeqCst);
        Exposed(self.clone())
    }
}

/// A running tree that could change packages.
#[derive(Debug)]
pub(super) struct Exposed(Exposure);

impl Drop for Exposed {
    fn drop(&mut self) {
        self.0.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_another_one_after_each_tree() {
        let exposure = Exposure::default();
        let before = exposure.quiet();
        assert!(before.is_some() && before == exposure.quiet());
        let tree = exposure.begin();
        assert_eq!(exposure.quiet(), None);
        drop(tree);
        assert!(exposure.quiet().is_some() && exposure.quiet() != before);
    }
}
