//! Agents with a `config.yaml`.

use atlas_types::{Assignment, SpawnRule};
use serde_json::Value;

use super::scene::Scene;

const CONTRACT: &str =
    "agent:\n  name: talker\n  version: 1.0.0\n  provider:\n    type: normal\n    output_format: text\n";

async fn scene(config: &str, mock: &str, more: &[(&str, &str)]) -> Scene {
    let mut files = vec![("agent.yaml", CONTRACT), ("config.yaml", config), ("mock.yaml", mock)];
    files.extend(more);
    Scene::set(&files, &[]).await
}

const NOTES: [(&str, &str); 2] =
    [("notes/tides.md", "The moon causes the tides."), ("notes/deep/sun.md", "The sun is far away.")];

#[tokio::test]
async fn documents_are_searched_with_the_prompt_and_not_with_continuations() {
    const MOCK: &str = r#"
- match: { round: 1, text: "Source: notes/tides.md\nThe moon causes the tides." }
  tool_calls: [{ name: todo__add, arguments: { task: look } }]
- match: { round: 2 }
  text: I looked.
- match: "Source:"
  text: searched again
- match: "*"
  text: done
"#;
    let mut scene = scene("name: T\ndocuments: [notes]\nauto_continue: true\n", MOCK, &NOTES).await;
    let first = scene.attempt(1, r#"{"message":"What causes tides?"}"#);
    assert_eq!(scene.run(&first).await.output(&scene.controller), r#"{"text":"done"}"#);
    let fixed: Value = serde_json::from_str(scene.steps()[0].trim_start_matches("start 0+0 ")).expect("JSON");
    let prompt = fixed["prompt"].as_str().expect("a prompt");
    assert!(prompt.contains("- notes/tides.md\n") && prompt.contains("<message>\nWhat causes tides?\n"), "{prompt}");
    assert!(!prompt.contains("sun"), "{prompt}");
    // A later attempt does not search again.
    let second = scene.attempt(2, r#"{"message":"What causes tides?"}"#);
    assert_eq!(scene.run(&second).await.output(&scene.controller), r#"{"text":"done"}"#);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_prompt_without_a_hit_stays_as_it_is() {
    let mock = "- match: {regex: '^xylophone$'}\n  text: as it was\n";
    let mut scene = scene("name: T\ndocuments: ['notes/**/*.md']\n", mock, &NOTES).await;
    let only = scene.attempt(1, r#"{"message":"xylophone"}"#);
    assert_eq!(scene.run(&only).await.output(&scene.controller), r#"{"text":"as it was"}"#);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn documents_that_cannot_be_searched_fail_the_job() {
    for (document, why) in [
        ("none.md", r#"documents: there is no document "none.md" in the agent's folder"#),
        ("../other", r#"documents: "../other" leads out of the agent's folder"#),
        (
            "https://example.com/a",
            r#"documents: "https://example.com/a": documents are not fetched here; put the text into a file of the agent's folder"#,
        ),
        (
            "pdf:a.pdf",
            r#"documents: "pdf:a.pdf": there are no loaders here; put the text into a file of the agent's folder"#,
        ),
    ] {
        let config = format!("name: T\ndocuments: ['{document}']\n");
        let mut scene = scene(&config, "- match: '*'\n  text: x\n", &NOTES).await;
        let only = scene.attempt(1, r#"{"message":"tides"}"#);
        let error = scene.run(&only).await.error();
        assert_eq!(error, format!("the definition of the agent cannot be used: {why}"));
        scene.node.shutdown().await;
    }
}

#[tokio::test]
async fn a_helper_returns_the_texts_of_all_its_answers() {
    const MOCK: &str = r#"
- match: { round: 1 }
  text: First.
  tool_calls: [{ name: todo__add, arguments: { task: look } }, { name: todo__done, arguments: { id: 1 } }]
- match: "*"
  text: Last.
"#;
    for (depth, text) in [(0, "Last."), (1, "First.\nLast.")] {
        let mut scene = scene("name: T\nauto_continue: true\n", MOCK, &[]).await;
        let spawn = Some(SpawnRule { depth, depth_max: 3, permitted: false });
        let only = Assignment { spawn, ..scene.attempt(1, r#"{"message":"go"}"#) };
        let output: Value = serde_json::from_str(&scene.run(&only).await.output(&scene.controller)).expect("JSON");
        assert_eq!(output["text"], text);
        scene.node.shutdown().await;
    }
}
