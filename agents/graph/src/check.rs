//! The validation of a graph: all findings at once, each with its node, its line and a suggestion.
//!
//! [`Check`] lists the rules. Those with a V number and their texts belong to the format; the others are our own.

mod edges;
mod keys;
mod maps;
mod nodes;
mod parallel;
mod uneven;

use std::collections::BTreeSet;

use crate::finding::{Check, Finding, Level, line_of, member};
use crate::graph::{Graph, Node};
use crate::load::LoadedGraph;

/// What a graph refers to outside its definition.
pub trait Surroundings {
    /// The text of a script of the agent's folder; `path` has no `..`. None if there is no such file.
    fn script(&self, path: &str) -> Option<String>;

    fn agent(&self, name: &str) -> Availability;

    /// The tools that nodes can name. None if they are not known here; then they are not checked.
    fn tools(&self) -> Option<&BTreeSet<String>> {
        None
    }

    /// The MCP servers that nodes can name.
    fn servers(&self) -> Option<&BTreeSet<String>> {
        None
    }

    /// The models that nodes can name.
    fn models(&self) -> Option<&BTreeSet<String>> {
        None
    }

    /// The known name that is most similar to another one, if they differ little.
    fn nearest(&self, name: &str, known: &[&str]) -> Option<String>;
}

/// Whether an agent can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    Yes,
    No,
    /// Its folder has no definition.
    Undefined,
}

/// All findings: errors before warnings, and in each group those of the whole graph first, then in the order of the nodes.
pub fn check(loaded: &LoadedGraph, surroundings: &dyn Surroundings) -> Vec<Finding> {
    let mut checking = Checking {
        graph: &loaded.graph,
        loaded,
        surroundings,
        findings: loaded.findings.clone(),
        branches: branches(&loaded.graph),
    };
    edges::check(&mut checking);
    for node in loaded.graph.nodes.iter() {
        nodes::check(&mut checking, node);
    }
    nodes::settings(&mut checking);
    maps::check(&mut checking);
    parallel::check(&mut checking);
    keys::check(&mut checking);
    uneven::check(&mut checking);
    let mut findings = checking.findings;
    let place = |finding: &Finding| finding.node.as_ref().map(|node| loaded.graph.nodes.place(node));
    findings.sort_by_key(|finding| (finding.level, place(finding), finding.check));
    findings
}

/// A validation under way.
struct Checking<'a> {
    graph: &'a Graph,
    loaded: &'a LoadedGraph,
    surroundings: &'a dyn Surroundings,
    findings: Vec<Finding>,
    /// The nodes that maps run for each item.
    branches: BTreeSet<&'a str>,
}

fn branches(graph: &Graph) -> BTreeSet<&str> {
    graph.nodes.iter().filter_map(Node::branch).collect()
}

impl<'a> Checking<'a> {
    fn error(&mut self, check: Check, node: Option<&Node>, field: &str, message: String) {
        self.add(check, Level::Error, node, field, message, None);
    }

    fn warn(&mut self, check: Check, node: Option<&Node>, field: &str, message: String) {
        self.add(check, Level::Warning, node, field, message, None);
    }

    /// Adds a finding once. `field` is a member of the node, or of the graph; empty for the whole.
    fn add(
        &mut self,
        check: Check,
        level: Level,
        node: Option<&Node>,
        field: &str,
        message: String,
        suggestion: Option<String>,
    ) {
        let base = node.map(|node| member("/nodes", &node.id)).unwrap_or_default();
        let pointer = field.split('/').filter(|part| !part.is_empty()).fold(base, |base, part| member(&base, part));
        let line = line_of(&self.loaded.lines, &pointer);
        let node = node.map(|node| node.id.clone());
        let finding = Finding { check, level, node, pointer, line, message, suggestion };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn nearest(&self, name: &str, known: &[&str]) -> Option<String> {
        self.surroundings.nearest(name, known).map(|meant| format!("did you mean \"{meant}\"?"))
    }

    /// The groups of nodes that run in one super-step because one node continues with all of them.
    fn groups(&self) -> Vec<Vec<&'a Node>> {
        let sets = self.graph.nodes.iter().map(Node::next_set).filter(|set| set.len() > 1);
        sets.map(|set| set.into_iter().filter_map(|id| self.graph.node(id)).collect()).collect()
    }
}

/// The path of a script relative to the agent's folder, without `.` and `..`. None if it leaves the folder.
pub fn inside(path: &str) -> Option<String> {
    if path.starts_with(['/', '\\']) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests;
