//! Tools of llm agents: the table is resolved once, results are recorded, and agents are tools.

use serde_json::Value;

use super::scene::{Scene, contract};

const TOOLS: &str =
    "  requires: {spawn_agents: true, skills: [atlas.registry.list, echo, atlas.exec.run, atlas.monitor.health]}\n";

const MOCK: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: atlas_registry_list, arguments: { type: agent } }
    - { name: atlas_monitor_health, arguments: {} }
    - { name: echo, arguments: { message: hi } }
    - { name: echo, arguments: { text: hi } }
    - { name: atlas_exec_run, arguments: { agent: nobody } }
    - { name: atlas_exec_run, arguments: {} }
    - { name: nothing, arguments: {} }
- match: "*"
  text: '{"done": true}'
"#;

#[tokio::test]
async fn tools_of_the_platform_and_agents_are_called_and_recorded() {
    let mut scene = Scene::set(&[("agent.yaml", &contract("", TOOLS)), ("mock.yaml", MOCK)], &[]).await;
    let first = scene.attempt(1, "{}");
    assert_eq!(scene.run(&first).await.output(&scene.controller), r#"{"done":true}"#);
    let asked = [
        r#"atlas.tool.lookup {"name":"echo"}"#,
        r#"atlas.registry.list {"type":"agent"}"#,
        "atlas.monitor.health {}",
        r#"spawn echo {"message":"hi"}"#,
        "spawn nobody {}",
    ];
    assert_eq!(scene.asked, asked);
    let steps = scene.steps();
    let start: Value = serde_json::from_str(steps[0].trim_start_matches("start 0+0 ")).expect("JSON");
    assert_eq!(start["settings"]["tools"][1]["tool"]["description"], "Repeats.");
    assert_eq!((&start["tools"]["echo"], &start["tools"]["atlas.exec.run"]), (&"agent".into(), &"platform".into()));
    let kinds: Vec<&str> = steps.iter().filter_map(|step| step.split(' ').next()).collect();
    assert_eq!(kinds, ["start", "model", "tools", "child", "child", "model"]);
    assert!(steps[2].contains(r#"{"value":{"agents":[]}}"#), "{}", steps[2]);
    assert!(steps[2].contains(r#"{"error":{"kind":"ToolError","text":"no"}}"#), "{}", steps[2]);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_later_attempt_calls_only_what_is_not_recorded_under_the_same_key() {
    let mut scene = Scene::set(&[("agent.yaml", &contract("", TOOLS)), ("mock.yaml", MOCK)], &[]).await;
    let first = scene.attempt(1, "{}");
    scene.session.grant(&first).await;
    // The worker is lost after it has called the tools and before it knows that they are recorded.
    scene.record_until(3).await;
    scene.stop(&first).await;
    let called = scene.keys.clone();
    scene.journal.steps.pop();
    let second = scene.attempt(2, "{}");
    assert_eq!(scene.run(&second).await.output(&scene.controller), r#"{"done":true}"#);
    let again: Vec<_> = scene.keys[called.len()..].iter().map(|(key, _)| *key).collect();
    let before: Vec<_> = called[1..].iter().map(|(key, _)| *key).collect();
    assert_eq!(again, before, "the table is not resolved again, and the calls have the same keys");
    assert!(scene.keys[called.len()..].iter().all(|(_, again)| *again));
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_tool_that_does_not_exist_fails_the_job() {
    let more = "  requires: {skills: [ghost]}\n";
    let mut scene = Scene::set(&[("agent.yaml", &contract("", more)), ("mock.yaml", MOCK)], &[]).await;
    let only = scene.attempt(1, "{}");
    let end = scene.run(&only).await;
    assert_eq!(end.error(), "Skill resolution failed: Skill 'ghost' not found in registry");
    assert_eq!(end.metadata()["_error_code"], "E3206");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn skills_are_called_as_children_and_recorded() {
    const MOCK: &str = r#"
- match: { round: 1 }
  tool_calls: [{ name: words, arguments: { text: a b } }, { name: words, arguments: {} }]
- match: "*"
  text: '{"done": true}'
"#;
    let more = "  requires: {skills: [words@^1.0.0]}\n";
    let mut scene = Scene::set(&[("agent.yaml", &contract("", more)), ("mock.yaml", MOCK)], &[]).await;
    let only = scene.attempt(1, "{}");
    assert_eq!(scene.run(&only).await.output(&scene.controller), r#"{"done":true}"#);
    let asked = [r#"atlas.tool.lookup {"name":"words@^1.0.0"}"#, r#"skill words {"text":"a b"}"#, "skill words {}"];
    assert_eq!(scene.asked, asked);
    let steps = scene.steps();
    let start: Value = serde_json::from_str(steps[0].trim_start_matches("start 0+0 ")).expect("JSON");
    assert_eq!(start["tools"]["words"], "skill");
    assert!(steps[2].contains(r#"{"completed":{"words":2}}"#), "{}", steps[2]);
    assert!(steps[3].contains(r#"{"failed":"no text"}"#), "{}", steps[3]);
    scene.node.shutdown().await;
}
