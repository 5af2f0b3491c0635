//! Tools of MCP servers: offered, called, recorded, and not called again when nobody knows what the first call did.

use std::sync::Arc;

use atlas_types::{Assignment, AttachedServer, Attachment, Attachments};
use serde_json::{Value, json};

use super::scene::{Scene, contract};

/// A server in Python that appends to a file with each call.
const PROGRAM: &str = r#"
import json, os, sys
def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()
schema = {"properties": {"text[]": {"type": "str"}}, "anyOf": [{"required": ["text[]"]}]}
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        say({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
             "serverInfo": {"name": "notes", "version": "1"}}})
    elif method == "tools/list":
        say({"id": id, "result": {"tools": [
            {"name": "note", "description": "Writes a note.", "inputSchema": schema, "annotations": "odd"},
            {"name": "broken", "description": "Has no schema."},
            {"name": "odd", "inputSchema": {"type": "array"}},
            {"name": "read", "description": "Reads the notes.", "inputSchema": schema}]}})
    elif method == "tools/call":
        path, name = os.environ["NOTES"], message["params"]["name"]
        try:
            if name == "note":
                with open(path, "a") as file:
                    file.write(message["params"]["arguments"].get("text[]", "") + "\n")
            text = open(path).read() if os.path.exists(path) else ""
        except OSError as error:
            text = f"refused: {error.strerror}"
        say({"id": id, "result": {"content": [{"type": "text", "text": text}]}})
"#;

const MOCK: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: notes_note, arguments: { text_x5b__x5d_: hello } }
- match: "*"
  text: '{"done": true}'
"#;

pub(super) fn spec(notes: &std::path::Path) -> Value {
    json!({
        "transport": "stdio", "command": "python3", "args": ["-c", PROGRAM],
        "env": {"NOTES": notes.display().to_string()}, "effects": {"read": "pure"},
    })
}

pub(super) fn with(assignment: Assignment, servers: &[(&str, Value)]) -> Assignment {
    let server = |(name, spec): &(&str, Value)| AttachedServer {
        name: (*name).to_owned(),
        spec: Arc::from(spec.to_string().into_bytes()),
        login: false,
    };
    let attachments = Attachments::new([Attachment::Servers(servers.iter().map(server).collect())]);
    Assignment { attachments, ..assignment }
}

#[tokio::test]
async fn tools_of_a_program_are_offered_called_and_recorded() {
    let dir = tempfile::tempdir().expect("a directory");
    let notes = dir.path().join("notes");
    let limits = "  permissions: {max_memory_mb: 4096, max_cpu_seconds: 60}\n";
    let agent = contract("", &format!("  requires: {{mcp_servers: [notes, down]}}\n{limits}"));
    let mut scene = Scene::set(&[("agent.yaml", &agent), ("mock.yaml", MOCK)], &[]).await;
    let down = json!({"transport": "http", "url": "http://127.0.0.1:9/mcp"});
    let first = with(scene.attempt(1, "{}"), &[("notes", spec(&notes)), ("down", down)]);
    let end = scene.run(&first).await;
    assert_eq!(end.output(&scene.controller), r#"{"done":true}"#);
    assert_eq!(Scene::metadata(&end)["_limits"], "memory and cpu time of MCP servers not enforced");
    assert_eq!(std::fs::read_to_string(&notes).expect("a note"), "hello\n");
    let steps = scene.steps();
    let kinds: Vec<&str> = steps.iter().filter_map(|step| step.split(' ').next()).collect();
    assert_eq!(kinds, ["start", "model", "intent", "tools", "model"]);
    let start: Value = serde_json::from_str(steps[0].trim_start_matches("start 0+0 ")).expect("JSON");
    let offered = start["settings"]["tools"].as_array().expect("tools");
    let names: Vec<_> = offered.iter().map(|tool| tool["tool"]["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["notes_note", "notes_read"]);
    assert!(steps[2].contains(r#"{"attempt":1,"tools":["notes/note"]}"#), "{}", steps[2]);
    assert!(steps[3].contains(r#""server":"notes","tool":"note","outcome":"ok""#), "{}", steps[3]);
    assert!(steps[3].contains(r#"{"value":"hello\n"}"#), "{}", steps[3]);
    let said: Vec<_> = scene.session.events.iter().map(|event| event.text.as_str()).collect();
    assert!(said.contains(&"notes/note: started") && said.contains(&"notes/note: completed"), "{said:?}");
    assert!(said.iter().any(|text| text.contains("MCP server down cannot be reached")), "{said:?}");
    let schema = json!({
        "type": "object", "properties": {"text_x5b__x5d_": {"type": "string", "description": "The server calls it text[]."}},
        "required": ["text_x5b__x5d_"],
    });
    assert_eq!(offered[0]["tool"]["input_schema"], schema);
    let odd = "the MCP server notes: tool \"odd\" is not offered to models, because providers would refuse it: its arguments are not an object but \"array\"";
    assert!(said.contains(&odd), "{said:?}");
    let left_out = "the MCP server notes: tool \"broken\" has no \"inputSchema\"; the job goes on without it";
    assert!(said.contains(&left_out), "{said:?}");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_program_has_the_rights_of_its_agent() {
    let Some(dir) = crate::elsewhere::folder() else { return };
    let notes = dir.path().join("notes");
    let with_permissions =
        |permissions: &str| contract("", &format!("  requires: {{mcp_servers: [notes]}}\n{permissions}"));
    for (permissions, may_write) in
        [("  permissions: {filesystem: [], network: []}\n", false), ("  permissions: {filesystem: [write]}\n", true)]
    {
        let agent = with_permissions(permissions);
        let mut scene = Scene::set(&[("agent.yaml", &agent), ("mock.yaml", MOCK)], &[]).await;
        let first = with(scene.attempt(1, "{}"), &[("notes", spec(&notes))]);
        let end = scene.run(&first).await;
        assert_eq!(end.output(&scene.controller), r#"{"done":true}"#);
        let sandbox = Scene::metadata(&end)["_sandbox"].as_str().expect("it says what is enforced").to_owned();
        if sandbox.contains("not enforced: files") {
            atlas_notice::skip(format_args!("files cannot be kept from programs here: {sandbox}"));
            return;
        }
        let steps = scene.steps();
        assert_eq!(steps[3].contains(r#"{"value":"refused: "#), !may_write, "{}", steps[3]);
        assert_eq!(notes.exists(), may_write, "{sandbox}");
        scene.node.shutdown().await;
    }
}

#[tokio::test]
async fn a_call_that_may_have_been_made_is_not_made_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let notes = dir.path().join("notes");
    let agent = contract("", "  requires: {mcp_servers: [notes]}\n");
    let mut scene = Scene::set(&[("agent.yaml", &agent), ("mock.yaml", MOCK)], &[]).await;
    let first = with(scene.attempt(1, "{}"), &[("notes", spec(&notes))]);
    scene.session.grant(&first).await;
    // The worker is lost after the call, and before it knows that its outcome is recorded.
    scene.record_until(4).await;
    scene.stop(&first).await;
    scene.journal.steps.pop();
    let second = with(scene.attempt(2, "{}"), &[("notes", spec(&notes))]);
    assert_eq!(scene.run(&second).await.output(&scene.controller), r#"{"done":true}"#);
    assert_eq!(std::fs::read_to_string(&notes).expect("one note"), "hello\n");
    let steps = scene.steps();
    assert!(steps[3].contains("OutcomeUnknown") && steps[3].contains(r#""outcome":"unknown""#), "{}", steps[3]);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_large_server_is_searched_and_changed_tools_are_held_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let agent = contract("", "  requires: {mcp_servers: [{name: notes, expose: search}]}\n");
    let mock = r#"
- match: { round: 1 }
  tool_calls:
    - { name: mcp_search_notes, arguments: { query: reads notes } }
    - { name: mcp_invoke_notes, arguments: { tool: read } }
    - { name: mcp_invoke_notes, arguments: { tool: note, arguments: { text: x } } }
- match: "*"
  text: '{"done": true}'
"#;
    let mut scene = Scene::set(&[("agent.yaml", &agent), ("mock.yaml", mock)], &[]).await;
    let mut pinned = spec(&dir.path().join("notes"));
    let tool = |name: &str, description: &str| atlas_mcp::RemoteTool {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: json!({"properties": {"text[]": {"type": "str"}}, "anyOf": [{"required": ["text[]"]}]}),
    };
    pinned["pinned"] = true.into();
    pinned["pins"] = json!({
        "read": atlas_mcp::digest(&tool("read", "Reads the notes.")),
        "note": atlas_mcp::digest(&tool("note", "What it was before.")),
    });
    let first = with(scene.attempt(1, "{}"), &[("notes", pinned)]);
    assert_eq!(scene.run(&first).await.output(&scene.controller), r#"{"done":true}"#);
    let steps = scene.steps();
    let round = &steps[3];
    assert!(round.contains(r#"[{"name":"read","server":"notes","description":"Reads the notes."}]"#), "{round}");
    assert!(round.contains(r#"{"value":{"content":[{"type":"text","text":""}],"isError":false}}"#), "{round}");
    assert!(round.contains("the MCP server notes has no tool 'note'"), "{round}");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_server_that_does_not_exist_fails_the_job() {
    let agent = contract("", "  requires: {mcp_servers: [nowhere]}\n");
    let mut scene = Scene::set(&[("agent.yaml", &agent), ("mock.yaml", MOCK)], &[]).await;
    let first = scene.attempt(1, "{}");
    let end = scene.run(&first).await;
    assert_eq!(end.error(), "there is no MCP server \"nowhere\"; add it: atlasctl mcp add nowhere");
    assert_eq!(end.metadata()["_error_code"], "E3206");
    scene.node.shutdown().await;
}
