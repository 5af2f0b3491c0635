//! Another worker asked for the name of a node whose own worker renews its session. It was refused, and people have to know.

use std::sync::Arc;

use atlas_types::{NodeHealth, NoteRival, Outcome, Rejection, Rival};

use crate::change::Change;

pub(super) fn apply(command: &NoteRival, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let node = &change.node(&command.node)?.node;
    let addresses = [&command.address, &command.holder];
    let fit = addresses.iter().all(|address| address.len() <= Rival::ADDRESS_BYTES_MAX);
    if node.epoch != command.epoch || node.health == NodeHealth::Down || !fit {
        return Err(Rejection::NodeUnavailable);
    }
    let [address, holder] = addresses.map(Arc::clone);
    let rival = Arc::new(Rival { address, holder, at: change.at });
    change.change_node(&command.node, None, |node| Arc::make_mut(&mut node.node).rival = Some(rival));
    change.emit_node(&command.node);
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn the_latest_rival_is_kept_until_another_process_has_the_name() {
        check(
            "level 6; node n1 -- rival n1 b:1 a:1; rival n1 c:1 a:1; node n1; rival n1 d:1 a:1 epoch=2; node n1 boot=2",
            expect![[r#"
                node n1 epoch 1 Ready b:1 asks for the name of a:1
                node n1 epoch 1 Ready c:1 asks for the name of a:1
                = epoch 1
                ! the node cannot accept this
                node n1 epoch 2 Ready
                = epoch 2
            "#]],
        );
    }

    #[test]
    fn a_node_that_is_down_has_none() {
        let long = "x".repeat(129);
        check(
            &format!("level 6; node n1 -- rival n1 {long} a:1; lose-node n1; rival n1 b:1 a:1; rival n2 b:1 a:1"),
            expect![[r#"
                ! the node cannot accept this
                node n1 epoch 1 Down
                ! the node cannot accept this
                ! no such node: n2
            "#]],
        );
    }
}
