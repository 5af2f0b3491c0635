//! When an attempt gets its slot: once the memory and GPU memory that it needs are free. The leader counts idle slots as free, so
//! they are evicted here when an attempt needs their memory, and it waits until their processes are gone. Idle slots are also evicted
//! when nobody has used them for a while.

use std::time::Duration;

use atlas_types::{Assignment, Digest, FencingToken, HeldLease, ReportKind};

use super::{Session, Slots};
use crate::attempts::{Attempt, Stage};
use crate::{Effect, SlotId};

impl Slots {
    /// Starts an attempt, or has its start committed, when there is room for it. `prepared`: its start must be committed, and what it
    /// needs is here.
    pub(super) fn admit(
        &mut self,
        lease: HeldLease,
        assignment: Box<Assignment>,
        prepared: bool,
        effects: &mut Vec<Effect>,
    ) {
        self.attempts.insert(Attempt { lease, stage: Stage::AwaitingRoom { assignment, prepared } });
        self.make_room(effects);
    }

    /// Gives slots to the attempts that wait for one, in the order of their leases, and evicts idle slots for the others.
    ///
    /// What an attempt waits for is not given to one behind it. Nobody waits for ever: all leases fit at once on the node, and beside
    /// them there are only slots that shut down.
    pub(super) fn make_room(&mut self, effects: &mut Vec<Effect>) {
        let mut ahead = Vec::new();
        for token in self.attempts.awaiting_room() {
            let Some(Attempt { stage: Stage::AwaitingRoom { assignment, .. }, .. }) = self.attempts.get_mut(token)
            else {
                continue;
            };
            if let Some(slot) = self.pool.reserve(assignment, &ahead) {
                self.admitted(token, slot, effects);
                continue;
            }
            let wanted = assignment.allocation.clone();
            for slot in self.pool.in_the_way(&wanted, &ahead) {
                self.evict_idle(slot, effects);
            }
            ahead.push(wanted);
        }
    }

    fn admitted(&mut self, token: FencingToken, slot: SlotId, effects: &mut Vec<Effect>) {
        let Some(Attempt { lease, stage: Stage::AwaitingRoom { assignment, prepared } }) = self.attempts.take(token)
        else {
            return;
        };
        if prepared {
            // From now on only this node knows whether it ran.
            let report = self.report(lease.job, token, ReportKind::Started, effects);
            self.attempts.insert(Attempt { lease, stage: Stage::AwaitingStart { assignment, report, slot } });
        } else {
            self.start(lease, assignment, slot, effects);
        }
    }

    /// Runs an attempt in the slot reserved for it.
    pub(super) fn start(
        &mut self,
        lease: HeldLease,
        assignment: Box<Assignment>,
        slot: SlotId,
        effects: &mut Vec<Effect>,
    ) {
        let warm = self.pool.start(slot, lease.token);
        let once = assignment.needs_start;
        self.attempts.insert(Attempt { lease, stage: Stage::Running { slot, stop: None, once, wait: None } });
        effects.push(Effect::StartAttempt { assignment, slot, warm });
    }

    /// Gives up the slot reserved for an attempt that will not start.
    pub(super) fn unreserve(&mut self, slot: SlotId, effects: &mut Vec<Effect>) {
        if self.pool.unreserve(slot) {
            effects.push(Effect::EvictSlot { slot });
        }
    }

    /// Shuts an idle slot down.
    pub(super) fn evict_idle(&mut self, slot: SlotId, effects: &mut Vec<Effect>) {
        if let Some(digest) = self.pool.leave(slot) {
            effects.push(Effect::EvictSlot { slot });
            self.tell_warm(digest, effects);
        }
    }

    pub(super) fn slot_died(&mut self, slot: SlotId, effects: &mut Vec<Effect>) {
        if let Some(digest) = self.pool.leave(slot) {
            self.tell_warm(digest, effects);
        }
    }

    pub(super) fn evict(&mut self, now: Duration, all: bool, effects: &mut Vec<Effect>) {
        for slot in self.pool.expired(now, all) {
            self.evict_idle(slot, effects);
        }
    }

    pub(super) fn tell_warm(&self, digest: Digest, effects: &mut Vec<Effect>) {
        if self.session == Session::Live {
            effects.push(Effect::SendWarmChanged { digest, idle: self.pool.idle_of_digest(digest) });
        }
    }
}
