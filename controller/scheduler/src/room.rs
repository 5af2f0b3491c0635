//! What a plan knows about demands without room. Nothing is freed within a plan, so a demand that has found no node finds none later, in
//! whichever namespace another class asks the same. Once none of the demands that wait has room, the plan is over, however many
//! classes are left.

use std::collections::{BTreeMap, BTreeSet};

use crate::choice::{Choice, Taken};
use crate::cluster::{Cluster, Shape};
use crate::plan::{Strategy, unsatisfiable};

#[derive(Default)]
pub(crate) struct Room<'a> {
    /// Those that may have room; none before the first class is set aside.
    open: Option<BTreeSet<Shape<'a>>>,
    /// Those that have none, and whether no node could ever run them.
    without: BTreeMap<Shape<'a>, bool>,
    /// Classes that were set aside, and with how many of them the open demands are looked at again.
    set_aside: usize,
    look_at: usize,
}

impl<'a> Room<'a> {
    /// None if a demand may have room; otherwise, whether its jobs can never run.
    pub(crate) fn without(&self, shape: Shape<'a>) -> Option<bool> {
        self.without.get(&shape).copied()
    }

    /// Notes that a demand has found no node. Says whether its jobs can never run.
    pub(crate) fn has_none<C: Cluster>(&mut self, cluster: &C, shape: Shape<'a>) -> bool {
        let never = !shape.patient && unsatisfiable(cluster, shape.demand);
        self.without.insert(shape, never);
        if let Some(open) = &mut self.open {
            open.remove(&shape);
        }
        never
    }

    /// A class was set aside. True if none of those that are left can be decided otherwise.
    pub(crate) fn is_over<C: Cluster>(&mut self, cluster: &'a C, strategy: Strategy, taken: &Taken<'a>) -> bool {
        self.set_aside += 1;
        let open = match &self.open {
            Some(open) => open,
            None => {
                let open: BTreeSet<_> = cluster.shapes().filter(|shape| !self.without.contains_key(shape)).collect();
                self.look_at = open.len();
                self.open.insert(open)
            }
        };
        // As often as the walk has doubled, so that looking costs no more than walking.
        if self.set_aside >= self.look_at {
            self.look_at = 2 * self.set_aside;
            let has_none =
                |shape: &Shape<'a>| !Choice::new(cluster, shape.demand, shape.depth, strategy).has_room(taken);
            for shape in open.iter().copied().filter(has_none).collect::<Vec<_>>() {
                self.has_none(cluster, shape);
            }
        }
        self.open.as_ref().is_some_and(BTreeSet::is_empty) && !self.without.values().any(|never| *never)
    }
}
