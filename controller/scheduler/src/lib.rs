//! Which node runs which waiting job, and what the other jobs are waiting for.
//!
//! [`plan()`] proposes placements, [`explain()`] tells why a job has none; both use the same function, whether a
//! [`Demand`](atlas_types::Demand) fits a node. The crate owns that decision and the order in which jobs are offered
//! room. It does not own any state: it reads a [`Cluster`], changes nothing, and `apply` checks every placement again.
//!
//! * Order: priority, then age, over all classes. A *class* is a set of waiting jobs with one demand, so that when the
//!   first of them does not fit, none of them does: the class is skipped in this plan and the others continue.
//! * Node: the pinned one; else one with an idle warm slot of the job's package; else by [`Strategy`].
//! * GPU: the lowest indexes with capacity (compatibility §8.3), shared by bytes unless an operator declared them.
//! * Nothing scans: a plan looks at the classes, at the nodes it uses and at those that it passes over once a class.

mod choice;
mod cluster;
mod describe;
mod explain;
mod fit;
mod plan;
#[cfg(test)]
mod tests;

pub use cluster::{Cluster, NodeView};
pub use describe::describe;
pub use explain::{Closest, Waiting, Why, explain};
pub use fit::{Dimension, Shortage, allocate, could_ever};
pub use plan::{Never, Placement, Plan, Strategy, plan};
