//! Python agents: syntax, imports and the class, by parsing.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use atlas_contract::{Contract, Warning};
use atlas_dev::Python;
use atlas_env::Env;
use atlas_types::AgentKind;
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::{Findings, RunsOn, shown};

/// The script that parses the files and prints the problems.
const SCRIPT: &str = include_str!("check.py");

/// Longest duration of a check.
const CHECK_MAX: Duration = Duration::from_secs(10);

/// The Python interpreter, looked up on first use.
#[derive(Debug, Default)]
pub(super) struct Interpreter {
    found: OnceCell<Result<Python, String>>,
}

/// One problem that the script found.
#[derive(Debug, Deserialize)]
struct PythonProblem {
    kind: Kind,
    file: String,
    line: Option<u64>,
    /// Python's error message, or the name of the module.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Error,
    Missing,
    Undeclared,
}

impl Interpreter {
    pub(super) async fn check(&self, place: RunsOn, folder: &Path, contract: &Contract, findings: &mut Findings) {
        let found = match self.read(folder, contract).await {
            Ok(found) => found,
            Err(why) => {
                findings.warn(Warning::new("", format!("could not check its Python code: {why}")));
                return;
            }
        };
        for PythonProblem { kind, file, line, text } in found {
            let at = match line {
                Some(line) => format!("{}, line {line}", shown(folder, &file)),
                None => shown(folder, &file),
            };
            match kind {
                Kind::Error => findings.problem(at, text),
                Kind::Missing => {
                    let what = format!("ModuleNotFoundError: No module named '{text}'");
                    let declare = "list its package in dependencies.packages of agent.yaml";
                    match place {
                        RunsOn::Here => findings.problem(at, format!("{what}; {declare}")),
                        RunsOn::Workers { tested: true } => findings
                            .problem(at, format!("{what}; {declare}, or deploy with --no-test if every worker has it")),
                        RunsOn::Workers { tested: false } => {
                            let what = format!("{what} on this machine");
                            findings.warn(Warning::new(at, what).with_hint("every worker needs it"));
                        }
                    }
                }
                Kind::Undeclared => {
                    let what = format!("no file and no package in dependencies.packages is called \"{text}\"");
                    findings.warn(Warning::new(at, what).with_hint("one of the packages must provide it"));
                }
            }
        }
    }

    async fn read(&self, folder: &Path, contract: &Contract) -> Result<Vec<PythonProblem>, String> {
        let python = self.found.get_or_init(find).await.as_ref().map_err(Clone::clone)?;
        let packages = json!(contract.packages.as_deref().unwrap_or_default()).to_string();
        let class = if contract.kind == AgentKind::Agent { "class" } else { "any" };
        let mut command = Command::new(&python.program);
        // The same import path as on a worker: without the current folder and without PYTHONPATH.
        command.args(["-P", "-c", SCRIPT]).arg(folder).args([&packages, class]).env_remove("PYTHONPATH");
        command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(CHECK_MAX, command.output()).await;
        let output = output.map_err(|_| format!("not done after {} s", CHECK_MAX.as_secs()))?;
        let output = output.map_err(|error| format!("\"{}\" did not start: {error}", python.program.display()))?;
        serde_json::from_slice(&output.stdout).map_err(|_| format!("the check ended with {}", output.status))
    }
}

async fn find() -> Result<Python, String> {
    let looked = Env::system().spawn_blocking("find Python", || Python::find(None)).join().await;
    let found = looked.unwrap_or_else(|_| Err(String::new()));
    found.map_err(|_| "this machine has no Python 3.11 or later".to_owned())
}
