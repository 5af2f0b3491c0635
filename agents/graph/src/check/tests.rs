//! One test a rule or family of rules, each with a graph that breaks it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Availability, Surroundings, check};
use crate::load::{Source, load};
use crate::{Level, Lines};

/// A folder with two scripts and a few installed agents.
struct Here;

impl Surroundings for Here {
    fn script(&self, path: &str) -> Option<String> {
        match path {
            "s.sh" => Some("echo '{}'".to_owned()),
            "next.sh" => Some("echo '{\"_next\": \"end\"}'".to_owned()),
            _ => None,
        }
    }

    fn agent(&self, name: &str) -> Availability {
        match name {
            "kid" => Availability::Yes,
            "empty" => Availability::Undefined,
            _ => Availability::No,
        }
    }

    fn nearest(&self, name: &str, known: &[&str]) -> Option<String> {
        nearest(name, known)
    }
}

fn nearest(name: &str, known: &[&str]) -> Option<String> {
    known.iter().find(|known| known.eq_ignore_ascii_case(name)).map(|known| (*known).to_owned())
}

/// The findings of a graph with these nodes, as `code node: message`, warnings with a `?`.
fn found(mut graph: Value) -> Vec<String> {
    if graph.get("nodes").is_none() {
        graph = json!({"name": "g", "start": "a", "nodes": graph});
    }
    let loaded = load(Source { value: &graph, lines: &Lines::new(), nearest }).expect("a graph");
    let line = |finding: &crate::Finding| {
        let mark = if finding.level == Level::Warning { "?" } else { "" };
        format!("{}{mark} {}: {}", finding.check.code(), finding.node.as_deref().unwrap_or("-"), finding.message)
    };
    check(&loaded, &Here).iter().map(line).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
#[track_caller]
fn check_found(graph: Value, expected: &[&str]) {
    assert_eq!(found(graph.clone()), expected, "{graph}");
}

fn script(next: &str) -> Value {
    json!({"type": "script", "script": "s.sh", "state_updates": {}, "next": next})
}

fn end() -> Value {
    json!({"type": "end"})
}

#[test]
fn a_good_graph_has_no_findings() {
    check_found(json!({"a": script("end"), "end": end()}), &[]);
    let map = json!({
        "name": "g", "start": "a", "initial_state": {"l": []},
        "nodes": {
            "a": {"type": "map", "over": "{{l}}", "as": "item", "branch": "b", "collect_into": "out", "next": "end"},
            "b": {"type": "llm", "prompt": "{{item}} {{__cwd__}} {{vars.who}}", "state_updates": {"output": "{{output}}"}},
            "end": {"type": "end", "output": "{{out}}"},
        },
    });
    check_found(map, &[]);
}

#[test]
fn v1_targets_exist() {
    let mut a = script("End");
    a["fallback"] = json!("ghost");
    check_found(
        json!({"a": a, "end": end()}),
        &[
            "V1 a: target 'End' in next does not exist",
            "V1 a: target 'ghost' in fallback does not exist",
            "V5? -: no end node reachable over declared edges",
            "V3? end: unreachable from start over declared edges (script _next is not analysed)",
        ],
    );
    let ask =
        json!({"type": "approval", "question": "q", "options": ["x"], "routes": {"x": "gone"}, "on_other": "lost"});
    check_found(
        json!({"name": "g", "start": "end", "nodes": {"end": end(), "a": ask}}),
        &[
            "V1 a: target 'gone' in routes.x does not exist",
            "V1 a: target 'lost' in on_other does not exist",
            "V3? a: unreachable from start over declared edges (script _next is not analysed)",
        ],
    );
}

#[test]
fn v2_only_the_first_cycle_is_reported() {
    let graph = json!({"a": script("b"), "b": script("a"), "c": script("c"), "end": end()});
    let all = found(graph);
    let cycles: Vec<&String> = all.iter().filter(|line| line.starts_with("V2")).collect();
    assert_eq!(cycles, ["V2 -: Cycle detected: a -> b -> a; loops must go through a script's _next"]);
}

#[test]
fn a_chain_of_thousands_of_nodes_is_walked() {
    let mut nodes = serde_json::Map::new();
    nodes.insert("a".to_owned(), script("n0"));
    for index in 0..5_000 {
        nodes.insert(format!("n{index}"), script(&format!("n{}", index + 1)));
    }
    nodes.insert("n5000".to_owned(), end());
    check_found(Value::Object(nodes.clone()), &[]);
    nodes.insert("n5000".to_owned(), script("a"));
    assert!(found(Value::Object(nodes))[0].starts_with("V2 -: Cycle detected: a -> n0 -> n1 -> "));
}

#[test]
fn v4_there_is_an_end() {
    let a = json!({"type": "script", "script": "next.sh"});
    check_found(
        json!({"a": a}),
        &["V4 -: graph has no end node", "missing-next? a: has no next, so each of its outputs must have a _next"],
    );
}

#[test]
fn v6_and_v7_files_and_agents_exist() {
    let a = json!({"type": "script", "script": "./x/../gone.sh", "next": "b"});
    let agent = |name: &str, next: &str| json!({"type": "agent", "agent": name, "prompt": "p", "next": next});
    check_found(
        json!({"a": a, "b": agent("nobody", "c"), "c": agent("empty", "d"), "d": agent("kid", "end"), "end": end()}),
        &[
            "V6 a: script file not found: ./x/../gone.sh",
            "V7 b: agent 'nobody' is not installed",
            "V7 c: agent 'empty' has neither config.yaml nor graph.yaml",
        ],
    );
    for path in ["/bin/sh", "../s.sh", "x/../../s.sh", "\\s.sh"] {
        let a = json!({"type": "script", "script": path, "next": "end"});
        let expected = format!("script-path a: the script is outside the agent's folder: {path}");
        check_found(json!({"a": a, "end": end()}), &[&expected]);
    }
}

#[test]
fn v8_and_v9_options_and_routes_agree() {
    let a = json!({
        "type": "approval", "question": "q", "options": ["yes", "no", "yes"], "routes": {"yes": "end", "maybe": "end"},
        "on_other": "end", "timeout": 5,
    });
    check_found(
        json!({"a": a, "end": end()}),
        &[
            "V8 a: option 'no' has no route",
            "on-timeout a: timeout and on_timeout are set together",
            "V9? a: route 'maybe' matches no option",
            "option-twice? a: option 'yes' is listed twice",
        ],
    );
}

#[test]
fn v10_and_v11_rag_nodes_search_something_and_store_it() {
    let a = json!({"type": "rag", "documents": [], "next": "end"});
    check_found(
        json!({"a": a, "end": end()}),
        &["V10 a: rag node lists no documents", "V11? a: rag result is never stored (no state_updates)"],
    );
}

#[test]
fn settings_of_a_search_fit_together() {
    let rag = |settings: Value| {
        let mut a = json!({"type": "rag", "documents": ["x"], "state_updates": {"x": "{{output}}"}, "next": "end"});
        let (Value::Object(own), Value::Object(more)) = (&mut a, settings) else { unreachable!("objects") };
        own.extend(more);
        json!({"a": a, "end": end()})
    };
    check_found(
        rag(json!({"embedding_model": "m", "reranker_model": "r", "batch_size": 8, "chunk_overlap": 999})),
        &[],
    );
    check_found(
        rag(json!({"top_k": 0, "chunk_size": 100_001, "batch_size": 2_049, "timeout": 0, "embedding_model": "m"})),
        &[
            "rag-settings a: top_k is at least 1 and at most 100",
            "rag-settings a: chunk_size is at least 1 and at most 100000",
            "rag-settings a: batch_size is at least 1 and at most 2048",
            "rag-settings a: timeout is at least 1",
        ],
    );
    check_found(
        rag(json!({"chunk_size": 50, "chunk_overlap": 50, "batch_size": 1})),
        &[
            "rag-settings a: chunk_overlap is less than chunk_size, which is 50",
            "rag-settings a: batch_size is for the calls of an embedding_model, and there is none",
        ],
    );
    check_found(
        rag(json!({"driver": "qdrant", "graph_hops": 2, "extractor_model": null})),
        &[
            "unsupported-field a: the field 'driver' is not supported",
            "unsupported-field a: the field 'graph_hops' is not supported",
        ],
    );
}

#[test]
fn v12_names_are_known() {
    struct There(BTreeSet<String>);
    impl Surroundings for There {
        fn script(&self, path: &str) -> Option<String> {
            Here.script(path)
        }
        fn agent(&self, name: &str) -> Availability {
            Here.agent(name)
        }
        fn tools(&self) -> Option<&BTreeSet<String>> {
            Some(&self.0)
        }
        fn servers(&self) -> Option<&BTreeSet<String>> {
            Some(&self.0)
        }
        fn models(&self) -> Option<&BTreeSet<String>> {
            Some(&self.0)
        }
        fn nearest(&self, name: &str, known: &[&str]) -> Option<String> {
            nearest(name, known)
        }
    }
    let a = json!({"type": "llm", "prompt": "p", "tools": ["known", "KNOWN", "mcp:x"], "model": "m", "next": "end"});
    let graph = json!({"name": "g", "start": "a", "nodes": {"a": a, "end": end()}});
    let loaded = load(Source { value: &graph, lines: &Lines::new(), nearest }).expect("a graph");
    let found: Vec<String> =
        check(&loaded, &There(BTreeSet::from(["known".to_owned()]))).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "[a] unknown tool 'KNOWN' (V12-tool); did you mean \"known\"?",
            "[a] unknown MCP server 'mcp:x' (V12-mcp)",
            "[a] unknown model 'm' (V12-model)",
        ]
    );
}

#[test]
fn v13_nothing_waits_for_no_places() {
    let map = json!({
        "type": "map", "over": "{{l}}", "as": "i", "branch": "b", "collect_into": "o", "next": "end", "max_concurrency": 0,
    });
    let b = json!({"type": "script", "script": "s.sh"});
    let nodes = json!({"a": map, "b": b, "end": end()});
    check_found(
        json!({"name": "g", "start": "a", "settings": {"max_concurrency": 0}, "nodes": nodes}),
        &["V13 -: max_concurrency must be at least 1", "V13 a: max_concurrency must be at least 1"],
    );
}

#[test]
fn v14_to_v16_branches_are_single_steps() {
    let map = |branch: &str| json!({"type": "map", "over": "{{l}}!", "as": "output", "branch": branch, "collect_into": "o", "next": "end"});
    let b = json!({"type": "script", "script": "s.sh", "next": "end", "state_updates": {"output": "1", "x": "2"}});
    check_found(
        json!({"a": map("b"), "b": b, "end": end()}),
        &[
            "map-over a: over must be a single placeholder, because only that yields a list",
            "V15 b: map branch 'b' must not have next",
            "V16 b: map branch 'b' writes 'x'; only output_key 'output' is allowed",
            "map-keys? a: as and output_key are both 'output', so an item hides the result",
        ],
    );
    for (branch, problem) in [
        (json!({"type": "input", "question": "q"}), "an input node: no human nodes in parallel"),
        (end(), "an end node: branches finish through collect_into"),
        (map("end"), "a map: nesting is not supported"),
    ] {
        let all = found(json!({"a": map("b"), "b": branch, "end": end()}));
        assert!(all.contains(&format!("V14 a: map branch 'b' is {problem}")), "{all:?}");
    }
}

#[test]
fn v17_branches_may_have_a_schema() {
    let map = json!({"type": "map", "over": "{{l}}", "as": "i", "branch": "b", "collect_into": "o", "next": "end"});
    let schema = json!({"type": "object", "properties": {"x": {"type": "string"}}});
    let b = json!({"type": "llm", "prompt": "{{i}}", "output_schema": schema});
    check_found(json!({"a": map, "b": b, "end": end()}), &[]);
}

#[test]
fn v18_to_v21_parallel_nodes_do_not_disturb_each_other() {
    let fan = json!({"type": "script", "script": "s.sh", "next": ["b", "c", "d", "e"]});
    let llm = |prompt: &str, key: &str| json!({"type": "llm", "prompt": prompt, "state_updates": {key: "{{output}}"}, "next": "j"});
    let nodes = json!({
        "a": fan, "b": llm("{{k}} {{initial_prompt}}", "x"), "c": llm("p", "k"), "d": {"type": "input", "question": "q", "next": "j"},
        "e": {"type": "script", "script": "s.sh", "next": "j"}, "j": script("end"), "end": end(),
    });
    check_found(
        nodes,
        &[
            "V21 b: reads 'k' written by parallel sibling 'c'; branches see the snapshot taken before the super-step",
            "V18 d: input node is a fan-out target; place it after the join",
            "V19 e: parallel script must declare state_updates (may be empty)",
        ],
    );
    let nodes = json!({
        "a": {"type": "script", "script": "s.sh", "next": ["c", "b"]}, "b": llm("p", "k"), "c": llm("p", "k"),
        "j": script("end"), "end": end(),
    });
    check_found(
        nodes.clone(),
        &[
            "V20 -: nodes [b, c] write 'k' in one super-step without a reducer (append, extend, concat, sum, max, min, merge, overwrite)",
        ],
    );
    check_found(json!({"name": "g", "start": "a", "reducers": {"k": "append"}, "nodes": nodes}), &[]);
}

#[test]
fn every_node_continues() {
    let nowhere = json!({"type": "script", "script": "next.sh", "next": []});
    let expected = [
        "missing-next a: script node has no next",
        "V5? -: no end node reachable over declared edges",
        "V3? end: unreachable from start over declared edges (script _next is not analysed)",
    ];
    check_found(json!({"a": nowhere, "end": end()}), &expected);
    let llm = json!({"type": "llm", "prompt": "p", "next": []});
    let silent = json!({"type": "script", "script": "s.sh", "fallback": "end"});
    check_found(
        json!({"name": "g", "start": "a", "nodes": {"a": silent, "b": llm, "end": end()}}),
        &[
            "missing-next a: script node has no next",
            "missing-next b: llm node has no next",
            "V3? b: unreachable from start over declared edges (script _next is not analysed)",
        ],
    );
    let a = json!({"type": "input", "question": "q", "validation": "len(x) > 1", "next": ["end", "f"]});
    check_found(
        json!({"a": a, "end": end(), "f": end()}),
        &[
            "input-next a: an input node continues with one node, not with a list",
            "input-validation a: \"len(x) > 1\" is not a rule: write \"len(input)\", one of >, >=, <, <= and ==, and a number from 0",
        ],
    );
}

#[test]
fn slips_in_texts_and_keys_are_found() {
    let a = json!({"type": "llm", "prompt": "{{ x }} {{nope.y}}", "next": "end", "state_updates": {"r": "{{output}}"}});
    let graph = json!({
        "name": "g", "start": "a", "reducers": {"n": "sum"}, "nme": 1,
        "nodes": {"a": a, "end": {"type": "end", "Output": "x"}},
    });
    check_found(
        graph,
        &[
            "unknown-field -: unknown field 'nme'",
            "unknown-field end: unknown field 'Output'",
            "unused-reducer? -: the reducer of 'n' has no effect, because nothing writes the key",
            "lookalike? a: '{{ x }}' is not a placeholder and stays as it is",
            "unwritten-key? a: prompt needs 'nope', which nothing writes",
        ],
    );
}

#[test]
fn joins_at_different_depths_are_reported_once() {
    let fan = json!({"type": "script", "script": "s.sh", "next": ["b", "c"]});
    let nodes = json!({
        "a": fan, "b": script("b2"), "b2": script("j"), "c": script("j"), "j": script("k"), "k": script("end"), "end": end(),
    });
    check_found(nodes, &["uneven-join? j: join reached at different depths, so it runs more than once"]);
    // A fallback makes the path of its node longer.
    let mut falls = script("j");
    falls["fallback"] = json!("f");
    let fan = json!({"type": "script", "script": "s.sh", "next": ["b", "c"]});
    let nodes = json!({"a": fan, "b": falls, "c": script("j"), "f": script("j"), "j": script("end"), "end": end()});
    check_found(nodes, &["uneven-join? j: join reached at different depths, so it runs more than once"]);
    // Paths that exclude each other are no parallel paths.
    let ask = json!({"type": "approval", "question": "q", "options": ["x"], "routes": {"x": "b"}, "on_other": "j"});
    check_found(json!({"a": ask, "b": script("j"), "j": script("end"), "end": end()}), &[]);
}

#[test]
fn six_rules_are_reported_together() {
    let graph = json!({
        "a": {"type": "script", "script": "s.sh", "next": ["ask", "par"], "fallback": "ghost"},
        "ask": {"type": "approval", "question": "q", "options": ["x"], "routes": {}, "on_other": "m"},
        "par": {"type": "script", "script": "s.sh", "next": "a"},
        "m": {"type": "map", "over": "{{l}}", "as": "i", "branch": "end", "collect_into": "o", "next": "end"},
        "end": end(),
    });
    let codes: Vec<String> = found(graph).iter().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect();
    assert_eq!(codes, ["V2", "V1", "V8", "V18", "V19", "V14"]);
}
