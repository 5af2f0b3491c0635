//! An operator closes the circuit of a node: it takes jobs as usual again.

use atlas_types::{Circuit, Outcome, Rejection, ResumeNode};

use crate::change::Change;

pub(super) fn apply(command: &ResumeNode, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let circuit = change.node(&command.node)?.node.circuit;
    change.state.set_node_circuit(&command.node, Circuit::default());
    if circuit.open.is_some() {
        change.emit_node(&command.node);
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn an_operator_closes_the_circuit_of_a_node() {
        check(
            "level 6; config node-failures=2; agent a; agent b digest=2; node n1; job j1; job j2 agent=b digest=2; job j3; grant j1 n1; fail j1 kind=internal;
            grant j2 n1; fail j2 kind=internal -- grant j3 n1; resume-node n1; resume-node n1; grant j3 n1; resume-node n2",
            expect![[r#"
                ! the node cannot accept this
                node n1 epoch 1 Ready
                j3 Granted pending→running on n1 token 3 attempt 1
                ! no such node: n2
            "#]],
        );
    }
}
