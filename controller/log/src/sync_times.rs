//! How long the latest syncs took: shown to operators when a member is slow.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The number of remembered syncs.
const KEPT: usize = 256;

/// The number of syncs that decide whether a disk is fast. A disk that was slow recently may be slow again.
const RECENT: usize = 64;

/// The durations of the latest syncs.
#[derive(Debug, Default)]
pub(super) struct SyncTimes(Mutex<VecDeque<Duration>>);

impl SyncTimes {
    /// Records the duration of a sync.
    pub(super) fn note(&self, took: Duration) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.len() == KEPT {
            latest.pop_front();
        }
        latest.push_back(took);
    }

    /// True if none of the latest syncs took longer than `max`.
    pub(super) fn are_within(&self, max: Duration) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().take(RECENT).all(|took| *took <= max)
    }

    /// The 99th percentile; none before the first sync.
    pub(super) fn p99(&self) -> Option<Duration> {
        let mut latest: Vec<_> = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        latest.sort_unstable();
        let last = latest.len().checked_sub(1)?;
        latest.get((last * 99).div_ceil(100)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_99th_percentile_is_of_the_latest() {
        let times = SyncTimes::default();
        assert_eq!(times.p99(), None);
        times.note(Duration::from_millis(7));
        assert_eq!(times.p99(), Some(Duration::from_millis(7)));
        (1..=400).for_each(|millis| times.note(Duration::from_millis(millis)));
        // The percentile of the values 145 to 400.
        assert_eq!(times.p99(), Some(Duration::from_millis(398)));
    }
}
