//! Leader tasks: pure functions of the state that return the commands to propose.
//!
//! * [`advance`] starts the next steps of runs;
//! * [`schedule`] grants leases to waiting jobs and fails those that can never run, or whose required agents are gone;
//! * [`expire`] handles timers that are due on the cluster's clock;
//! * [`lose`] ends the leases of nodes whose [`Sessions`] ended;
//! * [`route`] allows jobs that waited for an orchestrator when the default one was selected;
//! * [`follow`] runs these, in the order that keeps older jobs ahead of younger ones;
//! * [`prune`] drops ended jobs that history has;
//! * [`DownNodes`] removes nodes that stay down;
//! * [`delete_retired`] deletes agent versions that were retired long ago;
//! * [`Tasks`] keeps them apart: one that panics does not stop the others.
//!
//! They are called on the leader's head, so their commands join the entry that caused them. Each stops at a budget, reads
//! indexes only, and proposes nothing that `apply` would refuse on the state it was given; planned again on the state that
//! its commands lead to, it proposes what is left. None of them reads a clock: times are parameters.

mod advance;
mod expire;
mod follow;
mod forget;
mod lose;
mod prune;
mod requirements;
mod retired;
mod route;
mod schedule;
pub mod sessions;
pub mod tasks;
#[cfg(test)]
mod tests;
mod view;
mod waits;

pub use advance::{NotHere, advance, plan_step};
pub use atlas_scheduler::{Ask, Brief, Change, Closest, Counterfactual, More, Strategy, WaitExplanation, Why};
pub use expire::expire;
pub use follow::{Follow, follow};
pub use forget::DownNodes;
pub use lose::lose;
pub use prune::prune;
pub use retired::delete_retired;
pub use route::route;
pub use schedule::{counterfactuals, explain, lacking, schedule, waiting_by_reason};
pub use sessions::Sessions;
pub use tasks::{Run, Task, Tasks};
pub use view::View;
pub use waits::waits_for_node;

use atlas_types::{Command, Namespace, Origin, Request};

fn request(namespace: &Namespace, command: Command) -> Request {
    Request { origin: Origin::duty(namespace.clone()), command }
}
