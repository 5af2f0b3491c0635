//! Model nodes of graphs: each with its own model, with tools of MCP servers, with questions to people; and values that people set.

use std::sync::Arc;

use atlas_llm_server::{Reply, Server};
use atlas_types::{
    Assignment, AttachedModel, AttachedServer, Attachment, Attachments, Payload, Step, StepKey, StepKind, StepUsage,
};
use serde_json::{Value, json};

use super::scene::Scene;

fn contract(more: &str) -> String {
    format!("agent:\n  name: flow\n  version: 1.0.0\n{more}  provider: {{type: graph}}\n")
}

fn text(scene: &Scene, end: &crate::support::End) -> String {
    let output: Value = serde_json::from_str(&end.output(&scene.controller)).expect("JSON");
    output["text"].as_str().expect("a text").to_owned()
}

const THREE: &str = r#"
name: flow
start: a
temperature: 0.5
nodes:
  a: {type: llm, model: "openai:large", temperature: 0.1, top_p: 0.9, prompt: p, state_updates: {a: "{{output}}"}, next: b}
  b: {type: llm, prompt: q, state_updates: {b: "{{output}}"}, next: c}
  c: {type: llm, model: fast, prompt: r, state_updates: {c: "{{output}}"}, next: e}
  e: {type: end, output: "{{a}} {{b}} {{c}}"}
"#;

fn models(assignment: Assignment, server: &Server, models: &[(&str, &[&str])]) -> Assignment {
    let model = |(name, asked): &(&str, &[&str])| {
        AttachedModel {
        name: (*name).to_owned(),
        spec: json!({"provider": "anthropic", "name": format!("up-{name}"), "base_url": server.base_url(), "key": "${KEY}",
            "prices": {"input": "1", "output": "2"}, "retry": {"attempts": 1}, "stream": false})
        .to_string()
        .into_bytes()
        .into(),
        asked: asked.iter().map(|name| (*name).to_owned()).collect(),
    }
    };
    let attachments = Attachments::new([Attachment::Models(models.iter().map(model).collect())]);
    Assignment { attachments, ..assignment }
}

#[tokio::test]
async fn each_node_calls_its_own_model_with_its_own_sampling() {
    let server = Server::start(|request, _| Reply::text(request["model"].as_str().unwrap_or_default()));
    let server = server.expect("a server");
    let files = [("agent.yaml", contract("  model: {others: [large, fast]}\n")), ("graph.yaml", THREE.to_owned())];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut scene = Scene::set(&files, &[("KEY", "k".to_owned())]).await;
    let all: [(&str, &[&str]); 3] = [("mid", &["balanced"]), ("large", &["large"]), ("quick", &["fast"])];
    let only = models(scene.attempt(1, r#"{"message": "go"}"#), &server, &all);
    let end = scene.run(&only).await;
    assert_eq!(text(&scene, &end), "up-large up-mid up-quick");
    let sampling: Vec<_> =
        server.requests().iter().map(|request| (request["temperature"].clone(), request["top_p"].clone())).collect();
    assert_eq!(sampling, [(json!(0.1), json!(0.9)), (json!(0.5), Value::Null), (json!(0.5), Value::Null)]);
    // What the names mean is part of what the job is fixed to.
    let start: Value = serde_json::from_str(scene.steps()[0].trim_start_matches("start 0+0 ")).expect("JSON");
    assert_eq!(start["nodes"]["fast"]["source"]["stored"][0]["name"], "quick");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_model_that_does_not_exist_is_found_before_the_first_node() {
    let server = Server::start(|_, _| Reply::text("x")).expect("a server");
    let files = [("agent.yaml", contract("  model: {others: [large, fast]}\n")), ("graph.yaml", THREE.to_owned())];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut scene = Scene::set(&files, &[("KEY", "k".to_owned())]).await;
    let only = models(scene.attempt(1, "{}"), &server, &[("mid", &["balanced"]), ("quick", &["fast"])]);
    let error = scene.run(&only).await.error();
    assert!(error.contains("line 6: [a] unknown model 'openai:large' (V12-model)"), "{error}");
    let said: Vec<_> = scene.session.events.iter().map(|event| event.text.as_str()).collect();
    assert!(said.iter().any(|text| text.contains("atlasctl model add large")), "{said:?}");
    assert_eq!(server.requests().len(), 0);
    scene.node.shutdown().await;
}

/// A server in Python that appends to a file with each call of its tool.
const PROGRAM: &str = r#"
import json, os, sys
def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        say({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
             "serverInfo": {"name": "notes", "version": "1"}}})
    elif method == "tools/list":
        say({"id": id, "result": {"tools": [{"name": "note", "description": "Writes a note.",
             "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}]}})
    elif method == "tools/call":
        with open(os.environ["NOTES"], "a") as file:
            file.write(message["params"]["arguments"].get("text", "") + "\n")
        say({"id": id, "result": {"content": [{"type": "text", "text": "noted"}]}})
"#;

const NOTES: &str = r#"
name: flow
start: a
mcp_servers: [notes]
nodes:
  a: {type: llm, prompt: p, tools: ["mcp:notes"], state_updates: {a: "{{output}}"}, next: e}
  e: {type: end, output: "{{a}}"}
"#;

const NOTES_MOCK: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: mcp_search_notes, arguments: { query: note } }
    - { name: mcp_invoke_notes, arguments: { tool: note, arguments: { text: hello } } }
- match: "*"
  text: done
"#;

fn notes(assignment: Assignment, file: &std::path::Path) -> Assignment {
    let spec = json!({"transport": "stdio", "command": "python3", "args": ["-c", PROGRAM],
        "env": {"NOTES": file.display().to_string()}});
    let server =
        AttachedServer { name: "notes".to_owned(), spec: Arc::from(spec.to_string().into_bytes()), login: false };
    Assignment { attachments: Attachments::new([Attachment::Servers(vec![server])]), ..assignment }
}

#[tokio::test]
async fn a_node_uses_the_tools_of_an_mcp_server() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("notes");
    let agent = contract("  requires: {mcp_servers: [{name: notes, expose: search}]}\n");
    let mut scene = Scene::set(&[("agent.yaml", &agent), ("graph.yaml", NOTES), ("mock.yaml", NOTES_MOCK)], &[]).await;
    let first = notes(scene.attempt(1, "{}"), &file);
    scene.session.grant(&first).await;
    // The worker is lost after the call, and before it knows that its outcome is recorded.
    scene.record_until(4).await;
    scene.stop(&first).await;
    let steps = scene.steps();
    let kinds: Vec<&str> = steps.iter().filter_map(|step| step.split(' ').next()).collect();
    assert_eq!(kinds, ["start", "model", "intent", "tools"]);
    assert!(steps[3].contains(r#""server":"notes","tool":"note","outcome":"ok""#), "{}", steps[3]);
    scene.journal.steps.pop();
    let second = notes(scene.attempt(2, "{}"), &file);
    let end = scene.run(&second).await;
    assert_eq!(text(&scene, &end), "done");
    assert_eq!(std::fs::read_to_string(&file).expect("one note"), "hello\n");
    let steps = scene.steps();
    assert!(steps[3].contains("OutcomeUnknown") && steps[3].contains("Writes a note."), "{}", steps[3]);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_found_before_the_first_node() {
    let agent = contract("  requires: {mcp_servers: [{name: notes, expose: search}]}\n");
    let mut scene = Scene::set(&[("agent.yaml", &agent), ("graph.yaml", NOTES), ("mock.yaml", NOTES_MOCK)], &[]).await;
    let only = scene.attempt(1, "{}");
    let error = scene.run(&only).await.error();
    assert!(error.contains("[a] unknown MCP server 'mcp:notes' (V12-mcp)"), "{error}");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_node_that_lists_a_tool_for_questions_asks_people() {
    let graph = NOTES.replace("mcp:notes", "user__confirm").replace("mcp_servers: [notes]", "");
    let mock = "- match: { round: 1 }\n  tool_calls:\n    - { name: user__confirm, arguments: { question: Sure? } }\n- match: \"*\"\n  text: done\n";
    let agent = contract("  requires: {skills: [user__confirm]}\n");
    let mut scene = Scene::set(&[("agent.yaml", &agent), ("graph.yaml", &graph), ("mock.yaml", mock)], &[]).await;
    let only = scene.attempt(1, "{}");
    let end = scene.run(&only).await;
    assert_eq!(text(&scene, &end), "done");
    assert_eq!(scene.asked, [r#"user__confirm {"question":"Sure?"}"#]);
    scene.node.shutdown().await;
}

const STEPS: &str = r#"
name: flow
start: a
initial_state: {limit: 1, kept: x}
nodes:
  a: {type: script, script: show.sh, next: b}
  b: {type: script, script: show.sh, next: e}
  e: {type: end, output: "{{seen}} {{limit}} {{kept}}"}
"#;

const SHOW: &str = r#"python3 -c '
import json, os
state = json.loads(os.environ["GRAPH_STATE"])
print(json.dumps({"seen": "%s|%s" % (state.get("seen", ""), state["limit"])}))'
"#;

#[tokio::test]
async fn values_that_a_person_set_are_seen_from_their_super_step_on() {
    let files = [("agent.yaml", contract("")), ("graph.yaml", STEPS.to_owned()), ("show.sh", SHOW.to_owned())];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut scene = Scene::set(&files, &[]).await;
    let whole = scene.attempt(1, "{}");
    let end = scene.run(&whole).await;
    assert_eq!(text(&scene, &end), "|1|1 1 x");
    // Start, the first node; then what a fork adds.
    scene.journal.steps.truncate(2);
    scene.journal.steps.push(Arc::new(Step {
        kind: StepKind::Effect,
        key: StepKey::set_before(1),
        outcome: Payload::inline(br#"{"step":1,"set":{"limit":5}}"#),
        usage: StepUsage::default(),
    }));
    let fork = scene.attempt(1, "{}");
    let end = scene.run(&fork).await;
    assert_eq!(text(&scene, &end), "|1|5 5 x");
    scene.node.shutdown().await;
}
