//! Small agents in a folder, written by the test that needs them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// An agent whose program is a shell script.
#[derive(Debug, Clone, Copy)]
pub struct Agent<'a> {
    /// The name of the agent and of its folder.
    pub name: &'a str,
    pub version: &'a str,
    /// Additional lines of the contract, each indented by two spaces.
    pub contract: &'a str,
    /// The script after `#!/bin/sh`.
    pub script: &'a str,
}

/// Writes the agent under `folder`. The contract is written last, so that a watcher of the folder finds a complete
/// agent.
pub fn write(folder: &Path, agent: &Agent<'_>) {
    let dir = folder.join(agent.name);
    fs::create_dir_all(&dir).expect("a folder");
    let script = dir.join("agent.sh");
    fs::write(&script, format!("#!/bin/sh\n{}\n", agent.script)).expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("made executable");
    let contract = format!(
        "agent:\n  name: {}\n  version: {}\n  description: A test agent.\n  provider: {{ type: exec, command: [\"./agent.sh\"] }}\n{}\n",
        agent.name, agent.version, agent.contract
    );
    fs::write(dir.join("agent.yaml"), contract).expect("written");
}
