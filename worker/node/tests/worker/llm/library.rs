//! Shared memory and knowledge of llm agents: what they are told at the beginning is recorded, and three tools change and search both.

use serde_json::Value;

use super::scene::{Scene, contract};

const MOCK: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: memory_append, arguments: { entry: seen } }
    - { name: knowledge_store, arguments: { content: x, tags: [t] } }
    - { name: knowledge_store, arguments: { content: x, domain: closed } }
    - { name: knowledge_search, arguments: { query: door, limit: 2 } }
- match: "*"
  text: '{"done": true}'
"#;

const BOTH: &str = "  requires: {memory: true, knowledge: true}\n";

fn start(scene: &Scene) -> Value {
    serde_json::from_str(scene.steps()[0].trim_start_matches("start 0+0 ")).expect("JSON")
}

#[tokio::test]
async fn a_model_is_told_what_is_known_and_has_tools_for_it() {
    let provider = "    system_prompt: Be brief.\n";
    let mut scene = Scene::set(&[("agent.yaml", &contract(provider, BOTH)), ("mock.yaml", MOCK)], &[]).await;
    let first = scene.attempt(1, r#"{"text": "door"}"#);
    assert_eq!(scene.run(&first).await.output(&scene.controller), r#"{"done":true}"#);
    let asked = [
        "atlas.memory.read {}",
        r#"atlas.knowledge.search {"query":"door","limit":5}"#,
        r#"atlas.memory.append {"text":"seen"}"#,
        r#"atlas.knowledge.store {"content":"x","tags":["t"]}"#,
        r#"atlas.knowledge.store {"content":"x","domain":"closed"}"#,
        r#"atlas.knowledge.search {"query":"door","limit":2}"#,
    ];
    assert_eq!(scene.asked, asked);
    let start = start(&scene);
    let system = "Be brief.\n\n## Shared Memory\nknown\n\n\n## Relevant Knowledge\n- [general] the door is blue";
    assert_eq!(start["settings"]["system"], system);
    let tools = start["settings"]["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["tool"]["name"].as_str()).collect();
    assert_eq!(names, ["memory_append", "knowledge_store", "knowledge_search"]);
    let recorded = &scene.steps()[2];
    for part in [
        r#"{"value":{"status":"appended"}}"#,
        r#"{"value":{"status":"stored","id":"general-1"}}"#,
        r#"{"error":{"kind":"PermissionError","text":"Agent not allowed to write to knowledge domain 'closed'"}}"#,
        r#"{"value":[{"id":"general-1","domain":"general","content":"the door is blue","tags":["door"]}]}"#,
    ] {
        assert!(recorded.contains(part), "{part} is not in {recorded}");
    }
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_later_attempt_is_told_the_same_and_its_calls_have_the_same_keys() {
    let mut scene = Scene::set(&[("agent.yaml", &contract("", BOTH)), ("mock.yaml", MOCK)], &[]).await;
    let first = scene.attempt(1, r#"{"text": "door"}"#);
    scene.session.grant(&first).await;
    scene.record_until(3).await;
    scene.stop(&first).await;
    scene.journal.steps.pop();
    let called = scene.keys.clone();
    let second = scene.attempt(2, r#"{"text": "door"}"#);
    assert_eq!(scene.run(&second).await.output(&scene.controller), r#"{"done":true}"#);
    let keys = |calls: &[(atlas_types::StepKey, bool)]| calls.iter().map(|(key, _)| *key).collect::<Vec<_>>();
    assert_eq!(keys(&scene.keys[called.len()..]), keys(&called[2..]), "what is known is not read again");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn without_them_nothing_is_read() {
    let mut scene = Scene::set(&[("agent.yaml", &contract("", "")), ("mock.yaml", MOCK)], &[]).await;
    let only = scene.attempt(1, r#"{"text": "door"}"#);
    scene.run(&only).await;
    assert!(scene.asked.is_empty(), "{:?}", scene.asked);
    assert!(!start(&scene).to_string().contains("memory_append"));
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_model_searches_the_bases_that_its_contract_names() {
    const SEARCH: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: search_documents, arguments: { base: handbook, query: door, top_k: 2 } }
    - { name: search_documents, arguments: { base: other, query: door } }
- match: "*"
  text: '{"done": true}'
"#;
    let requires = "  requires: {documents: [handbook]}\n";
    let mut scene = Scene::set(&[("agent.yaml", &contract("", requires)), ("mock.yaml", SEARCH)], &[]).await;
    let only = scene.attempt(1, r#"{"text": "door"}"#);
    assert_eq!(scene.run(&only).await.output(&scene.controller), r#"{"done":true}"#);
    assert_eq!(scene.asked, [r#"atlas.documents.search {"base":"handbook","query":"door","top_k":2}"#]);
    let tools = &start(&scene)["settings"]["tools"];
    assert_eq!(tools[0]["tool"]["name"], "search_documents", "{tools}");
    let part = r#"{"value":[{"source":"door.md","text":"A blue door."}]}"#;
    assert!(scene.steps()[2].contains(part), "{}", scene.steps()[2]);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn agents_with_a_config_yaml_use_what_their_contract_names() {
    const USE: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: memory_append, arguments: { entry: seen } }
    - { name: search_documents, arguments: { base: handbook, query: door } }
- match: { system: 'You open doors\.', result: 'A blue (\w+)' }
  text: "It is a {result.1}."
"#;
    let contract = "agent:\n  name: talker\n  version: 1.0.0\n  provider: {type: normal, output_format: text}\n  \
                    requires: {memory: user, knowledge: true, documents: [handbook]}\n";
    let files =
        [("agent.yaml", contract), ("config.yaml", "name: T\ninstructions: You open doors.\n"), ("mock.yaml", USE)];
    let mut scene = Scene::set(&files, &[]).await;
    let only = scene.attempt(1, r#"{"message": "door"}"#);
    assert_eq!(scene.run(&only).await.output(&scene.controller), r#"{"text":"It is a door."}"#);
    let asked = [
        "atlas.memory.read {}",
        r#"atlas.knowledge.search {"query":"door","limit":5}"#,
        r#"atlas.memory.append {"text":"seen"}"#,
        r#"atlas.documents.search {"base":"handbook","query":"door"}"#,
    ];
    assert_eq!(scene.asked, asked);
    let system = start(&scene)["settings"]["system"].as_str().map(str::to_owned).unwrap_or_default();
    let told = "## Shared Memory\nknown\n\n\n## Relevant Knowledge\n- [general] the door is blue";
    assert!(system.starts_with("You open doors.") && system.ends_with(told), "{system}");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn nodes_of_graphs_have_the_tools_that_they_list() {
    const GRAPH: &str = "
name: flow
start: a
nodes:
  a: {type: llm, prompt: door, tools: [memory_read, search_documents], state_updates: {a: '{{output}}'}, next: e}
  e: {type: end, output: '{{a}}'}
";
    const USE: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: memory_read, arguments: {} }
    - { name: memory_append, arguments: { entry: seen } }
    - { name: search_documents, arguments: { base: handbook, query: door } }
- match: { result: 'A blue (\w+)' }
  text: "It is a {result.1}."
"#;
    let contract = "agent:\n  name: flow\n  version: 1.0.0\n  requires: {memory: true, documents: [handbook]}\n  \
                    provider: {type: graph}\n";
    let files = [("agent.yaml", contract), ("graph.yaml", GRAPH), ("mock.yaml", USE)];
    let mut scene = Scene::set(&files, &[]).await;
    let only = scene.attempt(1, r#"{"message": "go"}"#);
    let output: Value = serde_json::from_str(&scene.run(&only).await.output(&scene.controller)).expect("JSON");
    assert_eq!(output["text"], "It is a door.");
    // One that the node does not list is not called.
    let asked = ["atlas.memory.read {}", r#"atlas.documents.search {"base":"handbook","query":"door"}"#];
    assert_eq!(scene.asked, asked);
    scene.node.shutdown().await;
}
