//! Stops new leases on a node until it is empty, or until its worker returns the rest. A new epoch ends the drain.

use std::sync::Arc;

use atlas_types::{DrainNode, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &DrainNode, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let until = command.deadline.map(|deadline| change.clock.plus(deadline));
    let node = &change.node(&command.node)?.node;
    if (node.draining, node.drain_until) != (true, until) {
        change.change_node(&command.node, None, |node| {
            let node = Arc::make_mut(&mut node.node);
            (node.draining, node.drain_until) = (true, until);
        });
        change.emit_node(&command.node);
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_draining_node_gets_no_lease_and_finishes_what_it_has() {
        check(
            "agent a; node n1; job j1; job j2; grant j1 n1 -- drain n1; drain n1; grant j2 n1; complete j1; remove n1",
            expect![[r#"
                node n1 epoch 1 Ready draining
                ! the node cannot accept this
                j1 Ended running→completed
                node n1 removed
            "#]],
        );
    }

    #[test]
    fn the_latest_deadline_holds_and_goes_with_the_drain() {
        check(
            "level 4; node n1 boot=1 -- drain n1 within=30; clock +10; drain n1 within=20; drain n1 within=5; drain n1;
            drain n1 within=5; uncordon n1; drain n1 within=5; lose-node n1; node n1 boot=1; node n1 boot=2",
            expect![[r#"
                node n1 epoch 1 Ready draining until 31 s
                node n1 epoch 1 Ready draining until 16 s
                node n1 epoch 1 Ready draining
                node n1 epoch 1 Ready draining until 16 s
                node n1 epoch 1 Ready
                node n1 epoch 1 Ready draining until 16 s
                node n1 epoch 1 Down draining until 16 s
                node n1 epoch 1 Ready draining until 16 s
                = epoch 1
                node n1 epoch 2 Ready
                = epoch 2
            "#]],
        );
    }

    #[test]
    fn an_unknown_node_is_refused() {
        check(
            "drain n1",
            expect![[r#"
            ! no such node: n1
        "#]],
        );
    }
}
