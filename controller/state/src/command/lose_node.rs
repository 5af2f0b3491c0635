//! A node's session was lost: it is down and all its leases are lost.

use std::sync::Arc;

use atlas_types::{LoseNode, NodeHealth, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &LoseNode, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let state = Arc::clone(change.node(&command.node)?);
    if state.node.epoch != command.epoch || state.node.health == NodeHealth::Down {
        return Err(Rejection::NodeUnavailable);
    }
    let mut down = (*state).clone();
    let node = Arc::make_mut(&mut down.node);
    node.health = NodeHealth::Down;
    node.warm.clear();
    change.put_node(down);
    change.emit_node(&command.node);
    change.lose_all(&state);
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn all_leases_of_a_lost_node_are_lost_oldest_first() {
        check(
            "agent a; agent b effects=once; node n1; job j1; job j2 agent=b; job j3; warm n1 a;
            grant j2 n1; start j2; grant j1 n1; grant j3 n1; cancel j3 --
            lose-node n1; show n1; show j1; show j2; complete j1 token=2 node=n1; grant j1 n1",
            expect![[r#"
                node n1 epoch 1 Down
                j2 Lost running→pending InDoubt
                j1 Lost running→pending Lost
                j3 Ended running→cancelled
                n1: places 4 cores any memory any gpus [] warm []
                j1: pending Lost attempt 1
                j2: pending InDoubt attempt 1
                ! the lease is outdated
                ! the node cannot accept this
            "#]],
        );
    }

    #[test]
    fn another_epoch_or_a_second_loss_is_refused() {
        check(
            "node n1 -- lose-node n1 epoch=2; lose-node n1; lose-node n1; lose-node n2",
            expect![[r#"
            ! the node cannot accept this
            node n1 epoch 1 Down
            ! the node cannot accept this
            ! no such node: n2
        "#]],
        );
    }
}
