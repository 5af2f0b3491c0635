//! Journals that an earlier version recorded: this one uses what they have, does nothing of it again, and goes on with the same keys.
//!
//! A line of a file is a step: kind, key, outcome. The files stay as they are. A file that is missing is made with `UPDATE_GOLDEN=1`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atlas_types::{Assignment, Payload, Step, StepKey, StepKind, StepUsage};
use serde_json::json;

use super::scene::{Scene, contract};
use super::servers::{spec, with};

const GRAPH: &str = r#"
name: flow
start: a
mcp_servers: [notes]
nodes:
  a: {type: llm, prompt: p, tools: ["mcp:notes"], state_updates: {a: "{{output}}"}, next: b}
  b: {type: llm, prompt: "after {{a}}", state_updates: {b: "{{output}}"}, next: e}
  e: {type: end, output: "{{b}}"}
"#;

const GRAPH_MOCK: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: mcp_search_notes, arguments: { query: note } }
    - { name: mcp_invoke_notes, arguments: { tool: note, arguments: { "text[]": hello } } }
- match: "*"
  text: done
"#;

const LLM_MOCK: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: notes_note, arguments: { text_x5b__x5d_: hello } }
- match: "*"
  text: '{"done": true}'
"#;

/// The steps of a file, or of one that is made now.
async fn golden(name: &str, scene: &mut Scene, attempt: &dyn Fn(Assignment) -> Assignment) -> Vec<Arc<Step>> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/worker/llm/recorded").join(name);
    if !file.exists() && std::env::var_os("UPDATE_GOLDEN").is_some() {
        let first = attempt(scene.attempt(1, "{}"));
        scene.run(&first).await;
        let line = |step: &Arc<Step>| {
            let outcome = scene.controller.text(&step.outcome);
            format!("{} {} {outcome}\n", step.kind.as_str(), step.key)
        };
        let lines: String = std::mem::take(&mut scene.journal.steps).iter().map(line).collect();
        std::fs::write(&file, lines).expect("a file");
    }
    read(&file)
}

fn read(file: &Path) -> Vec<Arc<Step>> {
    let text = std::fs::read_to_string(file).expect("a recorded journal");
    let step = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let mut next = || parts.next().expect("three parts");
        let kind = match next() {
            "start" => StepKind::Start,
            "model" => StepKind::Model,
            "intent" => StepKind::Intent,
            "tools" => StepKind::Tools,
            "effect" => StepKind::Effect,
            other => panic!("{other}"),
        };
        let key = u128::from_str_radix(next(), 16).expect("a key");
        let (key, outcome) = (StepKey(key.to_be_bytes()), Payload::inline(next().as_bytes()));
        Arc::new(Step { kind, key, outcome, usage: StepUsage::default() })
    };
    text.lines().map(step).collect()
}

/// Checks that a recorded journal is used as a whole, and that one which lacks its end is continued as it went on then.
async fn check(name: &str, files: &[(&str, &str)], output: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let notes = dir.path().join("notes");
    let mut scene = Scene::set(files, &[]).await;
    let attempt = |assignment| with(assignment, &[("notes", spec(&notes))]);
    let steps = golden(name, &mut scene, &attempt).await;
    std::fs::remove_file(&notes).ok();
    let kinds = |steps: &[Arc<Step>]| steps.iter().map(|step| (step.kind, step.key)).collect::<Vec<_>>();
    let tools = steps.iter().position(|step| step.kind == StepKind::Tools).expect("tool calls");
    for length in [steps.len(), tools + 1] {
        scene.journal.steps = steps[..length].to_vec();
        let second = attempt(scene.attempt(2, "{}"));
        let end = scene.run(&second).await.output(&scene.controller);
        let end: serde_json::Value = serde_json::from_str(&end).expect("JSON");
        assert_eq!(end.get("text").unwrap_or(&end), &serde_json::from_str::<serde_json::Value>(output).expect("JSON"));
        assert_eq!(kinds(&scene.journal.steps), kinds(&steps), "{length} steps were recorded");
    }
    assert!(!notes.exists(), "the tool was called again");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn the_journal_of_a_model_in_a_loop_is_used() {
    let agent = contract("", "  requires: {mcp_servers: [notes]}\n");
    let output = json!({"done": true}).to_string();
    check("llm.txt", &[("agent.yaml", &agent), ("mock.yaml", LLM_MOCK)], &output).await;
}

#[tokio::test]
async fn the_journal_of_a_graph_is_used() {
    let requires = "  requires: {mcp_servers: [{name: notes, expose: search}]}\n";
    let agent = format!("agent:\n  name: flow\n  version: 1.0.0\n{requires}  provider: {{type: graph}}\n");
    let files = [("agent.yaml", agent.as_str()), ("graph.yaml", GRAPH), ("mock.yaml", GRAPH_MOCK)];
    check("graph.txt", &files, r#""done""#).await;
}
