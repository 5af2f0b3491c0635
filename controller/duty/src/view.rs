//! The state's indexes as the scheduler reads them.

use std::cmp::Reverse;
use std::sync::Arc;

use atlas_allocation::ConcurrencyPermits;
use atlas_scheduler::{Cluster, LeaseView, NodeView, Shape, Strategy};
use atlas_state::{Class, NodeState, State};
use atlas_types::{
    Circuit, ClusterTime, Demand, Digest, Job, JobStatus, Limit, LimitKey, Namespace, NodeId, Rate, Reason, Share, Turn,
};

/// A state, read as a [`Cluster`].
#[derive(Debug, Clone, Copy)]
pub struct View<'s>(pub &'s State);

fn node_view(node: &Arc<NodeState>) -> NodeView<'_> {
    NodeView { node: &node.node, free: &node.free }
}

impl Cluster for View<'_> {
    type Class = Class;

    fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.0.namespaces_in_turn()
    }

    fn share(&self, namespace: &Namespace) -> Share {
        self.0.share(namespace)
    }

    fn weight(&self, namespace: &Namespace) -> u32 {
        self.0.weight(namespace)
    }

    fn progress(&self) -> u64 {
        self.0.progress()
    }

    fn classes<'a>(&'a self, namespace: &'a Namespace) -> impl Iterator<Item = &'a Class> + 'a {
        self.0.classes_of(namespace)
    }

    fn shapes(&self) -> impl Iterator<Item = Shape<'_>> {
        self.0.shapes().map(|(demand, depth, patient)| Shape { demand, depth: *depth, patient: *patient })
    }

    fn turn(&self, job: &Job) -> Turn {
        self.0.turn(job)
    }

    fn waiting<'a>(&'a self, class: &'a Class) -> impl Iterator<Item = &'a Job> + 'a {
        self.0.waiting_in(class).map(|job| &**job)
    }

    fn ahead(&self, job: &Job, limit: usize) -> Option<usize> {
        self.0.waiting_in(&Class::of(job)?).take(limit).position(|other| other.id == job.id)
    }

    fn class_len(&self, job: &Job) -> Option<usize> {
        let waits = job.status == JobStatus::Pending && matches!(job.reason, Reason::Queued | Reason::Lost);
        let class = Class::of(job).filter(|_| waits && !job.is_for_a_run())?;
        Some(self.0.waiting_count(&class))
    }

    fn leases(&self, node: &NodeId) -> impl Iterator<Item = LeaseView<'_>> {
        self.0.leases_of(node).filter_map(|lease| {
            let lends = self.0.children_awaited(lease.job) > 0;
            Some(LeaseView { job: self.0.job(lease.job)?, allocation: &lease.allocation, lends })
        })
    }

    fn limits(&self, job: &Job) -> Vec<Limit> {
        self.0.limits_for(job)
    }

    fn permits(&self, key: &LimitKey) -> Option<&ConcurrencyPermits> {
        self.0.permits(key)
    }

    fn circuit(&self, job: &Job) -> Option<&Circuit> {
        self.0.circuit_of(job)
    }

    fn now(&self) -> ClusterTime {
        self.0.clock()
    }

    fn full_at(&self, key: &LimitKey) -> ClusterTime {
        self.0.full_at(key)
    }

    fn opens_at(&self, key: &LimitKey, rate: Rate) -> ClusterTime {
        self.0.opens_at(key, rate)
    }

    fn room<'a>(&'a self, demand: &'a Demand, strategy: Strategy) -> impl Iterator<Item = NodeView<'a>> + 'a {
        let packed = self.0.nodes_with_room(demand).map(node_view);
        let nodes: Box<dyn Iterator<Item = NodeView<'a>> + 'a> = match strategy {
            Strategy::BinPack => Box::new(packed),
            // The index is in the order of packing; spreading pays for a sort of the nodes with room.
            Strategy::Spread => {
                let mut nodes: Vec<NodeView<'a>> = packed.collect();
                nodes.sort_by_key(|view| Reverse(view.free.places(demand.place).free));
                Box::new(nodes.into_iter())
            }
        };
        nodes
    }

    fn lending(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.0.nodes_lending().map(node_view)
    }

    fn warm<'a>(&'a self, digest: &'a Digest) -> impl Iterator<Item = (NodeView<'a>, u32)> + 'a {
        let idle = |node: &'a Arc<NodeState>| Some((node_view(node), *node.node.warm.get(digest)?));
        self.0.warm_nodes(digest).filter_map(idle)
    }

    fn node(&self, id: &NodeId) -> Option<NodeView<'_>> {
        self.0.node(id).map(node_view)
    }

    fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.0.nodes().map(node_view)
    }

    fn capable<'a>(&'a self, demand: &'a Demand) -> impl Iterator<Item = NodeView<'a>> + 'a {
        self.0.capable_nodes(demand).map(node_view)
    }
}
