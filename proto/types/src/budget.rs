//! The envelope of a budget: what the model calls of a job and of all jobs below it have cost, and what calls under way may cost.

use std::collections::BTreeMap;

use crate::{JobId, StepKey};

/// Most calls under way that one envelope keeps apart. A further one waits.
pub const RESERVATIONS_MAX: usize = 1_024;

/// What a model call may cost at most, reserved before it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// The key of the step that will record the call.
    pub key: StepKey,
    /// In billionths of a dollar.
    pub nanodollars: u64,
}

/// Why an amount is not reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReserved {
    /// It does not fit, whatever the calls under way cost.
    Never,
    /// It may fit once calls under way are recorded.
    NotNow,
}

/// What the tree of a job with a budget has drawn from it. Amounts are in billionths of a dollar.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Envelope {
    /// The cost of all recorded calls.
    pub spent: u64,
    /// The calls under way, by job and key of their step.
    pub reserved: BTreeMap<(JobId, StepKey), u64>,
}

impl Envelope {
    /// What calls under way may cost together.
    pub fn reserved(&self) -> u64 {
        self.reserved.values().fold(0, |sum, amount| sum.saturating_add(*amount))
    }

    /// Reserves an amount under a budget. The same call again has one reservation: an attempt after a lost one makes it again. An amount of
    /// nothing frees the reservation: the call was made and cost nothing.
    ///
    /// ```
    /// use atlas_types::{Envelope, JobId, NotReserved, Reservation, StepKey};
    ///
    /// let (job, call) = (JobId(1), |key, nanodollars| Reservation { key: StepKey([key; 16]), nanodollars });
    /// let mut envelope = Envelope { spent: 40, ..Envelope::default() };
    /// assert_eq!(envelope.reserve(job, call(1, 50), 100), Ok(()));
    /// assert_eq!(envelope.reserve(job, call(1, 60), 100), Ok(()));
    /// assert_eq!(envelope.reserve(job, call(2, 60), 100), Err(NotReserved::NotNow));
    /// assert_eq!(envelope.reserve(job, call(2, 61), 100), Err(NotReserved::Never));
    /// ```
    pub fn reserve(&mut self, job: JobId, call: Reservation, budget: u64) -> Result<(), NotReserved> {
        if call.nanodollars == 0 {
            self.reserved.remove(&(job, call.key));
            return Ok(());
        }
        if self.spent.saturating_add(call.nanodollars) > budget {
            return Err(NotReserved::Never);
        }
        let earlier = self.reserved.get(&(job, call.key)).copied();
        let others = self.reserved().saturating_sub(earlier.unwrap_or(0));
        let full = earlier.is_none() && self.reserved.len() >= RESERVATIONS_MAX;
        if full || self.spent.saturating_add(others).saturating_add(call.nanodollars) > budget {
            return Err(NotReserved::NotNow);
        }
        self.reserved.insert((job, call.key), call.nanodollars);
        Ok(())
    }

    /// Replaces what was reserved for a call by what it cost.
    pub fn settle(&mut self, job: JobId, key: StepKey, cost: u64) {
        self.reserved.remove(&(job, key));
        self.spent = self.spent.saturating_add(cost);
    }

    /// Frees what a job that ended has reserved. True if there was anything.
    pub fn release(&mut self, job: JobId) -> bool {
        let before = self.reserved.len();
        self.reserved.retain(|(holder, _), _| *holder != job);
        self.reserved.len() < before
    }
}
