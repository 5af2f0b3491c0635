//! The server scenarios of the protocol's own conformance suite that apply to Atlas. The others are listed, with reasons, in
//! `docs/internals/mcp-conformance.md`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::api::Api;
use crate::pair::Controller;

/// Names the folder with the suite and the Node.js that runs it.
const SUITE: &str = "ATLAS_TEST_MCP_CONFORMANCE";

/// Scenarios of the platform's server.
const PLATFORM: [&str; 7] = [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
    "server-sse-polling",
];

/// Scenarios of the server of an agent.
const AGENT: [&str; 5] = ["server-initialize", "ping", "tools-list", "prompts-list", "dns-rebinding-protection"];

fn run(suite: &Path, url: &str, scenario: &str) -> Result<(), String> {
    let program = suite.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let mut command = Command::new("timeout");
    command.arg("60").arg(suite.join("node_modules/node/bin/node")).arg(program);
    let output = command.args(["server", "--url", url, "--scenario", scenario]).current_dir(suite).output();
    let output = output.expect("it runs");
    match output.status.success() {
        true => Ok(()),
        false => {
            let text = String::from_utf8_lossy(&output.stdout);
            let lines: Vec<&str> = text.lines().rev().take(12).collect();
            Err(format!("{scenario} at {url}: {}", lines.into_iter().rev().collect::<Vec<_>>().join("\n")))
        }
    }
}

#[tokio::test]
async fn scenarios_of_the_conformance_suite_pass() {
    let Some(suite) = std::env::var_os(SUITE).map(PathBuf::from) else {
        atlas_notice::skip(format_args!(
            "{SUITE} does not name the conformance suite of MCP; `cargo xtask test` installs it"
        ));
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let echo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/exec-echo");
    let package = atlas_package::pack(&echo).expect("a package");
    Api::new(&controller.http.to_string()).register(package.bytes).await;
    let (platform, agent) =
        (format!("http://{}/mcp", controller.http), format!("http://{}/agents/exec-echo/mcp", controller.http));
    let all = PLATFORM.map(|scenario| (&platform, scenario)).into_iter();
    let all = all.chain(AGENT.map(|scenario| (&agent, scenario)));
    let failed: Vec<String> = all.filter_map(|(url, scenario)| run(&suite, url, scenario).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
