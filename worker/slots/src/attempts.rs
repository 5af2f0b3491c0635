//! The leases that this node holds, and the memory of those it held.

use std::collections::{BTreeMap, BTreeSet};

use atlas_types::{Assignment, FencingToken, HeldLease, JobId};

use crate::SlotId;

/// Where a held lease stands.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Its start was reported and must be committed before it runs.
    AwaitingStart {
        /// The assignment, until it runs.
        assignment: Box<Assignment>,
        /// The report that must be applied.
        report: u64,
    },
    /// It runs.
    Running {
        /// Where.
        slot: SlotId,
        /// A cancel was asked for.
        cancelled: bool,
    },
}

/// One held lease.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) lease: HeldLease,
    pub(crate) stage: Stage,
}

/// Held leases by token; slots that still stop for a lease that is no longer held; tokens that are over.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    held: BTreeMap<FencingToken, Attempt>,
    stopping: BTreeMap<FencingToken, SlotId>,
    over: BTreeSet<FencingToken>,
    /// Every token below is over, unless held.
    floor: FencingToken,
}

impl Attempts {
    /// So many ended tokens are remembered one by one. A grant is at most one reconnect late, so far fewer would do.
    const OVER_MAX: usize = 4_096;

    /// True if this process has never had the lease.
    pub(crate) fn is_new(&self, token: FencingToken) -> bool {
        !self.held.contains_key(&token)
            && !self.stopping.contains_key(&token)
            && !self.over.contains(&token)
            && token >= self.floor
    }

    pub(crate) fn insert(&mut self, attempt: Attempt) {
        self.held.insert(attempt.lease.token, attempt);
    }

    pub(crate) fn get_mut(&mut self, token: FencingToken) -> Option<&mut Attempt> {
        self.held.get_mut(&token)
    }

    pub(crate) fn contains(&self, token: FencingToken) -> bool {
        self.held.contains_key(&token)
    }

    /// Takes a lease out to move it to another stage.
    pub(crate) fn take(&mut self, token: FencingToken) -> Option<Attempt> {
        self.held.remove(&token)
    }

    /// Ends a lease; its token never runs again.
    pub(crate) fn remove(&mut self, token: FencingToken) -> Option<Attempt> {
        let attempt = self.take(token)?;
        self.forget(token);
        Some(attempt)
    }

    /// Notes that a token is over.
    pub(crate) fn forget(&mut self, token: FencingToken) {
        self.over.insert(token);
        if self.over.len() > Self::OVER_MAX
            && let Some(oldest) = self.over.pop_first()
        {
            self.floor = oldest.next();
        }
    }

    /// Notes that a slot still stops for a lease that is over.
    pub(crate) fn stopping(&mut self, token: FencingToken, slot: SlotId) {
        self.stopping.insert(token, slot);
    }

    pub(crate) fn stopped(&mut self, token: FencingToken) -> Option<SlotId> {
        self.stopping.remove(&token)
    }

    /// The waiting attempt whose start is reported by `report`.
    pub(crate) fn awaiting(&self, report: u64) -> Option<FencingToken> {
        let waits = |attempt: &Attempt| matches!(attempt.stage, Stage::AwaitingStart { report: r, .. } if r == report);
        self.held.values().find(|attempt| waits(attempt)).map(|attempt| attempt.lease.token)
    }

    /// An older lease of the same job.
    pub(crate) fn older(&self, job: JobId, token: FencingToken) -> Option<FencingToken> {
        self.held.values().map(|attempt| attempt.lease).find(|l| l.job == job && l.token < token).map(|l| l.token)
    }

    pub(crate) fn tokens(&self) -> Vec<FencingToken> {
        self.held.keys().copied().collect()
    }

    pub(crate) fn leases(&self) -> Vec<HeldLease> {
        self.held.values().map(|attempt| attempt.lease).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.stopping.is_empty()
    }
}
