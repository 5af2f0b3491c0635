//! A node's idle warm slots of a package changed outside of a job's end. No event: only placement cares.

use atlas_types::{NodeHealth, Outcome, Rejection, WarmChanged};

use super::check_limit;
use crate::change::{Change, set_warm};

/// Most packages that one node may keep warm; bounds the state against a worker that invents some.
const WARM_PACKAGES_MAX: u64 = 1_024;

pub(super) fn apply(command: &WarmChanged, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let node = &change.node(&command.node)?.node;
    if node.epoch != command.epoch || node.health != NodeHealth::Ready {
        return Err(Rejection::NodeUnavailable);
    }
    if command.idle > 0 && !node.warm.contains_key(&command.digest) {
        check_limit("warm packages of a node", node.warm.len() as u64, WARM_PACKAGES_MAX)?;
    }
    change.change_node(&command.node, |node| set_warm(node, command.digest, command.idle));
    Ok(Outcome::Done)
}
