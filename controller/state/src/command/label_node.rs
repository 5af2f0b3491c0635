//! An operator sets labels of a node, which override those of its worker, or removes such labels.

use std::sync::Arc;

use atlas_types::{LABELS_MAX, LabelNode, Outcome, Rejection};

use super::{check_labels, check_limit};
use crate::change::Change;

pub(super) fn apply(command: &LabelNode, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    check_labels(change.state, command.labels.iter().filter_map(|(key, value)| Some((key, value.as_ref()?))))?;
    let node = &change.node(&command.node)?.node;
    let mut labels = node.operator_labels.clone();
    for (key, value) in &command.labels {
        if let Some(value) = value {
            labels.insert(key.clone(), value.clone());
        } else if labels.remove(key).is_none() && node.inventory.labels.contains_key(key) {
            return Err(Rejection::LabelOfWorker { key: key.clone() });
        }
    }
    // The last of them needs room beside the others.
    check_limit("labels of a node", labels.len().saturating_sub(1) as u64, LABELS_MAX as u64)?;
    if labels != node.operator_labels {
        change.change_node(&command.node, None, |node| Arc::make_mut(&mut node.node).operator_labels = labels);
        change.emit_node(&command.node);
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use atlas_types::LABEL_BYTES_MAX;
    use expect_test::expect;

    use crate::tests::check;
    use crate::tests::script::Run;

    #[test]
    fn an_operators_label_goes_over_the_workers_until_it_is_taken_away() {
        check(
            "level 4; node n1 labels=zone:a,rack:7 -- label n1 zone=b disk=; label n1 zone=b; label n1 zone=c; label n1 zone- disk-;
            label n1 zone=a; label n1 zone- shelf-",
            expect![[r#"
                node n1 epoch 1 Ready disk= rack=7 zone=b
                node n1 epoch 1 Ready disk= rack=7 zone=c
                node n1 epoch 1 Ready rack=7 zone=a
                node n1 epoch 1 Ready rack=7 zone=a
                node n1 epoch 1 Ready rack=7 zone=a
            "#]],
        );
    }

    #[test]
    fn a_job_goes_to_the_node_that_is_given_its_label() {
        check(
            "level 4; agent a labels=zone:b; node n1 labels=zone:a; job j1; job j2 --
            grant j1 n1; label n1 zone=b; grant j1 n1; label n1 zone-; grant j2 n1; complete j1",
            expect![[r#"
                ! the placement does not fit
                node n1 epoch 1 Ready zone=b
                j1 Granted pending→running on n1 token 1 attempt 1
                node n1 epoch 1 Ready zone=a
                ! the placement does not fit
                j1 Ended running→completed
            "#]],
        );
    }

    #[test]
    fn labels_outlive_a_restart_and_go_with_the_node() {
        check(
            "level 4; node n1 boot=1; label n1 zone=b -- node n1 boot=2 labels=zone:a; lose-node n1 epoch=2; node n1 boot=2 labels=zone:c;
            label n1 rack=7; remove n1; node n1",
            expect![[r#"
                node n1 epoch 2 Ready zone=b
                = epoch 2
                node n1 epoch 2 Down zone=b
                node n1 epoch 2 Ready zone=b
                = epoch 2
                node n1 epoch 2 Ready rack=7 zone=b
                node n1 removed
                node n1 epoch 1 Ready
                = epoch 1
            "#]],
        );
    }

    #[test]
    fn a_label_that_only_the_worker_tells_cannot_be_taken_away() {
        check(
            "level 4; node n1 labels=zone:a -- label n1 rack=7 zone-; label n1 zone=b; label n1 zone-; label n1 zone-",
            expect![[r#"
                ! the label "zone" is set by the node's worker, not by an operator
                node n1 epoch 1 Ready zone=b
                node n1 epoch 1 Ready zone=a
                ! the label "zone" is set by the node's worker, not by an operator
            "#]],
        );
    }

    #[test]
    fn the_number_of_labels_is_bounded() {
        let many = |sign: &str| (0..64).map(|n| format!(" k{n}{sign}")).collect::<String>();
        let mut run = Run::new();
        run.prepare(&format!("level 4; node n1; label n1{}", many("=v")));
        let mut play = |script: &str| run.play(script);
        expect!["! the cluster's limit of 64 for labels of a node is reached\n"].assert_eq(&play("label n1 more=v"));
        expect!["node n1 epoch 1 Ready more=v\n"].assert_eq(&play(&format!("label n1 more=v{}", many("-"))));
    }

    #[test]
    fn the_bytes_of_a_label_are_bounded() {
        let long = "x".repeat(LABEL_BYTES_MAX + 1);
        check(
            &format!("level 5; node n1 -- label n1 {long}=v; label n1 k={long}; label n1 {long}-; label n1 k=v"),
            expect![[r#"
                ! a payload of 1025 bytes is too large to be inline
                ! a payload of 1025 bytes is too large to be inline
                node n1 epoch 1 Ready k=v
            "#]],
        );
    }

    #[test]
    fn an_unknown_node_is_refused() {
        check(
            "level 4 -- label n1 zone=b",
            expect![[r#"
            ! no such node: n1
        "#]],
        );
    }
}
