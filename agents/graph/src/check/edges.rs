//! The declared edges: V1 to V5.

use std::collections::BTreeSet;

use super::Checking;
use crate::finding::{Check, Level};
use crate::graph::{Graph, Kind, Node};

pub(super) fn check(checking: &mut Checking<'_>) {
    targets(checking);
    if let Some(cycle) = cycle(checking.graph) {
        let path = cycle.join(" -> ");
        let node = checking.graph.node(cycle[0]);
        let line_field = node.map(|node| format!("nodes/{}", node.id)).unwrap_or_default();
        let message = format!("Cycle detected: {path}; loops must go through a script's _next");
        checking.error(Check::Cycle, None, &line_field, message);
    }
    let reached = reachable(checking.graph);
    for node in checking.graph.nodes.iter().filter(|node| !reached.contains(node.id.as_str())) {
        let message = "unreachable from start over declared edges (script _next is not analysed)".to_owned();
        checking.warn(Check::Unreachable, Some(node), "", message);
    }
    let is_end = |node: &&Node| matches!(node.kind, Kind::End { .. });
    let ends: Vec<&Node> = checking.graph.nodes.iter().filter(is_end).collect();
    if ends.is_empty() {
        checking.error(Check::NoEnd, None, "nodes", "graph has no end node".to_owned());
    } else if !ends.iter().any(|end| reached.contains(end.id.as_str())) {
        let message = "no end node reachable over declared edges".to_owned();
        checking.warn(Check::EndUnreachable, None, "start", message);
    }
}

fn targets(checking: &mut Checking<'_>) {
    let graph = checking.graph;
    for node in graph.nodes.iter() {
        for edge in node.edges().into_iter().filter(|edge| graph.node(edge.target).is_none()) {
            let message = format!("target '{}' in {} does not exist", edge.target, edge.field);
            let ids: Vec<&str> = graph.nodes.ids().collect();
            let suggestion = checking.nearest(edge.target, &ids);
            let field = edge.field.replacen('.', "/", 1);
            checking.add(Check::Target, Level::Error, Some(node), &field, message, suggestion);
        }
    }
}

fn existing<'a>(graph: &'a Graph, node: &'a Node) -> Vec<&'a Node> {
    node.edges().into_iter().filter_map(|edge| graph.node(edge.target)).collect()
}

/// The nodes that declared edges reach from the start.
fn reachable(graph: &Graph) -> BTreeSet<&str> {
    let mut reached = BTreeSet::from([graph.start.as_str()]);
    let mut open: Vec<&Node> = graph.node(&graph.start).into_iter().collect();
    while let Some(node) = open.pop() {
        open.extend(existing(graph, node).into_iter().filter(|next| reached.insert(&next.id)));
    }
    reached
}

/// The first cycle of declared edges, in the order of the document: its nodes, the first one again at the end.
pub(super) fn cycle(graph: &Graph) -> Option<Vec<&str>> {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for start in graph.nodes.iter() {
        if done.contains(start.id.as_str()) {
            continue;
        }
        // The path from `start`, with the edges of each node that are still to follow.
        let mut path: Vec<(&str, Vec<&Node>)> = Vec::new();
        let mut on_path: BTreeSet<&str> = BTreeSet::new();
        let mut next = Some(start);
        loop {
            if let Some(node) = next.take() {
                let mut edges = existing(graph, node);
                edges.reverse();
                on_path.insert(&node.id);
                path.push((&node.id, edges));
            }
            let Some((id, edges)) = path.last_mut() else { break };
            match edges.pop() {
                Some(target) if on_path.contains(target.id.as_str()) => {
                    let from = path.iter().position(|(id, _)| *id == target.id).unwrap_or_default();
                    let ids = path[from..].iter().map(|(id, _)| *id);
                    return Some(ids.chain([target.id.as_str()]).collect());
                }
                Some(target) if !done.contains(target.id.as_str()) => next = Some(target),
                Some(_) => {}
                None => {
                    done.insert(id);
                    on_path.remove(id);
                    path.pop();
                }
            }
        }
    }
    None
}
