//! Joins that parallel paths reach in different super-steps: the node then runs more than once, at first without all data.

use std::collections::BTreeMap;

use super::{Checking, edges};
use crate::finding::Check;
use crate::graph::{Graph, Kind, Node};

/// Graphs for which the comparison would take longer are not checked.
const VISITS_MAX: usize = 5_000_000;

pub(super) fn check(checking: &mut Checking<'_>) {
    let graph = checking.graph;
    let groups = checking.groups();
    let targets: usize = groups.iter().map(Vec::len).sum();
    if edges::cycle(graph).is_some() || targets.saturating_mul(graph.nodes.len()) > VISITS_MAX {
        return;
    }
    let order = order(graph);
    for group in groups {
        let depths: Vec<Depths<'_>> = group.iter().map(|start| depths(graph, &order, start)).collect();
        let uneven = |id: &str| {
            let mut found = depths.iter().filter_map(|depths| depths.get(id));
            let Some(&(least, most)) = found.next() else { return false };
            let mut joined = false;
            let mut differs = false;
            for &(other_least, other_most) in found {
                joined = true;
                differs |= (other_least, other_most) != (least, most);
            }
            joined && (differs || least != most)
        };
        for node in order.iter().filter(|node| uneven(&node.id) && !matches!(node.kind, Kind::End { .. })) {
            // What follows an uneven join is uneven as well; only the first one is reported.
            let before = |other: &&Node| next(other).any(|target| target == node.id) && uneven(&other.id);
            if !order.iter().copied().any(|other| before(&other)) {
                let message = "join reached at different depths, so it runs more than once".to_owned();
                checking.warn(Check::UnevenJoin, Some(node), "", message);
            }
        }
    }
}

/// The least and the greatest number of super-steps to each node.
type Depths<'a> = BTreeMap<&'a str, (usize, usize)>;

/// The targets of a node in the next super-step. The branch of a map runs in the map's own.
fn next(node: &Node) -> impl Iterator<Item = &str> {
    node.edges().into_iter().filter(|edge| edge.field != "branch").map(|edge| edge.target)
}

/// The nodes, each before all that it leads to.
fn order(graph: &Graph) -> Vec<&Node> {
    let mut before: BTreeMap<&str, usize> = graph.nodes.ids().map(|id| (id, 0)).collect();
    for target in graph.nodes.iter().flat_map(next) {
        if let Some(count) = before.get_mut(target) {
            *count += 1;
        }
    }
    let mut ready: Vec<&Node> = graph.nodes.iter().filter(|node| before.get(node.id.as_str()) == Some(&0)).collect();
    let mut order = Vec::with_capacity(graph.nodes.len());
    while let Some(node) = ready.pop() {
        for target in next(node) {
            let Some(count) = before.get_mut(target) else { continue };
            *count -= 1;
            if *count == 0 {
                ready.extend(graph.node(target));
            }
        }
        order.push(node);
    }
    order
}

fn depths<'a>(graph: &'a Graph, order: &[&'a Node], start: &'a Node) -> Depths<'a> {
    let mut depths = Depths::from([(start.id.as_str(), (0, 0))]);
    for node in order {
        let Some(&(least, most)) = depths.get(node.id.as_str()) else { continue };
        for target in next(node).filter_map(|target| graph.node(target)) {
            let entry = depths.entry(&target.id).or_insert((least + 1, most + 1));
            *entry = (entry.0.min(least + 1), entry.1.max(most + 1));
        }
    }
    depths
}
