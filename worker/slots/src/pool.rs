//! Slots: busy with an attempt, or idle and warm for the next one of the same kind.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_types::{Assignment, Digest, FencingToken, Namespace};

use crate::SlotId;

/// What a slot was made for; it never serves anything else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotKey {
    /// Whose jobs.
    pub namespace: Namespace,
    /// Of which package.
    pub digest: Digest,
    /// Confined to which GPUs.
    pub gpus: Vec<u32>,
}

impl SlotKey {
    /// The key of the slot that `assignment` needs.
    pub fn of(assignment: &Assignment) -> Self {
        Self {
            namespace: assignment.namespace.clone(),
            digest: assignment.digest,
            gpus: assignment.allocation.gpus.iter().map(|share| share.index).collect(),
        }
    }
}

#[derive(Debug)]
enum Use {
    Busy(FencingToken),
    Idle { since: Duration },
}

#[derive(Debug)]
struct Slot {
    key: SlotKey,
    used: Use,
}

/// All slots of the node.
#[derive(Debug)]
pub(crate) struct Pool {
    next: u64,
    slots: BTreeMap<SlotId, Slot>,
    warm_pool_size: u32,
    idle_timeout: Duration,
}

impl Pool {
    pub(crate) fn new(warm_pool_size: u32, idle_timeout: Duration) -> Self {
        Self { next: 1, slots: BTreeMap::new(), warm_pool_size, idle_timeout }
    }

    /// A slot for an attempt, and whether it is warm: the one used last, so that the others grow old and go.
    pub(crate) fn take(&mut self, key: SlotKey, token: FencingToken) -> (SlotId, bool) {
        let idle =
            self.slots.iter_mut().filter(|(_, slot)| slot.key == key).filter_map(|(&id, slot)| match slot.used {
                Use::Idle { since } => Some((since, id, slot)),
                Use::Busy(_) => None,
            });
        if let Some((_, id, slot)) = idle.max_by_key(|&(since, id, _)| (since, id)) {
            slot.used = Use::Busy(token);
            return (id, true);
        }
        let id = SlotId(self.next);
        self.next += 1;
        self.slots.insert(id, Slot { key, used: Use::Busy(token) });
        (id, false)
    }

    /// Ends the use of a slot. Returns true if its process must be shut down: usable, but there are enough idle ones.
    pub(crate) fn release(&mut self, id: SlotId, usable: bool, now: Duration) -> bool {
        let Some(key) = self.slots.get(&id).map(|slot| slot.key.clone()) else { return false };
        let keep = usable && self.idle_of(&key) < self.warm_pool_size;
        match self.slots.get_mut(&id) {
            Some(slot) if keep => slot.used = Use::Idle { since: now },
            _ => {
                self.slots.remove(&id);
            }
        }
        usable && !keep
    }

    /// The package that a slot was made for.
    pub(crate) fn digest(&self, id: SlotId) -> Option<Digest> {
        self.slots.get(&id).map(|slot| slot.key.digest)
    }

    /// Forgets an idle slot; none if it is busy or unknown.
    pub(crate) fn remove_idle(&mut self, id: SlotId) -> Option<Digest> {
        match self.slots.get(&id)?.used {
            Use::Idle { .. } => self.slots.remove(&id).map(|slot| slot.key.digest),
            Use::Busy(_) => None,
        }
    }

    /// Idle slots that are too old at `now`; with `all`, every idle slot.
    pub(crate) fn expired(&self, now: Duration, all: bool) -> Vec<SlotId> {
        let old = |slot: &Slot| match slot.used {
            Use::Idle { since } => all || since + self.idle_timeout <= now,
            Use::Busy(_) => false,
        };
        self.slots.iter().filter(|(_, slot)| old(slot)).map(|(&id, _)| id).collect()
    }

    /// When the oldest idle slot becomes too old.
    pub(crate) fn next_expiry(&self) -> Option<Duration> {
        let since = self.slots.values().filter_map(|slot| match slot.used {
            Use::Idle { since } => Some(since),
            Use::Busy(_) => None,
        });
        since.min().map(|since| since + self.idle_timeout)
    }

    /// Idle slots of one package, over all name spaces and devices.
    pub(crate) fn idle_of_digest(&self, digest: Digest) -> u32 {
        self.count_idle(|slot| slot.key.digest == digest)
    }

    fn idle_of(&self, key: &SlotKey) -> u32 {
        self.count_idle(|slot| slot.key == *key)
    }

    fn count_idle(&self, wanted: impl Fn(&Slot) -> bool) -> u32 {
        let idle = self.slots.values().filter(|slot| matches!(slot.used, Use::Idle { .. }) && wanted(slot));
        u32::try_from(idle.count()).unwrap_or(u32::MAX)
    }

    /// The attempts that slots are busy with.
    pub(crate) fn busy(&self) -> Vec<FencingToken> {
        let token = |slot: &Slot| match slot.used {
            Use::Busy(token) => Some(token),
            Use::Idle { .. } => None,
        };
        self.slots.values().filter_map(token).collect()
    }
}
