//! Whether jobs wait for a node that could run them.

use atlas_objects::Unsatisfiable;
use atlas_state::State;
use atlas_types::{Namespace, level};

/// Whether a job waits while no registered node could run it: as it says itself, or else its namespace.
pub fn waits_for_node(state: &State, namespace: &Namespace, asked: Option<bool>) -> bool {
    let of_namespace = || state.limits_of(namespace)?.unsatisfiable;
    // Where not all members know of it, jobs fail as they always did.
    let known = state.level() >= level::WAITING_FOR_NODES;
    asked.unwrap_or_else(|| known && of_namespace() == Some(Unsatisfiable::Wait))
}
