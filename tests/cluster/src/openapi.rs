//! The HTTP API conforms to its OpenAPI document: schemathesis calls every operation of a real cluster with valid and
//! invalid input, and reports statuses, types and shapes that are not declared.
//!
//! A finding fails the test. A crash of schemathesis itself (with several workers, a bug of `ast.parse` in Python 3.11
//! ends every second run) says nothing about Atlas: the run is repeated with another seed, and a notice is
//! printed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{Agent, Dev, write_agent};

/// The environment variable with the path of schemathesis; `cargo xtask test` sets it.
const PROGRAM: &str = "ATLAS_TEST_SCHEMATHESIS";

const ECHO: Agent<'static> = Agent { name: "echo", version: "1.0.0", contract: "", script: "cat" };

/// The enabled checks. Refusal of invalid input is not checked, because clients of Atlas for Python send input that no
/// schema allows and expect an answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,\
                      response_headers_conformance,unsupported_method";

/// One seed per run; after a crash of the tool, the next seed is used.
const SEEDS: [&str; 4] = ["1", "2", "3", "4"];

/// The titles of internal errors of schemathesis, in contrast to errors of the network or of a schema.
const OWN_ERRORS: [&str; 2] = ["Runtime Error", "Internal Error"];

#[derive(Debug, PartialEq, Eq)]
enum ToolResult {
    Passed,
    Finding,
    /// The tool failed, not the API.
    Crashed,
}

#[test]
fn nothing_is_answered_that_is_not_declared() {
    let Some(program) = std::env::var_os(PROGRAM).map(PathBuf::from) else {
        atlas_notice::skip(format_args!("{PROGRAM} does not name schemathesis; `cargo xtask test` installs it"));
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(&folder.path().join("agents"), &ECHO);
    let dev = Dev::start(folder.path(), ["--ephemeral", "--agents", "./agents"]);
    let mut crashes = Vec::new();
    let passed = SEEDS.iter().any(|seed| {
        let (verdict, text) = examine(&program, folder.path(), &dev, seed);
        assert_ne!(verdict, ToolResult::Finding, "{text}");
        if verdict == ToolResult::Crashed {
            atlas_notice::warn(format_args!("schemathesis crashed with seed {seed}: repeated with another"));
            crashes.push(text);
        }
        verdict == ToolResult::Passed
    });
    assert!(passed, "schemathesis crashed with every seed: {}", crashes.join("\n"));
    assert_eq!(dev.interrupt(), Some(0), "the cluster lives and stops in order");
}

/// Runs the tool with one seed; returns the verdict and the tool's output.
fn examine(program: &Path, folder: &Path, dev: &Dev, seed: &str) -> (ToolResult, String) {
    let report = folder.join(format!("report-{seed}.json"));
    let mut command = Command::new(program);
    command.args(["run", &format!("{}/api/openapi.json", dev.server()), "--checks", CHECKS]);
    // The same cases in each run, for less than a minute.
    command.args(["--seed", seed, "--max-examples", "10", "--max-time", "40"]);
    // One worker: two threads that parse Python at the same time are what the bug of Python 3.11 needs.
    command.args(["--request-timeout", "20", "--workers", "1", "--no-color", "--generation-database", "none"]);
    // If the only node took no jobs, every later wait would run into its timeout.
    command.args(["--exclude-operation-id", "drainNode", "--exclude-operation-id", "cordonNode"]);
    // Backups are slow, and only one can be made at a time, so most requests would be refused.
    command.args(["--exclude-path", "/api/cluster/snapshot"]);
    command.args(["--report", "json", "--report-json-path"]).arg(&report);
    let output = command.current_dir(folder).stdin(Stdio::null()).output().expect("schemathesis starts");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let report = std::fs::read(&report).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    (verdict(output.status.success(), report.as_ref()), text.into_owned())
}

/// The verdict on a run. A tool that crashed wrote no report, or an incomplete one.
fn verdict(success: bool, report: Option<&Value>) -> ToolResult {
    if success {
        return ToolResult::Passed;
    }
    let list = |name: &str| report.and_then(|report| report[name].as_array()).map_or(&[][..], Vec::as_slice);
    let own = |error: &Value| error["title"].as_str().is_some_and(|title| OWN_ERRORS.contains(&title));
    let complete = report.is_some_and(|report| report["complete"] == true);
    let nothing_found = list("failures").is_empty() && list("errors").iter().all(own);
    // A complete run without errors failed for another reason, such as an unknown option; repeating it does not help.
    if nothing_found && (!complete || !list("errors").is_empty()) { ToolResult::Crashed } else { ToolResult::Finding }
}

#[test]
fn a_crash_of_the_tool_is_told_from_a_finding() {
    use serde_json::json;
    let errors = |title: &str| json!({"complete": true, "failures": [], "errors": [{"title": title, "count": 1}]});
    assert_eq!(verdict(true, None), ToolResult::Passed);
    assert_eq!(verdict(false, None), ToolResult::Crashed, "it died without a report");
    assert_eq!(verdict(false, Some(&errors("Runtime Error"))), ToolResult::Crashed);
    assert_eq!(verdict(false, Some(&errors("Network Error"))), ToolResult::Finding);
    let mut both = errors("Runtime Error");
    both["failures"] = json!([{"type": "status_code_conformance"}]);
    assert_eq!(verdict(false, Some(&both)), ToolResult::Finding);
    let ended = |complete: bool| json!({"complete": complete, "failures": [], "errors": []});
    assert_eq!(verdict(false, Some(&ended(false))), ToolResult::Crashed, "an exception ended it");
    assert_eq!(verdict(false, Some(&ended(true))), ToolResult::Finding);
}
