//! Removes a node that holds no lease.

use atlas_types::{Event, Outcome, Rejection, RemoveNode};

use crate::change::Change;

pub(super) fn apply(command: &RemoveNode, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let leases = change.node(&command.node)?.leases().len() as u64;
    if leases > 0 {
        return Err(Rejection::NodeBusy { leases });
    }
    let old = change.state.nodes.remove(&command.node);
    change.state.index.node(old.as_deref(), None);
    change.emit(Event::NodeRemoved { node: command.node.clone() });
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_node_without_leases_is_forgotten() {
        check(
            "agent a; node n1; job j1; grant j1 n1 -- remove n1; complete j1; remove n1; remove n1",
            expect![[r#"
            ! the node still holds 1 lease
            j1 Ended running→completed
            node n1 removed
            ! no such node: n1
        "#]],
        );
    }
}
