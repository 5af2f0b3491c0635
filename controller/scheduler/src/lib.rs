//! Decides which node runs which waiting job, and explains why the other jobs wait.
//!
//! [`plan()`] proposes placements, [`explain()`] returns why a job has none, and [`counterfactuals()`] what would start it, which
//! the planner confirms on a cluster with these changes. All use the same function to check
//! whether a [`Demand`](atlas_types::Demand) fits a node. The crate owns that decision and the order in which jobs are
//! placed. It owns no state: it reads a [`Cluster`], changes nothing, and `apply` checks every placement again.
//!
//! * Order: the namespace with the lowest share, and in it priority, then age, over all classes. A *class* is a set of waiting jobs
//!   with the same demand. If the first of them does not fit, none of them does, and the class is skipped in this plan.
//! * Node: the pinned one, otherwise one with an idle warm slot of the job's package, otherwise by [`Strategy`].
//! * GPU: the lowest indexes with capacity (compatibility §8.3), shared by bytes unless an operator declared them.
//! * No full scans: a plan reads the classes, the nodes it uses, and the nodes that it skips once per class.

mod change;
mod choice;
mod cluster;
mod counterfactual;
mod describe;
mod explain;
mod fit;
mod plan;
mod room;
#[cfg(test)]
mod tests;
mod what_if;

pub use change::{Ask, Change, Counterfactual, Ineligibility, More};
pub use cluster::{Cluster, LeaseView, NodeView, Shape};
pub use counterfactual::counterfactuals;
pub use describe::{describe, describe_fully};
pub use explain::{Brief, Closest, WaitExplanation, Why, brief, explain, lacking};
pub use fit::{Dimension, Shortage, allocate, could_ever};
pub use plan::{Never, Placement, Plan, Strategy, plan, plan_without};
