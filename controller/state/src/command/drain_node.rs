//! Stops new leases on a node until it is empty. A new epoch ends the drain.

use std::sync::Arc;

use atlas_types::{DrainNode, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &DrainNode, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    if !change.node(&command.node)?.node.draining {
        change.change_node(&command.node, None, |node| Arc::make_mut(&mut node.node).draining = true);
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
                ! the node cannot take this
                j1 Ended running→completed
                node n1 removed
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
