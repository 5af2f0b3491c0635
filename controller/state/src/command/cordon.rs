//! An operator stops new leases on a node, or allows them again, which also ends a drain.

use std::sync::Arc;

use atlas_types::{Cordon, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &Cordon, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let node = &change.node(&command.node)?.node;
    let draining = node.draining && command.cordoned;
    if (node.cordoned, node.draining) != (command.cordoned, draining) {
        change.change_node(&command.node, None, |node| {
            let node = Arc::make_mut(&mut node.node);
            (node.cordoned, node.draining) = (command.cordoned, draining);
            node.drain_until = node.drain_until.filter(|_| draining);
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
    fn a_cordoned_node_gets_no_lease_until_it_is_allowed_again() {
        check(
            "agent a; node n1; job j1 -- cordon n1; cordon n1; grant j1 n1; uncordon n1; grant j1 n1",
            expect![[r#"
            node n1 epoch 1 Ready cordoned
            ! the node cannot accept this
            node n1 epoch 1 Ready
            j1 Granted pending→running on n1 token 1 attempt 1
        "#]],
        );
    }

    #[test]
    fn to_allow_leases_ends_a_drain() {
        check(
            "node n1; drain n1 -- cordon n1; uncordon n1; uncordon n1",
            expect![[r#"
            node n1 epoch 1 Ready cordoned draining
            node n1 epoch 1 Ready
        "#]],
        );
    }

    #[test]
    fn an_unknown_node_is_refused() {
        check(
            "cordon n1; uncordon n1",
            expect![[r#"
            ! no such node: n1
            ! no such node: n1
        "#]],
        );
    }
}
