//! The official SDKs for TypeScript: they refuse a whole list for one tool that breaks their schemas.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{atlasctl, cluster, suite};

/// The SDK of the older era, and that of both.
const PACKAGES: [&str; 2] = ["@modelcontextprotocol/sdk", "@modelcontextprotocol/client"];

/// Agents that are no tools as they are: their names, and the schemas of their inputs.
const ODD: [(&str, &str); 4] = [
    ("a list", "{ type: array, items: { type: integer } }"),
    ("gr\u{fc}\u{df}e", "{ type: object, properties: { a: { type: object }, b: true }, required: [a] }"),
    ("either", "{ type: [object, 'null'] }"),
    ("job_get", "{ type: object }"),
];

fn agents(folder: &Path) {
    for (number, (name, schema)) in ODD.iter().enumerate() {
        let place = folder.join(format!("odd-{number}"));
        fs::create_dir_all(&place).expect("a folder");
        let contract = format!(
            "agent:\n  name: {name:?}\n  version: 1.0.0\n  provider: {{ type: exec, command: [cat] }}\n  input: {{ schema: {schema} }}\n  output: {{ schema: {{}} }}\n"
        );
        fs::write(place.join("agent.yaml"), contract).expect("a contract");
    }
    let tool = folder.join("reporter");
    fs::create_dir_all(&tool).expect("a folder");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/tools/test_tool_with_progress");
    for file in ["agent.yaml", "agent.py"] {
        fs::copy(from.join(file), tool.join(file)).expect("a copy");
    }
}

#[test]
fn the_sdks_for_typescript_list_and_call_pinned_agents() {
    let Some(suite) = suite() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    agents(&folder.path().join("agents"));
    let dev = cluster(folder.path(), &folder.path().join("agents"));
    let names: Vec<&str> = ODD.iter().map(|(name, _)| *name).chain(["test_tool_with_progress"]).collect();
    names.iter().for_each(|name| atlasctl(&dev, &["mcp", "pin", name]));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/sdk.mjs");
    for package in PACKAGES {
        let mut command = Command::new("timeout");
        command.arg("120").arg(suite.join("node_modules/node/bin/node")).arg(&script).arg(package);
        command.arg(format!("{}/mcp", dev.server())).args(&names).current_dir(&suite);
        let output = command.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{package}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        // A tool of the platform has the name of one of the agents, and is called as well.
        let called = |name: &str| lines.iter().find(|line| line["tool"] == name && line["failed"] == false);
        assert!(names.iter().all(|name| called(name).is_some()), "{package}: {text}");
        let reporter = called("test_tool_with_progress").expect("it was called");
        let said = reporter["said"].as_array().expect("a list");
        for step in ["step 0", "step 50", "step 100"] {
            assert!(said.contains(&json!(step)), "{package}: {reporter}");
        }
    }
}
