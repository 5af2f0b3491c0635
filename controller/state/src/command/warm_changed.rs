//! A node's idle warm slots of a package changed outside of a job's end. No event: only placement uses them.

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
    change.change_node(&command.node, Some(command.digest), |node| set_warm(node, command.digest, command.idle));
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn warm_slots_are_what_the_node_says() {
        check(
            "node n1 -- warm n1 a idle=2; show n1; warm n1 a idle=0; show n1",
            expect![[r#"
            n1: places 4 cores any memory any gpus [] warm [2]
            n1: places 4 cores any memory any gpus [] warm []
        "#]],
        );
    }

    #[test]
    fn an_older_epoch_or_a_lost_node_is_refused() {
        check(
            "node n1; node n1 boot=2 -- warm n1 a epoch=1; warm n2 a; lose-node n1 epoch=2; warm n1 a epoch=2",
            expect![[r#"
                ! the node cannot accept this
                ! no such node: n2
                node n1 epoch 2 Down
                ! the node cannot accept this
            "#]],
        );
    }
}
