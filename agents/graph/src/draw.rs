//! Drawings of a graph: as text for terminals, and as a Mermaid flowchart.

use crate::graph::{Graph, Kind, Node};

/// Characters of a node's detail.
const DETAIL_MAX: usize = 60;

/// The graph as text: a line a node in the order of the document, and below it the nodes that can follow.
pub fn text(graph: &Graph) -> String {
    let mut lines = vec![format!("graph {}, starts at {}", graph.name, graph.start)];
    for node in graph.nodes.iter() {
        lines.push(String::new());
        let detail = detail(node);
        lines.push(
            format!("{} ({})", node.id, node.type_name())
                + &if detail.is_empty() { detail } else { format!("  {detail}") },
        );
        let mut edges: Vec<String> =
            grouped(node).into_iter().map(|(field, targets)| format!("{field}: {targets}")).collect();
        if matches!(node.kind, Kind::Script(_)) && node.next.is_none() {
            edges.push("_next: chosen by the script".to_owned());
        }
        let last = edges.len().saturating_sub(1);
        for (place, edge) in edges.into_iter().enumerate() {
            lines.push(format!("  {} {edge}", if place == last { "└─" } else { "├─" }));
        }
    }
    lines.join("\n")
}

/// The graph in the language of Mermaid.
pub fn mermaid(graph: &Graph) -> String {
    let mut lines = vec!["flowchart TD".to_owned()];
    let name = |id: &str| graph.nodes.place(id).map_or_else(|| "missing".to_owned(), |place| format!("n{place}"));
    for node in graph.nodes.iter() {
        let label = format!("{}<br/>{}", escaped(&node.id), node.type_name());
        let (open, close) = match node.kind {
            Kind::Approval(_) | Kind::Input(_) => ("{{\"", "\"}}"),
            Kind::Map(_) => ("[[\"", "\"]]"),
            Kind::End { .. } => ("([\"", "\"])"),
            _ => ("[\"", "\"]"),
        };
        lines.push(format!("  {}{open}{label}{close}", name(&node.id)));
    }
    if graph.nodes.iter().flat_map(Node::edges).any(|edge| graph.node(edge.target).is_none()) {
        lines.push("  missing[\"missing\"]".to_owned());
    }
    lines.push(format!("  start((start)) --> {}", name(&graph.start)));
    for node in graph.nodes.iter() {
        for edge in node.edges() {
            let (from, to) = (name(&node.id), name(edge.target));
            lines.push(match edge.field.as_str() {
                "next" => format!("  {from} --> {to}"),
                field => {
                    let label = field.strip_prefix("routes.").unwrap_or(field);
                    format!("  {from} -. \"{}\" .-> {to}", escaped(label))
                }
            });
        }
    }
    lines.join("\n")
}

/// The edges of a node by field.
fn grouped(node: &Node) -> Vec<(String, String)> {
    let mut groups: Vec<(String, String)> = Vec::new();
    for edge in node.edges() {
        match groups.iter_mut().find(|(field, _)| *field == edge.field) {
            Some((_, targets)) => {
                targets.push_str(", ");
                targets.push_str(edge.target);
            }
            None => groups.push((edge.field, edge.target.to_owned())),
        }
    }
    groups
}

/// What a node does, in a few words.
fn detail(node: &Node) -> String {
    let text = match &node.kind {
        Kind::Script(script) => script.script.clone(),
        Kind::Agent(agent) => agent.agent.clone(),
        Kind::Map(map) => format!("{} as {} -> {}", map.over, map.item, map.collect_into),
        Kind::Rag(rag) => rag.documents.join(", "),
        Kind::Approval(approval) => approval.question.clone(),
        Kind::Input(input) => input.question.clone(),
        Kind::Llm(_) | Kind::End { .. } => node.description.clone(),
    };
    let first = text.lines().next().unwrap_or_default();
    let short: String = first.chars().take(DETAIL_MAX).collect();
    if short.len() < text.len() { short + "…" } else { short }
}

fn escaped(text: &str) -> String {
    text.replace('&', "#amp;")
        .replace('"', "#quot;")
        .replace('<', "#lt;")
        .replace('>', "#gt;")
        .replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::load::{Source, load};

    fn graph() -> Graph {
        let document = json!({
            "name": "g", "start": "plan",
            "nodes": {
                "plan": {"type": "script", "script": "plan.sh", "next": ["ask", "all"], "fallback": "done"},
                "ask": {"type": "approval", "question": "Go?\nReally?", "options": ["a \"b\""], "routes": {"a \"b\"": "done"}, "on_other": "gone"},
                "all": {"type": "map", "over": "{{l}}", "as": "i", "branch": "one", "collect_into": "o", "next": "done"},
                "one": {"type": "script", "script": "one.py"},
                "done": {"type": "end"},
            },
        });
        let nearest = |_: &str, _: &[&str]| None;
        load(Source { value: &document, lines: &crate::Lines::new(), nearest }).expect("a graph").graph
    }

    #[test]
    fn as_text() {
        let expected = "graph g, starts at plan

plan (script)  plan.sh
  ├─ next: ask, all
  └─ fallback: done

ask (approval)  Go?…
  ├─ routes.a \"b\": done
  └─ on_other: gone

all (map)  {{l}} as i -> o
  ├─ next: done
  └─ branch: one

one (script)  one.py
  └─ _next: chosen by the script

done (end)";
        assert_eq!(text(&graph()), expected);
    }

    #[test]
    fn as_a_flowchart() {
        let expected = "flowchart TD
  n0[\"plan<br/>script\"]
  n1{{\"ask<br/>approval\"}}
  n2[[\"all<br/>map\"]]
  n3[\"one<br/>script\"]
  n4([\"done<br/>end\"])
  missing[\"missing\"]
  start((start)) --> n0
  n0 --> n1
  n0 --> n2
  n0 -. \"fallback\" .-> n4
  n1 -. \"a #quot;b#quot;\" .-> n4
  n1 -. \"on_other\" .-> missing
  n2 --> n4
  n2 -. \"branch\" .-> n3";
        assert_eq!(mermaid(&graph()), expected);
    }
}
