//! The programs in three languages, and the child that each of them spawns.
//!
//! They do the same. A program appends a line to `FAMILY.trace` in a folder of the harness for whatever it does: `RUN JOB WORD STEP KEY`.
//! A run is one process's way through the program. Faults are files in that folder; see [`super::plan`].

use std::process::Command;

use atlas_package::{PackFile, pack_files};

use super::plan::Language;
use crate::program::program;

/// The lines of all contracts. A job that was lost or killed as often as it may be is continued by the harness.
const CONTRACT: &str =
    "  version: 1.0.0\n  durable: true\n  execution_timeout: 600\n  requires: { spawn_agents: true }\n";

impl Language {
    /// The name of its agent.
    pub(super) fn agent(self) -> &'static str {
        match self {
            Self::Python => "durable-python",
            Self::Node => "durable-node",
            Self::Shell => "durable-shell",
        }
    }

    /// What this machine lacks to run its programs.
    pub fn missing(self) -> Option<&'static str> {
        let (program, check, why) = match self {
            Self::Python => (
                "python3",
                ["-c", "import sys; sys.exit(sys.version_info < (3, 10))"],
                "there is no Python 3.10 or newer as \"python3\"",
            ),
            Self::Node => (
                "node",
                ["-e", "process.exit(Number(process.versions.node.split('.')[0]) < 20 ? 1 : 0)"],
                "there is no Node 20 or newer as \"node\"",
            ),
            Self::Shell => return None,
        };
        let runs = Command::new(program).args(check).status().is_ok_and(|status| status.success());
        (!runs).then_some(why)
    }

    /// The package of its agent.
    pub(super) fn package(self) -> Vec<u8> {
        let name = self.agent();
        match self {
            Self::Python => package(name, CONTRACT, &[("agent.py", include_str!("agents/agent.py"))]),
            Self::Node => {
                let contract = format!("{CONTRACT}  provider: node\n");
                package(name, &contract, &[("agent.mjs", include_str!("agents/agent.mjs"))])
            }
            Self::Shell => {
                let contract = format!("{CONTRACT}  provider: {{ type: exec, command: [\"./agent.sh\"] }}\n");
                let atlasctl = program("atlasctl");
                let lines = format!("ATLASCTL='{}'\n{}", atlasctl.display(), include_str!("agents/lines.sh"));
                let files = [
                    ("agent.sh", include_str!("agents/agent.sh")),
                    ("work.sh", include_str!("agents/work.sh")),
                    ("lines.sh", &lines),
                ];
                package(name, &contract, &files)
            }
        }
    }
}

/// The package of the job that the programs spawn.
pub(super) fn child() -> Vec<u8> {
    let contract = "  version: 1.0.0\n  provider: { type: exec, command: [\"./child.sh\"] }\n";
    package("durable-child", contract, &[("child.sh", include_str!("agents/child.sh"))])
}

fn package(name: &str, contract: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let contract = format!("agent:\n  name: {name}\n  description: Chaos for durable programs.\n{contract}");
    let file = |(path, text): (&str, &str)| PackFile {
        path: path.to_owned(),
        bytes: text.as_bytes().to_vec(),
        executable: path.ends_with(".sh"),
    };
    let files = [("agent.yaml", contract.as_str())].into_iter().chain(files.iter().copied()).map(file).collect();
    pack_files(files).expect("a package").bytes
}
