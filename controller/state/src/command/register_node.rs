//! A worker's hello. A new boot id is a new epoch, which loses all leases of the older one; the same boot id is a resume.

use std::sync::Arc;

use atlas_types::{Inventory, Node, NodeHealth, Outcome, RegisterNode, Rejection, level};

use super::{check_limit, check_size};
use crate::change::Change;
use crate::node::NodeState;

pub(super) fn apply(command: &RegisterNode, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    if change.state.level >= level::CHECKED_INVENTORIES {
        check_inventory(&command.inventory)?;
    }
    match change.state.nodes.get(&command.node).cloned() {
        Some(old) if old.node.boot_id == command.boot_id => Ok(resume(command, change, &old)),
        Some(old) => Ok(restart(command, change, &old)),
        None => {
            check_limit("nodes", change.state.nodes.len() as u64, change.state.config.nodes_max)?;
            Ok(begin_epoch(command, change, None))
        }
    }
}

fn check_inventory(inventory: &Inventory) -> Result<(), Rejection> {
    if let Some(index) = inventory.gpu_listed_twice() {
        return Err(Rejection::GpuTwice { index });
    }
    check_size(inventory.text_bytes())
}

/// A resume: the leases live on. A smaller inventory only stops new ones.
fn resume(command: &RegisterNode, change: &mut Change<'_>, old: &NodeState) -> Outcome {
    let epoch = old.node.epoch;
    let moved = *old.node.inventory != command.inventory;
    if moved || old.node.health != NodeHealth::Ready {
        let mut new = old.clone();
        let node = Arc::make_mut(&mut new.node);
        node.health = NodeHealth::Ready;
        if moved {
            node.inventory = Arc::new(command.inventory.clone());
            new.inventory_since = change.state.grant_seq;
            let state = &*change.state;
            new.recount(old.leases().filter_map(|(_, job)| state.lease(job).map(|lease| &**lease)));
            new.admit_owed();
        }
        change.put_node(new);
        change.emit_node(&command.node);
    }
    Outcome::NodeRegistered { epoch }
}

/// A restart: whatever the older process held is lost, an operator's cordon and labels stay.
fn restart(command: &RegisterNode, change: &mut Change<'_>, old: &NodeState) -> Outcome {
    change.lose_all(old);
    begin_epoch(command, change, Some(&old.node))
}

fn begin_epoch(command: &RegisterNode, change: &mut Change<'_>, old: Option<&Node>) -> Outcome {
    let mut node = Node::new(command.node.clone(), command.boot_id, command.inventory.clone(), change.at);
    if let Some(old) = old {
        (node.epoch, node.cordoned) = (old.epoch.next(), old.cordoned);
        node.operator_labels.clone_from(&old.operator_labels);
    }
    let epoch = node.epoch;
    change.put_node(NodeState::new(Arc::new(node), change.state.grant_seq));
    change.emit_node(&command.node);
    Outcome::NodeRegistered { epoch }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::State;
    use crate::tests::check;
    use crate::tests::script::Run;

    #[test]
    fn an_inventory_that_lists_a_gpu_twice_is_refused() {
        check(
            "level 5 -- node n1 gpus=0:80,1:80,0:80; node n1 gpus=0:80,0:80!; node n1 gpus=0:80; node n1 gpus=0:80,0:80!",
            expect![[r#"
                ! the inventory lists GPU 0 twice
                ! the inventory lists GPU 0 twice
                node n1 epoch 1 Ready
                = epoch 1
                ! the inventory lists GPU 0 twice
            "#]],
        );
    }

    #[test]
    fn one_that_an_old_log_holds_makes_a_snapshot_that_loads() {
        let mut run = Run::new();
        run.prepare(
            "agent a gpus=1 vram=50; node n1 gpus=0:80!,0:80,1:60,1:90,2:0,2:90; job j1; job j2; job j3; job j4",
        );
        run.prepare("grant j1 n1; grant j2 n1; grant j3 n1");
        expect!["! the placement does not fit\n"].assert_eq(&run.play("grant j4 n1"));
        State::from_image(run.state.to_image()).expect("loads");
    }

    #[test]
    fn the_bytes_of_an_inventory_are_bounded() {
        let device = "x".repeat(65_537);
        check(
            &format!("level 5 -- node n1 devices={device}; node n1 devices=/dev/x"),
            expect![[r#"
                ! a payload of 65537 bytes is too large to be inline
                node n1 epoch 1 Ready
                = epoch 1
            "#]],
        );
    }

    #[test]
    fn a_new_boot_id_is_a_new_epoch_and_loses_what_the_old_one_held() {
        check(
            "agent a; node n1 boot=1; cordon n1; uncordon n1; job j1; grant j1 n1; drain n1 --
            node n1 boot=2; complete j1 token=1 node=n1; grant j1 n1 epoch=1; grant j1 n1; show n1",
            expect![[r#"
                j1 Lost running→pending Lost
                node n1 epoch 2 Ready
                = epoch 2
                ! the lease is outdated
                ! the node cannot accept this
                j1 Granted pending→running on n1 token 2 attempt 2
                n1: places 3 cores any memory any gpus [] warm []
            "#]],
        );
    }

    #[test]
    fn an_operators_cordon_outlives_a_restart() {
        check(
            "node n1 boot=1; cordon n1 -- node n1 boot=2",
            expect![[r#"
            node n1 epoch 2 Ready cordoned
            = epoch 2
        "#]],
        );
    }

    #[test]
    fn the_same_boot_id_is_a_resume_and_keeps_its_leases() {
        check(
            "agent a; node n1; job j1; grant j1 n1 -- node n1; node n1 places=2; show n1; complete j1",
            expect![[r#"
                = epoch 1
                node n1 epoch 1 Ready
                = epoch 1
                n1: places 1 cores any memory any gpus [] warm []
                j1 Ended running→completed
            "#]],
        );
    }

    #[test]
    fn a_node_that_was_lost_may_resume_without_its_leases() {
        check(
            "agent a; node n1; job j1; grant j1 n1; lose-node n1 -- node n1; grant j1 n1",
            expect![[r#"
            node n1 epoch 1 Ready
            = epoch 1
            j1 Granted pending→running on n1 token 2 attempt 2
        "#]],
        );
    }

    #[test]
    fn an_inventory_that_shrinks_under_its_leases_only_stops_new_ones() {
        check(
            "agent a cores=2; agent b; node n1 places=3 cores=4; job j1; job j2; job j3; job j4 agent=b; grant j1 n1; grant j2 n1 --
            node n1 places=3 cores=2; show n1; grant j3 n1; grant j4 n1; complete j1; show n1; complete j2; show n1; grant j3 n1",
            expect![[r#"
                node n1 epoch 1 Ready
                = epoch 1
                n1: places 1 cores 0 memory any gpus [] warm []
                ! the placement does not fit
                j4 Granted pending→running on n1 token 3 attempt 1
                j1 Ended running→completed
                n1: places 1 cores 0 memory any gpus [] warm []
                j2 Ended running→completed
                n1: places 2 cores 2 memory any gpus [] warm []
                j3 Granted pending→running on n1 token 4 attempt 1
            "#]],
        );
    }

    #[test]
    fn a_gpu_that_breaks_takes_no_more_jobs() {
        check(
            "agent a gpus=1 vram=10; node n1 gpus=80; job j1; job j2; grant j1 n1 --
            node n1 gpus=80!; grant j2 n1; complete j1; node n1 gpus=80; grant j2 n1; show n1",
            expect![[r#"
                node n1 epoch 1 Ready
                = epoch 1
                ! the placement does not fit
                j1 Ended running→completed
                node n1 epoch 1 Ready
                = epoch 1
                j2 Granted pending→running on n1 token 2 attempt 1
                n1: places 3 cores any memory any gpus [70] warm []
            "#]],
        );
    }

    #[test]
    fn the_number_of_nodes_is_bounded() {
        check(
            "config nodes=1; node n1 -- node n2; node n1 boot=2",
            expect![[r#"
            ! the cluster's limit of 1 for nodes is reached
            node n1 epoch 2 Ready
            = epoch 2
        "#]],
        );
    }
}
