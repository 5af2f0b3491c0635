//! The protocol's own conformance suite, in both eras of the protocol: its scenarios for servers against our doors, with agents pinned under
//! the names that they want, and its scenarios for clients with a person who adds the server of the scenario to a cluster. What is left out
//! is in `docs/internals/mcp-conformance.md`, with reasons.

mod scenarios;
mod sdks;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use serde_json::Value;

use self::scenarios::{AGENT, CLIENT, Run, TOOLS};
use crate::Dev;
use crate::program::program;

/// Names the folder with the suite and the Node.js that runs it.
const SUITE: &str = "ATLAS_TEST_MCP_CONFORMANCE";
/// How many scenarios run at the same time. Most of them wait.
const AT_ONCE: usize = 3;

fn suite() -> Option<PathBuf> {
    let suite = std::env::var_os(SUITE).map(PathBuf::from);
    if suite.is_none() {
        atlas_notice::skip(format_args!(
            "{SUITE} does not name the conformance suite of MCP; `cargo xtask test` installs it"
        ));
    }
    suite
}

/// The suite with the arguments of one run, whose results are written below `results`.
fn command(suite: &Path, run: &Run, results: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.arg("120").arg(suite.join("node_modules/node/bin/node"));
    command.arg(suite.join("node_modules/@modelcontextprotocol/conformance/dist/index.js")).args(arguments);
    command.args(["--scenario", run.scenario, "--spec-version", run.version, "--timeout", "90000", "-o"]).arg(results);
    command.current_dir(results);
    command
}

/// What a run wrote. The name of a scenario can have a folder in it.
fn found(folder: &Path) -> Option<Vec<u8>> {
    let mut entries = fs::read_dir(folder).ok()?.flatten();
    fs::read(folder.join("checks.json")).ok().or_else(|| entries.find_map(|entry| found(&entry.path())))
}

/// Runs one scenario; returns what it found wrong, apart from what is known.
fn complaints(run: &Run, results: &Path, mut command: Command) -> Vec<String> {
    let output = command.output().expect("it runs");
    let text = || format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let Some(checks) = found(results) else { return vec![format!("{run:?}: no results\n{}", text())] };
    let checks: Vec<Value> = serde_json::from_slice(&checks).expect("a list");
    let wrong = checks.iter().filter(|check| check["status"] == "FAILURE" || check["status"] == "WARNING");
    let wrong = wrong.filter(|check| !run.is_known(check));
    let wrong: Vec<String> = wrong.map(|check| format!("{run:?}: {check:#}")).collect();
    let succeeded = checks.iter().any(|check| check["status"] == "SUCCESS");
    match (wrong.is_empty(), succeeded) {
        (true, false) => vec![format!("{run:?}: nothing was checked\n{}", text())],
        (true, true) => Vec::new(),
        (false, _) => [wrong, vec![text()]].concat(),
    }
}

/// Runs all scenarios, some at a time.
fn all(runs: &[Run], start: impl Fn(&Run, &Path) -> Command + Sync) {
    let (waiting, failed) = (Mutex::new(runs.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(run) = waiting.lock().expect("no panic").next() else { break };
                    let results = tempfile::tempdir().expect("a folder");
                    let found = complaints(run, results.path(), start(run, results.path()));
                    failed.lock().expect("no panic").extend(found);
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic");
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// A cluster with agents of a folder. The servers of the suite name no agent.
fn cluster(folder: &Path, agents: &Path) -> Dev {
    let agents = agents.display().to_string();
    Dev::start(folder, ["--data-dir", "data", "--agents", &agents, "--log", "warn,rmcp=off"])
}

fn atlasctl(dev: &Dev, arguments: &[&str]) {
    let mut command = Command::new(program("atlasctl"));
    let output = command.args(["--server", dev.server()]).args(arguments).output().expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn our_servers_pass() {
    let Some(suite) = suite() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/tools").canonicalize().expect("a folder");
    let dev = cluster(folder.path(), &agents);
    for entry in fs::read_dir(&agents).expect("a folder").flatten() {
        atlasctl(&dev, &["mcp", "pin", &entry.file_name().to_string_lossy()]);
    }
    let platform = format!("{}/mcp", dev.server());
    all(&TOOLS, |run, results| command(&suite, run, results, &["server", "--url", &platform]));
    let agent = format!("{}/agents/test_simple_text/mcp", dev.server());
    all(&AGENT, |run, results| command(&suite, run, results, &["server", "--url", &agent]));
}

#[test]
fn our_client_passes() {
    let Some(suite) = suite() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let agents = folder.path().join("agents");
    fs::create_dir(&agents).expect("a folder");
    let dev = cluster(folder.path(), &agents);
    let person = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/person.py");
    let person = format!("python3 {}", person.display());
    all(&CLIENT, |run, results| {
        let mut command = command(&suite, run, results, &["client", "--command", &person]);
        command.env("ATLASCTL", program("atlasctl")).env("ATLAS_SERVER", dev.server()).env("NO_COLOR", "1");
        command
    });
}
