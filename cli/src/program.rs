//! Checks that the program of an agent can start, and that its definition is one that jobs can run, before anything is sent. `deploy`, `test`,
//! `dev`, `apply` and `import` use the same function.
//!
//! The agent's code does not run: Python code is parsed and its imports are looked up. Errors that appear only at run
//! time are not found.

mod cluster;
pub(crate) mod definition;
mod nodejs;
mod python;

pub(crate) use cluster::Has;

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use atlas_contract::{Contract, ProviderKind, Warning};
use atlas_package::{CONTRACT_FILE, Limits, Package};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::program::python::Interpreter;
use crate::words;

/// The word in a command that stands for the worker's own program.
const ATLAS: &str = "@atlas";

/// Programs whose first argument is a file, unless it is an option.
const INTERPRETERS: [&str; 8] = ["python", "python3", "sh", "bash", "node", "ruby", "perl", "php"];

/// Where the agent will run; programs on this machine matter only if it runs here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunsOn {
    /// On this machine.
    Here,
    /// On the workers of a cluster; `tested` says whether its tests run here first.
    Workers { tested: bool },
}

/// The result of a check.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Reasons why the program cannot start, each with its location.
    pub(crate) problems: Vec<(String, String)>,
    /// Reasons why each job would fail, each with its location.
    pub(crate) faults: Vec<(String, String)>,
    /// Reasons why the program may not start on every worker, or was not checked; keys without effect.
    pub(crate) warnings: Vec<Warning>,
}

impl Findings {
    fn problem(&mut self, at: impl Into<String>, what: impl Into<String>) {
        self.problems.push((at.into(), what.into()));
    }

    fn fault(&mut self, at: impl Into<String>, what: impl Into<String>) {
        let fault = (at.into(), what.into());
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// The refusal, if there is a problem.
    pub(crate) fn refusal(&self, agent: &str) -> Option<Failure> {
        let message = match (self.problems.is_empty(), self.faults.is_empty()) {
            (true, true) => return None,
            (false, _) => format!("the program of {agent} cannot be started"),
            (true, false) => format!("each job of {agent} would fail"),
        };
        let failure = Failure::new("E1123", Exit::Invalid, message);
        let failure = failure.with_next("requirements: atlasctl explain-error E1123");
        Some(Failure { places: [&self.problems[..], &self.faults].concat(), ..failure })
    }
}

/// Checks programs; finds the Python interpreter once, when an agent needs it.
#[derive(Debug)]
pub(crate) struct Checker {
    place: RunsOn,
    interpreter: Interpreter,
}

impl Checker {
    pub(crate) fn new(place: RunsOn) -> Self {
        Self { place, interpreter: Interpreter::default() }
    }

    /// Checks the agent in `folder`, whose package this is.
    pub(crate) async fn check(&self, folder: &Path, package: &Package) -> Findings {
        let contract = &package.contract;
        let mut findings = self.program(folder, contract).await;
        let own = contract.warnings.iter().cloned().map(|warning| warning.in_file(CONTRACT_FILE));
        let mut defined = Findings { warnings: own.collect(), ..Findings::default() };
        // The package has what a job sees: packaged tools are in it, links and hidden files are not.
        let unpacked = tempfile::tempdir().map_err(|error| error.to_string()).and_then(|root| {
            let unpacked = atlas_package::unpack(&package.bytes, &root.path().join("package"), &Limits::default());
            unpacked.map(|_| root).map_err(|error| atlas_env::chain(&error))
        });
        match unpacked {
            Ok(root) => definition::check(&root.path().join("package"), contract, &mut defined),
            Err(why) => defined.warn(Warning::new("", format!("could not check its definition: {why}"))),
        }
        findings.faults.extend(defined.faults.into_iter().map(|(at, what)| (shown(folder, &at), what)));
        let in_folder = |warning: Warning| Warning { path: shown(folder, &warning.path), ..warning };
        findings.warnings.extend(defined.warnings.into_iter().map(in_folder));
        findings
    }

    /// Checks the program of the agent in `folder`.
    async fn program(&self, folder: &Path, contract: &Contract) -> Findings {
        let mut findings = Findings::default();
        match contract.provider.kind {
            ProviderKind::Exec => self.command(folder, &contract.provider.command, &mut findings),
            ProviderKind::Python if !folder.join("agent.py").is_file() => {
                findings.problem(shown(folder, "agent.py"), "the file is missing; provider python requires it");
            }
            ProviderKind::Python => self.interpreter.check(self.place, folder, contract, &mut findings).await,
            ProviderKind::Node => nodejs::check(self.place, folder, &mut findings).await,
            ProviderKind::Llm
            | ProviderKind::Mcp
            | ProviderKind::Chain
            | ProviderKind::Graph
            | ProviderKind::LokiAgent => {}
        }
        findings
    }

    fn command(&self, folder: &Path, command: &[String], findings: &mut Findings) {
        let at = format!("{} /agent/provider/command", shown(folder, "agent.yaml"));
        let Some((program, arguments)) = command.split_first().filter(|(program, _)| !program.is_empty()) else {
            findings.problem(at, "missing; provider exec requires a program such as [\"./agent.sh\"]");
            return;
        };
        if program == ATLAS {
            return;
        }
        if program.contains('/') {
            self.file(folder, program, findings);
        } else if !on_path(program) {
            match self.place {
                RunsOn::Here => findings.problem(at, format!("\"{program}\" is not in PATH on this machine")),
                RunsOn::Workers { tested: true } => findings.problem(
                    at,
                    format!("\"{program}\" is not in PATH on this machine, which runs the tests; deploy with --no-test if every worker has it"),
                ),
                RunsOn::Workers { tested: false } => {
                    let what = format!("\"{program}\" is not in PATH on this machine");
                    findings.warn(Warning::new(at, what).with_hint("every worker needs it"));
                }
            }
        }
        let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(script) = arguments.first()
            && INTERPRETERS.contains(&name)
            && !script.starts_with(['-', '/'])
            && !folder.join(script).is_file()
        {
            findings.problem(shown(folder, script), format!("the file is missing: \"{name}\" runs it"));
        }
    }

    /// Checks a program that is given as a path.
    fn file(&self, folder: &Path, program: &str, findings: &mut Findings) {
        let path = Path::new(program);
        if path.is_absolute() {
            if self.place == RunsOn::Here && !path.is_file() {
                findings.problem(program, "the program is missing on this machine");
            }
            return;
        }
        let at = shown(folder, program);
        let hidden = |part: Component<'_>| match part {
            Component::Normal(name) => name.as_encoded_bytes().starts_with(b".") || name == "__pycache__",
            _ => false,
        };
        if path.components().any(|part| part == Component::ParentDir) {
            findings.problem(at, "the path is outside the package");
            return;
        }
        if path.components().any(hidden) {
            findings.problem(at, "packages do not include hidden files");
            return;
        }
        match fs::symlink_metadata(folder.join(path)) {
            Ok(metadata) if metadata.is_symlink() => findings.problem(at, "packages do not include links"),
            Ok(metadata) if !metadata.is_file() => findings.problem(at, "it is not a file"),
            Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => {
                findings.problem(&at, format!("it is not executable: chmod +x {}", words::shell(&at)));
            }
            Ok(_) => self.script(&folder.join(path), at, findings),
            Err(_) => findings.problem(at, "the program is missing"),
        }
    }

    /// Checks the interpreter in the first line of a script.
    fn script(&self, path: &Path, at: String, findings: &mut Findings) {
        let Some((line, missing)) = interpreter_line(path).and_then(|line| Some((line.clone(), missing_in(&line)?)))
        else {
            return;
        };
        let what = format!("\"{line}\": {missing}");
        match self.place {
            _ if line.ends_with('\r') => findings.problem(at, "its first line ends with CR LF; save it with LF"),
            RunsOn::Here => findings.problem(at, what),
            RunsOn::Workers { .. } => findings.warn(Warning::new(at, what).with_hint("every worker needs it")),
        }
    }
}

/// The `#!` line of a script, without the line end; the kernel reads at most 256 bytes of it.
fn interpreter_line(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    fs::File::open(path).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.starts_with(b"#!").then(|| String::from_utf8_lossy(line).into_owned())
}

/// Why the interpreter of a `#!` line cannot start here: its file is missing, or the program that `env` would start is.
fn missing_in(line: &str) -> Option<String> {
    let mut words = line.trim_start_matches("#!").split([' ', '\t']).filter(|word| !word.is_empty());
    let Some(interpreter) = words.next() else { return Some("it names no interpreter".to_owned()) };
    if !Path::new(interpreter.trim_end_matches('\r')).is_file() {
        return Some(format!("{interpreter:?} is missing on this machine"));
    }
    if line.ends_with('\r') {
        return Some("the line ends with CR LF".to_owned());
    }
    let program = words.find(|word| !word.starts_with('-') && !word.contains('='));
    let looked_up = Path::new(interpreter).file_name().is_some_and(|name| name == "env");
    program
        .filter(|program| looked_up && !program.contains('/') && !on_path(program))
        .map(|program| format!("{program:?} is not in PATH on this machine"))
}

/// The path of an agent's file as a user would type it.
fn shown(folder: &Path, file: &str) -> String {
    let path: PathBuf = folder.join(file).components().filter(|part| *part != Component::CurDir).collect();
    path.display().to_string()
}

/// Whether a program can be found by its name alone.
pub(crate) fn on_path(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests;
