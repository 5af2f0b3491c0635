//! Small agents in a folder, written by the test that needs them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// An agent whose program is a shell script.
#[derive(Debug, Clone, Copy)]
pub struct Agent<'a> {
    /// Its name and folder.
    pub name: &'a str,
    pub version: &'a str,
    /// More lines of the contract, each indented by two blanks.
    pub contract: &'a str,
    /// The script after `#!/bin/sh`.
    pub script: &'a str,
}

/// Writes the agent under `folder`; the contract last, so that whoever watches the folder finds the program complete.
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
