//! Map nodes and the nodes that they run for each item: V14 to V16 and our own.

use super::Checking;
use crate::finding::Check;
use crate::graph::{Kind, MapNode, Node};
use crate::template;

pub(super) fn check(checking: &mut Checking<'_>) {
    let graph = checking.graph;
    for node in graph.nodes.iter() {
        let Kind::Map(map) = &node.kind else { continue };
        if template::single(&map.over).is_none() {
            let message = "over must be a single placeholder, because only that yields a list".to_owned();
            checking.error(Check::MapOver, Some(node), "over", message);
        }
        if map.item == map.output_key {
            let message = format!("as and output_key are both '{}', so an item hides the result", map.item);
            checking.warn(Check::MapKeys, Some(node), "as", message);
        }
        if let Some(branch) = graph.node(&map.branch) {
            self::branch(checking, node, map, branch);
        }
    }
}

fn branch(checking: &mut Checking<'_>, node: &Node, map: &MapNode, branch: &Node) {
    let id = &branch.id;
    let problem = match &branch.kind {
        Kind::Approval(_) => Some("an approval node: no human nodes in parallel"),
        Kind::Input(_) => Some("an input node: no human nodes in parallel"),
        Kind::End { .. } => Some("an end node: branches finish through collect_into"),
        Kind::Map(_) => Some("a map: nesting is not supported"),
        Kind::Llm(_) | Kind::Script(_) | Kind::Rag(_) | Kind::Agent(_) => None,
    };
    if let Some(problem) = problem {
        checking.error(Check::BranchType, Some(node), "branch", format!("map branch '{id}' is {problem}"));
    }
    if branch.next.is_some() {
        checking.error(Check::BranchNext, Some(branch), "next", format!("map branch '{id}' must not have next"));
    }
    for (key, _) in branch.updates.iter().flatten().filter(|(key, _)| *key != map.output_key) {
        let message = format!("map branch '{id}' writes '{key}'; only output_key '{}' is allowed", map.output_key);
        checking.error(Check::BranchUpdates, Some(branch), "state_updates", message);
    }
}
