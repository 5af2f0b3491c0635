//! Tests agents for Node.js, and the package that they import by itself.

use std::path::Path;
use std::process::Command;

use crate::support::{End, Stage};

const HEADER: &str = "import { Agent, agent } from \"@atlas/agent\";\n";

/// The files of an agent in `agent.mjs`.
pub(crate) fn javascript(code: &str, more: &str) -> Vec<(&'static str, String)> {
    let contract = format!("agent:\n  name: js\n  version: 1.0.0\n  provider: node\n{more}");
    vec![("agent.yaml", contract), ("agent.mjs", format!("{HEADER}{code}"))]
}

/// True, with a message, if there is no Node.js for tests.
pub(crate) fn without_nodejs() -> bool {
    match atlas_worker::NodeJs::find(None) {
        Ok(_) => false,
        Err(why) => {
            atlas_notice::skip(why);
            true
        }
    }
}

impl Stage {
    /// Runs the agent with `code` on each of `inputs`.
    async fn run_javascript(&mut self, code: &str, more: &str, inputs: &[&str]) -> Vec<End> {
        let agent = self.controller.publish_owned(&javascript(code, more));
        let mut ends = Vec::new();
        for input in inputs {
            let assignment = self.controller.assignment(&agent, input);
            ends.push(self.session.run(&assignment).await);
        }
        ends
    }
}

/// The tests of the package, which need no worker.
#[test]
fn the_package_speaks_the_frames() {
    let Ok(found) = atlas_worker::NodeJs::find(None) else {
        atlas_notice::skip("no Node.js");
        return;
    };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/sdk/typescript");
    let tests = ["test/host.test.mjs", "test/durable.test.mjs"];
    let output = Command::new(found.program)
        .args(["--test", "--test-force-exit"])
        .args(tests)
        .stdin(std::process::Stdio::null())
        .current_dir(package)
        .output();
    let output = output.expect("Node.js starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[tokio::test]
async fn a_class_serves_job_after_job_in_a_warm_slot() {
    if without_nodejs() {
        return;
    }
    let mut stage = Stage::set().await;
    let code = r#"
export default class Counter extends Agent {
  async onStartup() { this.n = 0; }
  async execute(input, ctx) {
    this.n += input.by;
    console.log("printed");
    console.warn("careful");
    ctx.progress("half");
    return { n: this.n, job: ctx.jobId, team: this.context.metadata.team };
  }
}
"#;
    let ends = stage.run_javascript(code, "", &["{\"by\": 2}", "{\"by\": 3}"]).await;
    assert_eq!(ends[0].output(&stage.controller), r#"{"n":2,"job":"job-0000000000000001","team":"a"}"#);
    assert_eq!(ends[1].output(&stage.controller), r#"{"n":5,"job":"job-0000000000000002","team":"a"}"#);
    assert!(!ends[0].usage().warm && ends[1].usage().warm, "{:?}", ends[1].usage());
    let mut said: Vec<_> =
        stage.session.events.iter().map(|event| format!("{:?} {}: {}", event.kind, event.level, event.text)).collect();
    said.sort();
    said.dedup();
    assert_eq!(said, ["Log info: printed", "Log warning: careful", "Progress : half"]);
    stage.node.shutdown().await;
}

#[tokio::test]
async fn errors_say_what_and_where() {
    if without_nodejs() {
        return;
    }
    let mut stage = Stage::set().await;
    for (code, error) in [
        ("export default agent(async () => { throw new RangeError('kaput'); });", "kaput"),
        (
            "export default agent(async () => undefined);",
            "what execute returned is undefined, which JSON does not have; use null or an object",
        ),
        ("\nconst = 3;", "Pool error: agent.mjs, line 3: SyntaxError: Unexpected token '='"),
        (
            "export default class extends Agent { async onStartup() { throw new Error('no model'); } async execute() {} }",
            "Pool error: no model",
        ),
        ("export default agent(() => process.exit(3));", "Agent process exited with code 3 before it answered"),
    ] {
        let ends = stage.run_javascript(code, "", &["{}"]).await;
        assert_eq!(ends[0].error(), error);
    }
    let ends = stage.run_javascript("export const a = 1;", "", &["{}"]).await;
    assert_eq!(ends[0].error(), "Pool error: Agent not found or no implementation: js");
    let why = ends[0].metadata()["_error_why"].as_str().expect("a text").to_owned();
    assert!(why.starts_with("agent.mjs exports no agent"), "{why}");
    stage.node.shutdown().await;
}

/// A confined program reads its package, our package and the libraries of Node.js, and nothing else.
#[tokio::test]
async fn a_confined_agent_runs() {
    if without_nodejs() {
        return;
    }
    let mut stage = Stage::set().await;
    let code = r#"
import { readFileSync, readdirSync } from "node:fs";
import { helper } from "./lib.mjs";

export default agent(async () => {
  let secret;
  try { secret = readdirSync("/root"); } catch (error) { secret = error.code; }
  return { helped: helper(readFileSync(new URL("./agent.yaml", import.meta.url), "utf8").length), secret };
});
"#;
    let mut files = javascript(code, "  permissions: { filesystem: [], network: [] }\n");
    files.push(("lib.mjs", "export const helper = (length) => length > 10;\n".to_owned()));
    let agent = stage.controller.publish_owned(&files);
    let assignment = stage.controller.assignment(&agent, "{}");
    let output = stage.session.run(&assignment).await.output(&stage.controller);
    let output: serde_json::Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!(output["helped"], true);
    stage.node.shutdown().await;
}
