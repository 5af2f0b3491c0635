//! What ships with Atlas works from the program alone: in an empty folder, with neither packages nor models nor keys.

use std::path::Path;
use std::process::{Command, Output};

use atlas_cluster_tests::program;
use serde_json::Value;

use crate::laptop::Laptop;

/// Runs `atlasctl` as a user with nothing but the program.
fn atlasctl(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.arg("240").arg(program("atlasctl")).args(arguments).current_dir(folder);
    command.env("ATLAS_CONFIG", folder.join("no-config.toml")).env("ATLAS_SANDBOX", "off");
    for name in
        ["ATLAS_API_KEY", "ANTHROPIC_API_KEY", "ATLAS_OPENAI_API_KEY", "OPENAI_API_KEY", "PYTHONPATH", "ATLAS_SERVER"]
    {
        command.env_remove(name);
    }
    command.output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// All that ships, by kind.
fn listed(folder: &Path) -> Vec<(String, String)> {
    let output = atlasctl(folder, &["deploy", "--list", "-o", "json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let listed: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let word = |value: &Value, member: &str| value[member].as_str().expect("a text").to_owned();
    listed.iter().map(|shipped| (word(shipped, "kind"), word(shipped, "name"))).collect()
}

#[test]
fn every_agent_that_ships_passes_its_tests_from_the_program_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let agents: Vec<String> =
        listed(folder.path()).into_iter().filter(|(kind, _)| kind == "agent").map(|(_, name)| name).collect();
    assert!(agents.len() > 30, "{agents:?}");
    for name in &agents {
        // An orchestrator decides on jobs, and has no tests of its own.
        if name == "priority-router" {
            continue;
        }
        let output = atlasctl(folder.path(), &["test", name]);
        assert!(output.status.success(), "{name}: {}{}", text(&output.stdout), text(&output.stderr));
    }
}

#[test]
fn what_ships_is_deployed_by_name_and_copied() {
    let laptop = Laptop::with(&[]);
    let mut session = laptop.session("What ships is deployed by name");
    let mut all: Vec<(String, String)> = listed(laptop.folder());
    all.retain(|(kind, _)| kind != "agent");
    for (kind, name) in &all {
        session.run(&format!("atlasctl deploy --no-test {name}"));
        if kind == "chain" {
            session.quiet(&format!("atlasctl chain check {name}"));
        }
    }
    let run = |session: &mut crate::session::Session<'_>, line: &str| -> Value {
        let printed = session.quiet(line);
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{line}: {error}: {printed}"))
    };
    let input = r#"{"text": "Atlas runs agents.", "max_sentences": 1}"#;
    session.quiet("atlasctl deploy --no-test llm-summarizer decomposer");
    let summary = run(&mut session, &format!("atlasctl run llm-summarizer --input '{input}' -o json"));
    assert_eq!(summary["output_data"]["model"], "mock", "{summary}");
    let spawned = run(&mut session, r#"atlasctl run decomposer --input '{"messages": ["a", "b"]}' -o json"#);
    assert_eq!(spawned["output_data"]["count"], 2, "{spawned}");
    session.quiet("atlasctl init mine --from batch-processor");
    session.quiet("atlasctl deploy --no-test ./mine");
    let sum = run(&mut session, r#"atlasctl run mine --input '{"items": [{"name": "a", "price": 2}]}' -o json"#);
    assert_eq!(sum["output_data"]["total"], 2, "{sum}");
    session.run("atlasctl deploy codr");
    session.run("atlasctl init other --from codr");
    expect_test::expect_file!["../transcripts/shipped.txt"].assert_eq(&session.page());
}
