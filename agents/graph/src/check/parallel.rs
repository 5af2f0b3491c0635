//! Nodes that run in one super-step: V18 to V21.

use std::collections::{BTreeMap, BTreeSet};

use super::Checking;
use crate::finding::Check;
use crate::graph::{Kind, Node};
use crate::reducer::Reducer;

pub(super) fn check(checking: &mut Checking<'_>) {
    for group in checking.groups() {
        for node in &group {
            if let Kind::Approval(_) | Kind::Input(_) = node.kind {
                let message = format!("{} node is a fan-out target; place it after the join", node.type_name());
                checking.error(Check::ParallelHuman, Some(node), "", message);
            }
            if matches!(node.kind, Kind::Script(_)) && node.updates.is_none() {
                let message = "parallel script must declare state_updates (may be empty)".to_owned();
                checking.error(Check::ParallelScript, Some(node), "", message);
            }
        }
        writes(checking, &group);
        reads(checking, &group);
    }
}

fn writes(checking: &mut Checking<'_>, group: &[&Node]) {
    let mut writers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in group {
        for key in node.writes() {
            writers.entry(key).or_default().push(&node.id);
        }
    }
    let graph = checking.graph;
    for (key, mut ids) in writers.into_iter().filter(|(key, ids)| ids.len() > 1 && !graph.reducers.contains_key(*key)) {
        ids.sort_unstable();
        let reducers = Reducer::ALL.map(Reducer::name).join(", ");
        let ids = ids.join(", ");
        let message = format!("nodes [{ids}] write '{key}' in one super-step without a reducer ({reducers})");
        checking.error(Check::ParallelWrites, None, "", message);
    }
}

fn reads(checking: &mut Checking<'_>, group: &[&Node]) {
    for reader in group {
        let read = reader.reads();
        for sibling in group.iter().filter(|sibling| sibling.id != reader.id) {
            let written = sibling.writes();
            let keys: BTreeSet<&str> = read.intersection(&written).copied().collect();
            if keys.is_empty() {
                continue;
            }
            let keys: Vec<String> = keys.into_iter().map(|key| format!("'{key}'")).collect();
            let message = format!(
                "reads {} written by parallel sibling '{}'; branches see the snapshot taken before the super-step",
                keys.join(", "),
                sibling.id
            );
            checking.error(Check::ParallelReads, Some(reader), "", message);
        }
    }
}
