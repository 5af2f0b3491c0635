//! Shared memory and knowledge of durable programs: calls are recorded, so that each is made once and reads the same in each attempt.

use atlas_types::StepKind;
use serde_json::{Value, json};

use super::scene::{Scene, agent};
use crate::support::{shell, without_python};

const BOTH: &str = "  requires: {memory: true, knowledge: true}\n";

fn answers(scene: &mut Scene, answers: &[&'static str]) {
    scene.answers.extend(answers);
}

/// The tools that were called.
fn tools(scene: &Scene) -> Vec<&str> {
    scene.asked.iter().filter_map(|asked| asked["tool"].as_str()).collect()
}

#[tokio::test]
async fn what_was_read_and_appended_is_recorded() {
    if without_python() {
        return;
    }
    let code = r#"
    async def execute(self, input_data):
        memory = self.context.memory.of("user")
        before = await memory.read()
        await memory.append("one")
        found = [entry.content for entry in await self.context.knowledge_search("door")]
        try:
            await self.context.knowledge_store("x", domain="closed")
        except PermissionError as error:
            denied = str(error)
        await self.context.step("count", counted, input_data["file"], 1)
        return {"before": before, "found": found, "denied": denied}
"#;
    let mut scene = Scene::set(&agent(code, BOTH)).await;
    let entries = r#"{"entries": [{"id": "e", "content": "blue", "domain": "general"}]}"#;
    let appended = r#"{"status": "appended"}"#;
    answers(&mut scene, &[r#"{"text": "first"}"#, appended, entries, "refused Agent not allowed to write"]);
    // What an attempt that is told of the record would read now.
    answers(&mut scene, &[r#"{"text": "second"}"#]);
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    assert!(scene.record_until(6).await.is_none());
    scene.revoke(&first).await;
    let second = scene.attempt(2);
    let output: Value = serde_json::from_str(&scene.run(&second).await.output(&scene.controller)).expect("JSON");
    assert_eq!(output, json!({"before": "first", "found": ["blue"], "denied": "Agent not allowed to write"}));
    let called = ["atlas.memory.read", "atlas.memory.append", "atlas.knowledge.search", "atlas.knowledge.store"];
    assert_eq!(tools(&scene), called);
    assert_eq!(scene.asked[1]["arguments"], json!({"text": "one", "scope": "user"}));
    let tool = StepKind::Tools;
    assert_eq!(scene.kinds(), [StepKind::Start, tool, tool, tool, tool, StepKind::Code]);
    scene.shutdown().await;
}

#[tokio::test]
async fn code_without_await_gets_the_values() {
    if without_python() {
        return;
    }
    let code = r#"
    def execute(self, input_data):
        self.context.memory_append("one")
        return {"text": self.context.memory_read(), "found": self.context.knowledge_get("x")}
"#;
    let mut scene = Scene::set(&agent(code, "  requires: {memory: true}\n")).await;
    answers(&mut scene, &[r#"{"status": "appended"}"#, r#"{"text": "one\n"}"#]);
    let only = scene.attempt(1);
    assert_eq!(scene.run(&only).await.output(&scene.controller), r#"{"text":"one\n","found":null}"#);
    assert_eq!(tools(&scene), ["atlas.memory.append", "atlas.memory.read"]);
    scene.shutdown().await;
}

#[tokio::test]
async fn a_document_is_the_same_in_each_attempt() {
    let mut scene = Scene::set(&shell("cat", &format!("  durable: true\n{BOTH}"))).await;
    let none = r#"{"entries": []}"#;
    answers(&mut scene, &[r#"{"text": "first"}"#, none, r#"{"text": "second"}"#, none]);
    let first = scene.attempt(1);
    let output = scene.run(&first).await.output(&scene.controller);
    let document: Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!((&document["memory"], &document["knowledge"]), (&json!("first"), &json!([])));
    let second = scene.attempt(2);
    let document: Value = serde_json::from_str(&scene.run(&second).await.output(&scene.controller)).expect("JSON");
    assert_eq!(document["memory"], "first");
    assert_eq!(tools(&scene), ["atlas.memory.read", "atlas.knowledge.search"]);
    assert_eq!(scene.kinds(), [StepKind::Start, StepKind::Effect]);
    scene.shutdown().await;
}

#[tokio::test]
async fn a_script_searches_documents_once() {
    let script = r#"
cat > /dev/null
ask='{"kind":"tool","name":"search_documents","tool":"atlas.documents.search","input":{"base":"handbook","query":"door"},"args":["door"]}'
echo "$ask" > /dev/fd/$ATLAS_STEP_OUT
read -r answer < /dev/fd/$ATLAS_STEP_IN
echo "$answer"
"#;
    let mut scene = Scene::set(&shell(script, "  durable: true\n  requires: {documents: [handbook]}\n")).await;
    answers(&mut scene, &[r#"{"hits": [{"source": "door.md", "text": "A blue door."}]}"#, r#"{"hits": []}"#]);
    for attempt in [1, 2] {
        let assignment = scene.attempt(attempt);
        let output = scene.run(&assignment).await.output(&scene.controller);
        let answer: Value = serde_json::from_str(&output).expect("JSON");
        let hits = json!([{"source": "door.md", "text": "A blue door."}]);
        assert_eq!(answer["value"]["data"]["hits"], hits, "attempt {attempt}: {output}");
    }
    assert_eq!(tools(&scene), ["atlas.documents.search"], "the second attempt reads the record");
    assert_eq!(scene.asked[0]["arguments"], json!({"base": "handbook", "query": "door"}));
    scene.shutdown().await;
}
