//! The interface does what its OpenAPI document says: schemathesis asks a real cluster for everything that is in it, with valid and
//! invalid input, and looks for statuses, types and shapes that are not declared.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{Agent, Dev, write_agent};

/// Names the program; `cargo xtask test` sets it.
const PROGRAM: &str = "ATLAS_TEST_SCHEMATHESIS";

const ECHO: Agent<'static> = Agent { name: "echo", version: "1.0.0", contract: "", script: "cat" };

/// What it looks for. Whether invalid input is refused is not among it: clients of the source system send what no schema allows, and
/// count on getting away with it.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,\
                      response_headers_conformance,unsupported_method";

#[test]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn nothing_is_answered_that_is_not_declared() {
    let Some(program) = std::env::var_os(PROGRAM).map(PathBuf::from) else {
        eprintln!("skipped: {PROGRAM} does not name schemathesis; `cargo xtask test` installs it");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(&folder.path().join("agents"), &ECHO);
    let dev = Dev::start(folder.path(), ["--ephemeral", "--agents", "./agents"]);
    let mut command = Command::new(program);
    command.args(["run", &format!("{}/api/openapi.json", dev.server()), "--checks", CHECKS]);
    // The same cases each time, and no more than a minute of them.
    command.args([
        "--seed",
        "1",
        "--max-examples",
        "10",
        "--max-time",
        "40",
        "--request-timeout",
        "20",
        "--workers",
        "2",
    ]);
    // A cluster whose only node takes no jobs would have every later wait take its time.
    command.args(["--exclude-operation-id", "drainNode", "--exclude-operation-id", "cordonNode"]);
    // A backup takes as long as it takes, and whoever makes one every other request gets none.
    command.args(["--exclude-path", "/api/cluster/snapshot", "--generation-database", "none", "--no-color"]);
    let output = command.current_dir(folder.path()).stdin(Stdio::null()).output().expect("schemathesis starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(dev.interrupt(), Some(0), "the cluster lives and stops in order");
}
