//! The health of this member, as found by its monitors.

use tokio::sync::watch;

use super::Handle;
use crate::monitor::digests::Agreement;
use crate::monitor::space::Disk;
use crate::monitor::wall::ClockDoubt;

impl Handle {
    /// The result of the latest check of this member's disk.
    pub fn disk(&self) -> watch::Receiver<Disk> {
        self.disk.clone()
    }

    /// Why this member's wall clock is in doubt, if it is. The leader then stamps entries by its monotonic clock.
    pub fn clock_doubt(&self) -> watch::Receiver<Option<ClockDoubt>> {
        self.group.clock_doubt()
    }

    /// The last state in which this member was found to agree with a majority of the voters.
    pub fn agreement(&self) -> watch::Receiver<Agreement> {
        self.agreement.clone()
    }

    /// How many times a leader task has panicked on this member since its start.
    pub fn task_panics(&self) -> u64 {
        self.panics.count()
    }
}
