//! What the scheduler reads: a narrow view of the indexes of the replicated state.

use atlas_types::{AgentName, Allocation, Demand, Digest, Gpu, Job, Namespace, Node, NodeId};

use crate::Strategy;

/// The read side of a cluster, as narrow as a plan needs it.
///
/// Each iterator is lazy and comes from an index: a plan that stops early has read little.
pub trait Cluster {
    /// Names a set of waiting jobs that have one demand and, where their agent limits how many run at once, one agent.
    type Class;

    /// The classes that have a waiting job, ordered by the priority and age of their first job.
    fn classes(&self) -> impl Iterator<Item = &Self::Class>;

    /// The waiting jobs of a class, by priority, then age. Jobs that wait for a time or a person are not among them.
    fn waiting<'a>(&'a self, class: &'a Self::Class) -> impl Iterator<Item = &'a Job> + 'a;

    /// How many jobs of its class go before `job`, counted up to `limit`; none if it does not wait for a node.
    fn ahead(&self, job: &Job, limit: usize) -> Option<usize>;

    /// How many jobs of this agent run.
    fn running(&self, namespace: &Namespace, agent: &AgentName) -> u32;

    /// Every node that has room for `demand`, and perhaps others, in the order of `strategy`: fewest free places first
    /// to pack, most first to spread.
    fn room<'a>(&'a self, demand: &'a Demand, strategy: Strategy) -> impl Iterator<Item = NodeView<'a>> + 'a;

    /// The nodes that have idle warm slots of a package, and how many.
    fn warm<'a>(&'a self, digest: &'a Digest) -> impl Iterator<Item = (NodeView<'a>, u32)> + 'a;

    /// One node by name.
    fn node(&self, id: &NodeId) -> Option<NodeView<'_>>;

    /// All registered nodes, those that are down included. Read only for demands that found no room.
    fn nodes(&self) -> impl Iterator<Item = NodeView<'_>>;
}

/// A node and what is taken of it.
#[derive(Debug, Clone)]
pub struct NodeView<'a> {
    /// The node.
    pub node: &'a Node,
    /// What its leases hold.
    pub held: Held,
}

/// What the leases of one node hold together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    /// One for each lease.
    pub places: u32,
    /// Cores.
    pub cores: u64,
    /// Main memory.
    pub memory_bytes: u64,
    /// The GPUs that a lease holds something of, by index.
    pub gpus: Vec<GpuHeld>,
}

/// What is held of one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuHeld {
    /// Which one.
    pub index: u32,
    /// Its memory that is held.
    pub vram_bytes: u64,
    /// How many leases hold some of it.
    pub shares: u32,
}

impl Held {
    /// Counts one more lease.
    pub fn take(&mut self, allocation: &Allocation) {
        self.places += 1;
        self.cores += u64::from(allocation.cores);
        self.memory_bytes += allocation.memory_bytes;
        for share in &allocation.gpus {
            match self.gpus.iter_mut().find(|held| held.index == share.index) {
                Some(held) => {
                    held.vram_bytes += share.vram_bytes;
                    held.shares += 1;
                }
                None => self.gpus.push(GpuHeld { index: share.index, vram_bytes: share.vram_bytes, shares: 1 }),
            }
        }
    }

    /// How many places of `node` are free.
    pub fn places_free(&self, node: &Node) -> u32 {
        node.inventory.places.saturating_sub(self.places)
    }

    /// What a demand of `vram_bytes` (0: all of it) takes of `gpu`; none if it has no room for that.
    ///
    /// A GPU whose memory is not known cannot be shared by bytes, so any lease takes all of it.
    pub(crate) fn share_of(&self, gpu: &Gpu, vram_bytes: u64) -> Option<u64> {
        let held = self.gpus.iter().find(|held| held.index == gpu.index);
        let whole = vram_bytes == 0 || gpu.memory_bytes == 0;
        match held {
            _ if !gpu.healthy => None,
            Some(_) if whole => None,
            None if whole => Some(gpu.memory_bytes),
            held => {
                let free = gpu.memory_bytes.saturating_sub(held.map_or(0, |held| held.vram_bytes));
                (vram_bytes <= free).then_some(vram_bytes)
            }
        }
    }
}
