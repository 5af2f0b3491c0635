//! The leases that this node holds, and a record of past ones.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use atlas_types::{Assignment, FencingToken, HeldLease, JobId, Park};

use crate::SlotId;

/// Where a held lease stands.
#[derive(Debug)]
pub(crate) enum Stage {
    /// An older attempt of the same job is still being stopped: two must not run at once.
    AwaitingEnd {
        /// The assignment, until it goes on.
        assignment: Box<Assignment>,
        /// The older attempt's lease.
        older: FencingToken,
    },
    /// What it needs is being fetched, before its start is reported: a start that is committed says that it may have run.
    Preparing {
        /// The assignment, until it goes on.
        assignment: Box<Assignment>,
    },
    /// There is no memory for its slot until others are gone.
    AwaitingRoom {
        /// The assignment, until it goes on.
        assignment: Box<Assignment>,
        /// Its start must be committed, and what it needs is here.
        prepared: bool,
    },
    /// Its start was reported and must be committed before it runs.
    AwaitingStart {
        /// The assignment, until it runs.
        assignment: Box<Assignment>,
        /// The report that must be applied.
        report: u64,
        /// The slot reserved for it.
        slot: SlotId,
    },
    /// It runs.
    Running {
        /// Where.
        slot: SlotId,
        /// Set once it was asked to stop; decides what its end means.
        stop: Option<Stop>,
        /// It must not run twice: its result is saved before it is reported.
        once: bool,
        /// What it waits for, if its job may be parked meanwhile.
        wait: Option<Waiting>,
    },
}

/// A wait of an attempt, during which its job may be parked.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) park: Park,
    /// Since when. What was used before is in `park`.
    pub(crate) since: Duration,
    /// When the leader is asked, unless it has been.
    pub(crate) ask_at: Duration,
    /// The number under which the leader was asked; it may have parked the job.
    pub(crate) asked: Option<u64>,
    /// The wait has ended since the leader was asked.
    pub(crate) over: bool,
}

/// What the end of an attempt means that was asked to stop and keeps its lease meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its job was cancelled.
    Cancelled,
    /// The worker stops and gives the lease back.
    Abandoned,
}

/// One held lease.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) lease: HeldLease,
    pub(crate) stage: Stage,
}

/// A slot that stops for a lease which is over.
#[derive(Debug)]
pub(crate) struct Stopping {
    pub(crate) job: JobId,
    pub(crate) slot: SlotId,
    /// The leader still counts on the lease: to be given back once nothing runs.
    pub(crate) give_back: bool,
    /// Its job was parked: a process that has left the job may serve others.
    pub(crate) is_parked: bool,
}

/// Held leases by token; slots that still stop for a lease that is no longer held; tokens that are over.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    held: BTreeMap<FencingToken, Attempt>,
    stopping: BTreeMap<FencingToken, Stopping>,
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

    pub(crate) fn stage_mut(&mut self, token: FencingToken) -> Option<&mut Stage> {
        self.held.get_mut(&token).map(|attempt| &mut attempt.stage)
    }

    /// The waits of running attempts that were not asked to stop, in the order of their leases.
    pub(crate) fn waiting_mut(&mut self) -> impl Iterator<Item = (HeldLease, &mut Waiting)> {
        self.held.values_mut().filter_map(|attempt| match &mut attempt.stage {
            Stage::Running { stop: None, wait: Some(wait), .. } => Some((attempt.lease, wait)),
            _ => None,
        })
    }

    /// The same, to read.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.held.values().filter_map(|attempt| match &attempt.stage {
            Stage::Running { stop: None, wait, .. } => wait.as_ref(),
            _ => None,
        })
    }

    /// The attempt for which the leader was asked under a number.
    pub(crate) fn asks(&self, number: u64) -> Option<FencingToken> {
        let asks = |attempt: &Attempt| match &attempt.stage {
            Stage::Running { wait: Some(wait), .. } => wait.asked == Some(number),
            _ => false,
        };
        self.held.values().find(|attempt| asks(attempt)).map(|attempt| attempt.lease.token)
    }

    pub(crate) fn contains(&self, token: FencingToken) -> bool {
        self.held.contains_key(&token)
    }

    /// Whether what the attempt needs is being fetched.
    pub(crate) fn is_preparing(&self, token: FencingToken) -> bool {
        self.held.get(&token).is_some_and(|attempt| matches!(attempt.stage, Stage::Preparing { .. }))
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
    pub(crate) fn stopping(&mut self, lease: HeldLease, slot: SlotId, is_parked: bool) {
        self.stopping.insert(lease.token, Stopping { job: lease.job, slot, give_back: false, is_parked });
    }

    /// Has the lease given back once its slot has stopped; false if none is stopping for it.
    pub(crate) fn give_back_later(&mut self, token: FencingToken) -> bool {
        let stopping = self.stopping.get_mut(&token);
        stopping.map(|stopping| stopping.give_back = true).is_some()
    }

    /// A lease of the job whose slot has not stopped yet.
    pub(crate) fn stopping_of(&self, job: JobId) -> Option<FencingToken> {
        self.stopping.iter().find(|(_, stopping)| stopping.job == job).map(|(&token, _)| token)
    }

    /// The attempt that waits for the end of `older`.
    pub(crate) fn awaiting_end(&self, older: FencingToken) -> Option<FencingToken> {
        let waits = |attempt: &Attempt| matches!(attempt.stage, Stage::AwaitingEnd { older: o, .. } if o == older);
        self.held.values().find(|attempt| waits(attempt)).map(|attempt| attempt.lease.token)
    }

    pub(crate) fn stopped(&mut self, token: FencingToken) -> Option<Stopping> {
        self.stopping.remove(&token)
    }

    /// The waiting attempt whose start is reported by `report`.
    pub(crate) fn awaiting(&self, report: u64) -> Option<FencingToken> {
        let waits = |attempt: &Attempt| matches!(attempt.stage, Stage::AwaitingStart { report: r, .. } if r == report);
        self.held.values().find(|attempt| waits(attempt)).map(|attempt| attempt.lease.token)
    }

    /// The attempts that wait for room, in the order of their leases.
    pub(crate) fn awaiting_room(&self) -> Vec<FencingToken> {
        let waiting = self.held.iter().filter(|(_, attempt)| matches!(attempt.stage, Stage::AwaitingRoom { .. }));
        waiting.map(|(&token, _)| token).collect()
    }

    /// The lease of a job that is held.
    pub(crate) fn of_job(&self, job: JobId) -> Option<FencingToken> {
        self.held.values().map(|attempt| attempt.lease).find(|lease| lease.job == job).map(|lease| lease.token)
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
