//! Slots: busy with an attempt, or idle and warm for the next one of the same kind. Together they hold no more memory and GPU
//! memory than the node has.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use atlas_types::{Allocation, Assignment, Bounds, Digest, FencingToken, Namespace};

use crate::room::Room;
use crate::{Options, SlotId};

/// What a slot was made for; it never serves anything else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotKey {
    /// Whose jobs.
    pub namespace: Namespace,
    /// Of which package.
    pub digest: Digest,
    /// Confined to which GPUs.
    pub gpus: Vec<u32>,
    /// Confined to what policies left its agent when it was made.
    pub bounds: Option<Bounds>,
}

impl SlotKey {
    /// The key of the slot that `assignment` needs.
    pub fn of(assignment: &Assignment) -> Self {
        Self {
            namespace: assignment.namespace.clone(),
            digest: assignment.digest,
            gpus: assignment.allocation.gpus.iter().map(|share| share.index).collect(),
            bounds: assignment.attachments.bounds().cloned(),
        }
    }
}

/// How long a slot stays idle beyond those that are kept warm. Under load the next attempt comes at once, and a process that ends between
/// two attempts makes the second a cold one.
const SPARE_KEPT: Duration = Duration::from_secs(1);

/// How long a slot has nothing to do.
#[derive(Debug, Clone, Copy)]
struct Idle {
    since: Duration,
    until: Duration,
    /// True if as many slots as are kept warm were idle already.
    is_spare: bool,
}

#[derive(Debug)]
enum Use {
    /// Kept for an attempt that has not started; since when its process is idle, if it has one.
    Reserved {
        idle_since: Option<Duration>,
    },
    Busy(FencingToken),
    Idle(Idle),
    /// Shuts down; its process may still be there.
    Leaving,
}

#[derive(Debug)]
struct Slot {
    key: SlotKey,
    /// What its process occupies, idle or not.
    holds: Allocation,
    used: Use,
}

/// All slots of the node.
#[derive(Debug)]
pub(crate) struct Pool {
    next: u64,
    slots: BTreeMap<SlotId, Slot>,
    /// When each idle slot becomes too old.
    expiries: BTreeSet<(Duration, SlotId)>,
    room: Room,
    warm_pool_size: u32,
    idle_timeout: Duration,
}

impl Pool {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            next: 1,
            slots: BTreeMap::new(),
            expiries: BTreeSet::new(),
            room: Room::of(&options.inventory),
            warm_pool_size: options.warm_pool_size,
            idle_timeout: options.idle_timeout,
        }
    }

    /// Reserves a slot for an attempt: the idle one used last, so that the others grow old and go. None if there is no room for a new
    /// one beside all slots and `ahead`.
    pub(crate) fn reserve(&mut self, assignment: &Assignment, ahead: &[Allocation]) -> Option<SlotId> {
        let (key, holds) = (SlotKey::of(assignment), &assignment.allocation);
        let idle =
            self.slots.iter_mut().filter(|(_, slot)| slot.key == key).filter_map(|(&id, slot)| match slot.used {
                Use::Idle(idle) => Some((idle, id, slot)),
                Use::Reserved { .. } | Use::Busy(_) | Use::Leaving => None,
            });
        if let Some((idle, id, slot)) = idle.max_by_key(|&(idle, id, _)| (idle.since, id)) {
            slot.used = Use::Reserved { idle_since: Some(idle.since) };
            self.expiries.remove(&(idle.until, id));
            return Some(id);
        }
        let held = self.slots.values().map(|slot| &slot.holds);
        if !self.room.shortage(held.chain(ahead), holds).is_none() {
            return None;
        }
        let id = SlotId(self.next);
        self.next += 1;
        self.slots.insert(id, Slot { key, holds: holds.clone(), used: Use::Reserved { idle_since: None } });
        Some(id)
    }

    /// The idle slots that must go to make room for `wanted` and `ahead`: first those that would go soon, then the longest idle ones.
    pub(crate) fn in_the_way(&self, wanted: &Allocation, ahead: &[Allocation]) -> Vec<SlotId> {
        let staying = self.slots.iter().filter(|(_, slot)| !matches!(slot.used, Use::Leaving));
        let mut held: BTreeMap<SlotId, &Allocation> = staying.map(|(&id, slot)| (id, &slot.holds)).collect();
        let mut idle: Vec<_> =
            self.idle().map(|(id, slot, idle)| (!idle.is_spare, idle.since, id, &slot.holds)).collect();
        idle.sort_unstable_by_key(|&(is_kept, since, id, _)| (is_kept, since, id));
        let mut evicted = Vec::new();
        for (.., id, holds) in idle {
            let shortage = self.room.shortage(held.values().copied().chain(ahead), wanted);
            if shortage.is_none() {
                break;
            }
            if shortage.is_eased_by(holds) {
                held.remove(&id);
                evicted.push(id);
            }
        }
        evicted
    }

    /// An attempt starts in the slot reserved for it. Returns whether the slot is warm.
    pub(crate) fn start(&mut self, id: SlotId, token: FencingToken) -> bool {
        let reserved = self.slots.get_mut(&id).map(|slot| std::mem::replace(&mut slot.used, Use::Busy(token)));
        matches!(reserved, Some(Use::Reserved { idle_since: Some(_) }))
    }

    /// An attempt will not start in the slot reserved for it. Returns true if its process must be shut down.
    pub(crate) fn unreserve(&mut self, id: SlotId) -> bool {
        match self.slots.get(&id).map(|slot| &slot.used) {
            Some(&Use::Reserved { idle_since: Some(since) }) => self.release(id, true, since),
            Some(Use::Reserved { idle_since: None }) => {
                self.slots.remove(&id);
                false
            }
            Some(Use::Busy(_) | Use::Idle(_) | Use::Leaving) | None => false,
        }
    }

    /// Ends the use of a slot. Returns true if its process must be shut down: usable, but no idle ones are kept.
    pub(crate) fn release(&mut self, id: SlotId, usable: bool, now: Duration) -> bool {
        let Some(slot) = self.slots.get(&id) else { return false };
        let kept =
            |other: &Slot| matches!(other.used, Use::Idle(Idle { is_spare: false, .. })) && other.key == slot.key;
        let is_spare = self.slots.values().filter(|other| kept(other)).count() >= self.warm_pool_size as usize;
        let keep = usable && self.warm_pool_size > 0;
        let lasts = if is_spare { SPARE_KEPT.min(self.idle_timeout) } else { self.idle_timeout };
        let idle = Idle { since: now, until: now + lasts, is_spare };
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.used = if keep { Use::Idle(idle) } else { Use::Leaving };
        }
        if keep {
            self.expiries.insert((idle.until, id));
        }
        usable && !keep
    }

    /// The package that a slot was made for.
    pub(crate) fn digest(&self, id: SlotId) -> Option<Digest> {
        self.slots.get(&id).map(|slot| slot.key.digest)
    }

    /// An idle slot shuts down; none if it is not idle. It holds what it has until it is [`Self::gone`].
    pub(crate) fn leave(&mut self, id: SlotId) -> Option<Digest> {
        let slot = self.slots.get_mut(&id)?;
        match &mut slot.used {
            Use::Idle(idle) => {
                self.expiries.remove(&(idle.until, id));
                slot.used = Use::Leaving;
                Some(slot.key.digest)
            }
            // The attempt gets another process.
            Use::Reserved { idle_since } => {
                *idle_since = None;
                None
            }
            Use::Busy(_) | Use::Leaving => None,
        }
    }

    /// The process of a slot that shuts down is gone.
    pub(crate) fn gone(&mut self, id: SlotId) {
        if self.slots.get(&id).is_some_and(|slot| matches!(slot.used, Use::Leaving)) {
            self.slots.remove(&id);
        }
    }

    /// Idle slots that are too old at `now`; with `all`, every idle slot.
    pub(crate) fn expired(&self, now: Duration, all: bool) -> Vec<SlotId> {
        self.expiries.iter().take_while(|(until, _)| all || *until <= now).map(|&(_, id)| id).collect()
    }

    /// When the oldest idle slot becomes too old.
    pub(crate) fn next_expiry(&self) -> Option<Duration> {
        self.expiries.first().map(|&(until, _)| until)
    }

    /// Idle slots of one package, over all namespaces and devices.
    pub(crate) fn idle_of_digest(&self, digest: Digest) -> u32 {
        let idle = self.idle().filter(|(_, slot, _)| slot.key.digest == digest);
        u32::try_from(idle.count()).unwrap_or(u32::MAX)
    }

    fn idle(&self) -> impl Iterator<Item = (SlotId, &Slot, Idle)> {
        self.slots.iter().filter_map(|(&id, slot)| match slot.used {
            Use::Idle(idle) => Some((id, slot, idle)),
            Use::Reserved { .. } | Use::Busy(_) | Use::Leaving => None,
        })
    }

    /// The attempts that slots are busy with.
    pub(crate) fn busy(&self) -> Vec<FencingToken> {
        let token = |slot: &Slot| match slot.used {
            Use::Busy(token) => Some(token),
            Use::Reserved { .. } | Use::Idle(_) | Use::Leaving => None,
        };
        self.slots.values().filter_map(token).collect()
    }
}
