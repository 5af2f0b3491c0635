//! Nodes that accept leases, by free resources, and nodes by idle warm slots.
//!
//! Nodes with similar free resources share a bucket (amounts are rounded down to a power of two), so a large demand
//! skips all buckets where it cannot fit and checks nodes in vain only in the bucket at its boundary. Within a bucket,
//! and over all that match, the nodes with the fewest free places come first: that is the order of `bin_pack`. Each kind of place has buckets of its own.
//!
//! The same buckets hold all nodes by their total resources, to check whether a job can ever run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use atlas_allocation::Free;
use atlas_types::{Demand, Digest, NodeId, Place};

use crate::map::{Map, Set};
use crate::node::NodeState;

/// Rounded amounts: numbers of binary digits, so 0 is none and one more is about twice as much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bucket {
    cores: u8,
    memory: u8,
    /// Memory of the GPU that has most free.
    vram: u8,
    /// Free GPUs, at most 255.
    gpus_whole: u8,
    /// GPUs, at most 255.
    gpus: u8,
}

impl Bucket {
    fn of(free: &Free) -> Self {
        if free.unchecked {
            return Self { cores: u8::MAX, memory: u8::MAX, vram: u8::MAX, gpus_whole: u8::MAX, gpus: u8::MAX };
        }
        let whole = |gpu: &&atlas_allocation::GpuFree| gpu.holders == 0;
        // A device of unknown size passes every check on its amount.
        let room = |gpu: &atlas_allocation::GpuFree| if gpu.total_bytes == 0 { u64::MAX } else { gpu.free_bytes };
        Self {
            cores: digits(u64::from(free.cores)),
            memory: digits(free.memory_bytes),
            vram: digits(free.gpus.iter().map(room).max().unwrap_or(0)),
            gpus_whole: few(free.gpus.iter().filter(whole).count()),
            gpus: few(free.gpus.len()),
        }
    }

    /// Whether some node in here could have room. What a declared inventory adds is left to the exact check.
    fn may_have_room(self, demand: &Demand) -> bool {
        let gpus = few(demand.gpus as usize);
        let gpus_fit = if demand.vram_bytes == 0 { self.gpus_whole >= gpus } else { self.gpus >= gpus };
        self.cores >= digits(u64::from(demand.cores))
            && self.memory >= digits(demand.memory_bytes)
            && gpus_fit
            && (gpus == 0 || self.vram >= digits(demand.vram_bytes))
    }
}

fn digits(amount: u64) -> u8 {
    (u64::BITS - amount.leading_zeros()) as u8
}

fn few(count: usize) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}

/// Free places first, so that the fullest node comes first.
type Room = (u32, NodeId);

/// Where a node is found for each kind of [`Place::ALL`]; none while it takes no leases or has no free place of that kind.
pub(crate) type Places = [Option<(Bucket, Room)>; 2];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rooms {
    /// By kind of place.
    buckets: [Map<Bucket, Set<Room>>; 2],
    capacity: Map<Bucket, Set<NodeId>>,
    warm: Map<Digest, Set<NodeId>>,
    /// Nodes that take leases and have a job which lends its place.
    lending: Set<NodeId>,
}

impl Rooms {
    pub(crate) fn change(&mut self, old: Option<&NodeState>, new: Option<&NodeState>) {
        self.move_node(old.map(places).unwrap_or_default(), new.map(places).unwrap_or_default());
        let (was, is) = (old.filter(|node| lends(node)), new.filter(|node| lends(node)));
        if let (Some(state), None) = (was, is) {
            self.lending.remove(&state.node.id);
        } else if let (None, Some(state)) = (was, is) {
            self.lending.insert(state.node.id.clone());
        }
        self.change_capacity(old, new);
        let has = |node: Option<&NodeState>, digest| node.is_some_and(|node| node.node.warm.contains_key(digest));
        if let Some(state) = old {
            for digest in state.node.warm.keys().filter(|digest| !has(new, digest)) {
                self.change_warm(*digest, &state.node.id, false);
            }
        }
        if let Some(state) = new {
            for digest in state.node.warm.keys().filter(|digest| !has(old, digest)) {
                self.change_warm(*digest, &state.node.id, true);
            }
        }
    }

    /// A node that was found at one place is found at another.
    pub(crate) fn move_node(&mut self, was: Places, is: Places) {
        for (buckets, (was, is)) in self.buckets.iter_mut().zip(was.into_iter().zip(is)) {
            if was == is {
                continue;
            }
            if let Some((bucket, room)) = was {
                remove(buckets, &bucket, &room);
            }
            if let Some((bucket, room)) = is {
                buckets.entry(bucket).or_default().insert(room);
            }
        }
    }

    /// A node has a job that lends its place, or none any more.
    pub(crate) fn change_lending(&mut self, node: &NodeId, lends: bool) {
        if lends {
            self.lending.insert(node.clone());
        } else {
            self.lending.remove(node);
        }
    }

    /// Names of nodes with a job that lends its place.
    pub(crate) fn lending(&self) -> impl Iterator<Item = &NodeId> {
        self.lending.iter()
    }

    fn change_capacity(&mut self, old: Option<&NodeState>, new: Option<&NodeState>) {
        let inventory = |node: Option<&NodeState>| node.map(|state| Bucket::of(&Free::at_best(&state.node.inventory)));
        let (was, is) = (inventory(old), inventory(new));
        if was == is {
            return;
        }
        if let (Some(bucket), Some(state)) = (was, old) {
            remove(&mut self.capacity, &bucket, &state.node.id);
        }
        if let (Some(bucket), Some(state)) = (is, new) {
            self.capacity.entry(bucket).or_default().insert(state.node.id.clone());
        }
    }

    /// A node has its first idle warm slot of a package, or none any more.
    pub(crate) fn change_warm(&mut self, digest: Digest, node: &NodeId, is_warm: bool) {
        if is_warm {
            self.warm.entry(digest).or_default().insert(node.clone());
        } else {
            remove(&mut self.warm, &digest, node);
        }
    }

    /// Names of nodes that may have room for `demand`, those with the fewest free places first.
    pub(crate) fn candidates(&self, demand: &Demand) -> impl Iterator<Item = &NodeId> {
        let matching = self.buckets[demand.place as usize].iter().filter(|(bucket, _)| bucket.may_have_room(demand));
        let mut rooms: Vec<_> = matching.map(|(_, rooms)| rooms.iter()).collect();
        // A merge of the matching buckets; each is in order already.
        let heads = rooms.iter_mut().enumerate().filter_map(|(at, rooms)| rooms.next().map(|room| Reverse((room, at))));
        let mut heads: BinaryHeap<_> = heads.collect();
        std::iter::from_fn(move || {
            let Reverse((room, at)) = heads.pop()?;
            if let Some(next) = rooms[at].next() {
                heads.push(Reverse((next, at)));
            }
            Some(&room.1)
        })
    }

    /// Names of nodes that may be large enough for `demand` if they held nothing.
    pub(crate) fn capable(&self, demand: &Demand) -> impl Iterator<Item = &NodeId> {
        self.capacity.iter().filter(|(bucket, _)| bucket.may_have_room(demand)).flat_map(|(_, nodes)| nodes.iter())
    }

    /// Names of nodes with an idle warm slot of a package.
    pub(crate) fn warm(&self, digest: &Digest) -> impl Iterator<Item = &NodeId> {
        self.warm.get(digest).into_iter().flat_map(Set::iter)
    }
}

/// Whether a deeper job may start in a place that a waiting one lends.
pub(crate) fn lends(state: &NodeState) -> bool {
    state.takes_leases() && state.free.lends()
}

/// Where a node is found.
pub(crate) fn places(state: &NodeState) -> Places {
    let open = state.takes_leases();
    Place::ALL.map(|place| {
        let free = state.free.places(place).free;
        (open && free > 0).then(|| (Bucket::of(&state.free), (free, state.node.id.clone())))
    })
}

fn remove<K: Ord + Clone, T: Ord + Clone>(map: &mut Map<K, Set<T>>, key: &K, item: &T) {
    let Some(items) = map.get_mut(key) else { return };
    items.remove(item);
    if items.is_empty() {
        map.remove(key);
    }
}
