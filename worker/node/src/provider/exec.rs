//! exec agents, one process per job (compatibility §20.2): a JSON document in, a JSON document out, no shell.

mod steps;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use atlas_contract::ExecMode;
use atlas_env::Env;
use atlas_secrets::Redactor;
use atlas_types::{Assignment, FailureKind, GpuShare, StreamKind};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub(super) use self::steps::Ends;
use super::io_loop::{ReadResult, Sink, Source, Wait, Woken};
use super::library::{Known, Library};
use super::{ATLAS, Execution, Settings, UNKNOWN, elsewhere, json_text};
use crate::agent::Agent;
use crate::attempt::Work;
use crate::cgroup::Limits;
use crate::folder::OwnDirectory;
use crate::process::{Change, Spawn, Supervisor, Tree};
use crate::provider::{Control, Shared};
use crate::sandbox::{Confined, Unconfined};
use crate::secrets::Secrets;
use crate::texts::Lines;

/// How much of a process's output is shown in an error.
const SHOWN_CHARS: usize = 500;

/// The provider with one process per job. Its slot ends with the job.
pub(crate) struct Exec {
    shared: Shared,
}

impl Exec {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { shared: shared.clone() }
    }

    pub(super) async fn execute(&mut self, work: &Arc<Work>, control: &mut Control<'_>) -> Execution {
        if work.agent.contract.durable {
            return self.execute_durable(work, control).await;
        }
        let limit = work.assignment.execution_timeout;
        let mut wait = Wait::until(control.now() + limit.as_duration());
        let library = Library::of(work, &self.shared);
        let known = match library.begin(work, control).await {
            Ok(known) => known,
            Err(end) => return end,
        };
        let output_bytes_max = self.shared.settings.output_bytes_max;
        let mut process = match Process::spawn(work, &self.shared, control, Ends::default()).await {
            Ok(process) => process,
            Err(failed) => return *failed,
        };
        control.limits = process.tree.enforced().text();
        control.sandbox = process.tree.confined().map(str::to_owned);
        process.stdin.send(&document(work, &known));
        process.stdin.finish();
        loop {
            match process.wait(&mut wait, control).await {
                Woken::Io { pipes, tree } => {
                    if process.read(pipes, control, output_bytes_max).await {
                        return too_large(output_bytes_max);
                    }
                    if let Some(change) = tree.then(|| process.tree.change()).flatten() {
                        let execution = process.conclude(change, work, control, output_bytes_max).await;
                        return library.settle(execution, work, control).await;
                    }
                }
                // Exec agents cannot make calls.
                Woken::Answered => drop(control.answers()),
                Woken::TimedOut => {
                    let why = process.tree.breach();
                    return Execution::timed_out(limit).explained(why, control).await;
                }
                Woken::Stopped | Woken::Parked => return Execution::stopped(),
            }
        }
    }
}

/// What to start.
pub(super) struct Start {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) directory: PathBuf,
    /// As in [`Spawn`].
    pub(super) own_directory: Option<OwnDirectory>,
    /// The complete environment.
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) limits: Limits,
    /// None for the rights of the worker.
    pub(super) sandbox: Option<Confined>,
    /// As in [`Spawn`].
    pub(super) after: Vec<OsString>,
    /// Descriptors besides the usual three.
    pub(super) passed: Vec<OwnedFd>,
}

/// Why there is no process.
pub(super) enum NotStarted {
    Spawn(io::Error),
    Unconfined(Unconfined),
}

impl From<io::Error> for NotStarted {
    fn from(error: io::Error) -> Self {
        Self::Spawn(error)
    }
}

impl From<Unconfined> for NotStarted {
    fn from(unconfined: Unconfined) -> Self {
        Self::Unconfined(unconfined)
    }
}

/// A running process with its pipes.
pub(super) struct Process {
    pub(super) tree: Tree,
    /// Keeps the package in the cache while its program runs.
    _agent: Arc<Agent>,
    pub(super) stdin: Sink,
    stdout: Source,
    stderr: Source,
    /// Output that has not been read yet.
    pub(super) output: Vec<u8>,
    /// The first bytes of stderr, for the error text.
    complaint: Vec<u8>,
    complaint_bytes_max: usize,
    lines: Lines,
}

impl Process {
    /// Starts the contract's command for `work`. A failure counts as a failure of the job.
    pub(super) async fn spawn(
        work: &Arc<Work>,
        shared: &Shared,
        control: &Control<'_>,
        ends: Ends,
    ) -> Result<Self, Box<Execution>> {
        if work.agent.contract.provider.command.is_empty() {
            let text = "exec provider requires 'command' in contract";
            return Err(Box::new(Execution::failed(FailureKind::Agent, text)));
        }
        let (work, supervisor, settings) =
            (Arc::clone(work), Arc::clone(&shared.supervisor), Arc::clone(&shared.settings));
        let secrets = control.secrets.clone();
        Self::begin(control, move || {
            let mut start = Self::command(&work, &secrets, &settings)?;
            start.environment.extend(ends.environment);
            start.passed = ends.passed;
            Self::start(&work, start, &supervisor, &settings)
        })
        .await
    }

    /// Starts another program than that of the contract. A failure counts as a failure of the job.
    pub(super) async fn spawn_with(
        start: Start,
        work: &Arc<Work>,
        supervisor: &Arc<Supervisor>,
        settings: &Arc<Settings>,
        control: &Control<'_>,
    ) -> Result<Self, Box<Execution>> {
        let (work, supervisor, settings) = (Arc::clone(work), Arc::clone(supervisor), Arc::clone(settings));
        Self::begin(control, move || Self::start(&work, start, &supervisor, &settings)).await
    }

    /// Starts on a blocking thread, because a fork would delay other tasks of the runtime.
    async fn begin(
        control: &Control<'_>,
        start: impl FnOnce() -> Result<Self, NotStarted> + Send + 'static,
    ) -> Result<Self, Box<Execution>> {
        let started = control.env.spawn_blocking("start process", start).join().await;
        let started = started.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::Interrupted).into()));
        started.map_err(|error| {
            Box::new(match error {
                NotStarted::Spawn(error) => {
                    Execution::failed(FailureKind::Internal, format!("could not start a process: {error}"))
                }
                NotStarted::Unconfined(unconfined) => Execution::unconfined(unconfined),
            })
        })
    }

    /// The contract's command.
    fn command(work: &Work, secrets: &Secrets, settings: &Settings) -> Result<Start, NotStarted> {
        let command = &work.agent.contract.provider.command;
        let (program, arguments) = command.split_first().ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
        let (contract, package) = (&work.agent.contract, work.agent.directory.as_path());
        let own_directory = settings.sandboxes.own_directory(contract, package)?;
        let directory = own_directory.as_ref().map_or(package, OwnDirectory::path).to_owned();
        let sandbox = settings.sandboxes.of(contract, &directory, &[], &[])?;
        let mut environment = environment(work, settings);
        // A process of many jobs gets the secrets of each with its input.
        if work.agent.contract.provider.mode != Some(ExecMode::Warm) {
            let variables = secrets.variables(&environment);
            environment.extend(variables);
        }
        Ok(Start {
            program: resolve(program, &directory, settings),
            arguments: arguments.iter().map(OsString::from).collect(),
            environment,
            directory,
            own_directory,
            limits: work.agent.limits(),
            sandbox,
            after: Vec::new(),
            passed: Vec::new(),
        })
    }

    fn start(work: &Work, start: Start, supervisor: &Supervisor, settings: &Settings) -> Result<Self, NotStarted> {
        let (stdin, to_agent) = io::pipe()?;
        let (from_agent, stdout) = io::pipe()?;
        let (errors, stderr) = io::pipe()?;
        let tree = supervisor.spawn(Spawn {
            program: start.program,
            arguments: start.arguments,
            directory: &start.directory,
            environment: start.environment,
            stdin: stdin.into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
            passed: start.passed,
            limits: start.limits,
            sandbox: start.sandbox,
            own_directory: start.own_directory,
            makes_code: false,
            leased: true,
            shares_pids: false,
            after: start.after,
        })?;
        Ok(Self {
            tree,
            _agent: Arc::clone(&work.agent),
            stdin: Sink::new(to_agent)?,
            stdout: Source::new(from_agent)?,
            stderr: Source::new(errors)?,
            output: Vec::new(),
            complaint: Vec::new(),
            complaint_bytes_max: settings.stderr_bytes_max,
            lines: Lines::default(),
        })
    }

    /// Reads a piece of the data that is ready. True once the output is too large.
    pub(super) async fn read(&mut self, ready: [bool; 3], control: &mut Control<'_>, output_bytes_max: usize) -> bool {
        let [stdin, stdout, stderr] = ready;
        if stdin {
            self.stdin.flush();
        }
        if stdout {
            self.stdout.read(&mut self.output);
        }
        if self.output.len() > output_bytes_max {
            self.tree.kill().await;
            return true;
        }
        if stderr {
            self.read_complaint(control).await;
        }
        false
    }

    /// Reads a piece of stderr.
    async fn read_complaint(&mut self, control: &mut Control<'_>) -> ReadResult {
        let mut errors = Vec::new();
        let found = self.stderr.read(&mut errors);
        let room = self.complaint_bytes_max.saturating_sub(self.complaint.len());
        self.complaint.extend_from_slice(&errors[..errors.len().min(room)]);
        if control.listens() {
            for line in self.lines.push(&errors) {
                control.say(StreamKind::Log, level_of(&line), line).await;
            }
        }
        found
    }

    pub(super) async fn wait(&mut self, wait: &mut Wait, control: &Control<'_>) -> Woken<3> {
        wait.next(control, &mut self.tree, [&self.stdin, &self.stdout, &self.stderr]).await
    }

    /// Reads all available output. True once it is too large.
    pub(super) fn read_output(&mut self, output_bytes_max: usize) -> bool {
        while self.output.len() <= output_bytes_max
            && matches!(self.stdout.read(&mut self.output), ReadResult::Bytes(_))
        {}
        self.output.len() > output_bytes_max
    }

    /// Reads the remaining data from the pipes of an ended tree. True if it is too large.
    pub(super) async fn drain(&mut self, control: &mut Control<'_>, output_bytes_max: usize) -> bool {
        self.tree.kill().await;
        if self.read_output(output_bytes_max) {
            return true;
        }
        while matches!(self.read_complaint(control).await, ReadResult::Bytes(_)) {}
        if let Some(line) = self.lines.finish() {
            control.say(StreamKind::Log, level_of(&line), line).await;
        }
        false
    }

    /// Handles the end of a process that answers by its exit.
    async fn conclude(
        mut self,
        change: Change,
        work: &Work,
        control: &mut Control<'_>,
        output_bytes_max: usize,
    ) -> Execution {
        if self.drain(control, output_bytes_max).await {
            return too_large(output_bytes_max);
        }
        let why = self.tree.breach();
        if let Some(failed) = self.failure(change, work, control.secrets.redactor()) {
            return failed.explained(why, control).await;
        }
        let output = std::mem::take(&mut self.output);
        let (bytes, redactor) = (output.len(), control.secrets.redactor().clone());
        let read = move || match json_text::parse(&output) {
            Ok(output) => accept(output, true),
            Err(message) => invalid_json(&message, &output, &redactor),
        };
        let execution = elsewhere(control.env, bytes, read).await.unwrap_or_else(Execution::cut_short);
        execution.explained(why, control).await
    }

    /// The failure for a process's end. None for a successful end.
    pub(super) fn failure(&self, change: Change, work: &Work, redactor: &Redactor) -> Option<Execution> {
        let text = match change {
            Change::NotStarted { errno } => {
                let command = work.agent.contract.provider.command.first().map_or("", String::as_str);
                format!("[Errno {errno}] {}: '{command}'", nix::errno::Errno::from_raw(errno).desc())
            }
            Change::NotConfined(refused) => return Some(Execution::unconfined(refused)),
            Change::Exited(status) if status.success() => return None,
            Change::Exited(status) => self.exit_text(status, redactor),
        };
        Some(Execution::failed(FailureKind::Agent, text))
    }

    /// `Process exited with code 3: <stderr>`. A signal is shown as a negative code, as in Python.
    fn exit_text(&self, status: ExitStatus, redactor: &Redactor) -> String {
        let code = status.code().unwrap_or_else(|| -status.signal().unwrap_or(0));
        format!("Process exited with code {code}: {}", self.complaint(redactor))
    }

    /// What the process said on its standard error.
    pub(super) fn complaint(&self, redactor: &Redactor) -> String {
        let complaint = String::from_utf8_lossy(&self.complaint);
        let is_cut = self.complaint.len() >= self.complaint_bytes_max;
        let complaint = if is_cut { redactor.fragment(&complaint) } else { redactor.text(&complaint) };
        let complaint = complaint.trim();
        if complaint.is_empty() { UNKNOWN.to_owned() } else { complaint.to_owned() }
    }

    /// Stops the process: closes its stdin, and kills it after `patience`.
    pub(super) async fn stop(&mut self, env: &Env, patience: Duration) {
        self.stdin.finish();
        let until = env.clock.monotonic() + patience;
        while self.tree.change().is_none() {
            let now = env.clock.monotonic();
            if now >= until || !self.tree.wait_for_change(until - now).await {
                break;
            }
        }
        self.tree.kill().await;
    }
}

/// The level of a line on stderr by its first word, as in `error: …`, `[WARN] …` or `2026-01-02 ERROR …`. The default
/// is information. A word that is not in capitals must be followed by a colon or a bracket.
pub(super) fn level_of(line: &str) -> &'static str {
    // Words that start with a digit belong to a time stamp and are skipped.
    let mut words = line.split_whitespace().map(|word| word.trim_start_matches(['[', '<', '(']));
    let first = words.find(|word| !word.starts_with(|c: char| c.is_ascii_digit())).unwrap_or("");
    let end = first.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(first.len());
    let (word, rest) = first.split_at(end);
    let capital = word.chars().all(|c| c.is_ascii_uppercase());
    let says_a_level = rest.starts_with([':', ']', '>', ')']) || (capital && rest.is_empty());
    if !says_a_level {
        return "info";
    }
    match word.to_ascii_lowercase().as_str() {
        "error" | "err" | "fatal" | "critical" | "panic" => "error",
        "warning" | "warn" => "warning",
        "debug" | "trace" => "debug",
        _ => "info",
    }
}

/// The end of a program with this output, which may still have instructions to the platform.
pub(super) fn accept(output: Box<RawValue>, usable: bool) -> Execution {
    Execution::Output { output, metadata: Map::new(), usable }
}

pub(super) fn invalid_json(message: &str, output: &[u8], redactor: &Redactor) -> Execution {
    let shown: String = redactor.text(&String::from_utf8_lossy(output)).chars().take(SHOWN_CHARS).collect();
    Execution::failed(FailureKind::Agent, format!("Invalid JSON output from process: {message}\nstdout: {shown}"))
}

pub(super) fn too_large(output_bytes_max: usize) -> Execution {
    Execution::failed(FailureKind::Agent, format!("Process printed more than {output_bytes_max} bytes"))
}

/// The document that the agent reads: `{"input", "context"}`, and `"memory"` and `"knowledge"` if its contract enables them.
pub(super) fn document(work: &Work, known: &Known) -> Vec<u8> {
    let chain: Map<String, Value> =
        work.context.as_deref().and_then(|context| serde_json::from_slice(context).ok()).unwrap_or_default();
    let mut context = json!({"job_id": work.assignment.job.to_string(), "chain_name": "", "step_index": -1});
    for name in ["chain_name", "step_index"] {
        if let Some(value) = chain.get(name) {
            context[name] = value.clone();
        }
    }
    // A warm program has the variables of its first job.
    if let Some(trace) = traceparent(&work.assignment) {
        context["traceparent"] = trace.into();
    }
    let mut document = b"{\"input\": ".to_vec();
    document.extend_from_slice(&work.input);
    document.extend_from_slice(format!(", \"context\": {context}{}}}", known.members()).as_bytes());
    document
}

/// `@atlas` is this program, a relative path refers to the package, and any other name is searched in `PATH`.
fn resolve(program: &str, directory: &Path, settings: &Settings) -> OsString {
    if program == ATLAS {
        return settings.atlas_program.clone().into();
    }
    if program.contains('/') {
        return directory.join(program).into();
    }
    program.into()
}

/// The W3C trace context of the execution; none if the caller of the job gave none.
pub(super) fn traceparent(assignment: &Assignment) -> Option<String> {
    let trace = assignment.trace.as_ref()?;
    Some(format!("00-{:032x}-{:016x}-{:02x}", trace.trace_id, trace.span_id, trace.flags))
}

/// The variables of the operator's allow-list and those of this attempt. No other variables of the worker are included.
pub(super) fn environment(work: &Work, settings: &Settings) -> Vec<(OsString, OsString)> {
    let assignment = &work.assignment;
    let mut environment = settings.environment.clone();
    let mut set = |name: &str, value: String| environment.push((name.into(), value.into()));
    set("ATLAS_JOB_ID", assignment.job.to_string());
    set("ATLAS_AGENT", assignment.agent.to_string());
    set("ATLAS_AGENT_VERSION", assignment.version.to_string());
    set("ATLAS_ATTEMPT", assignment.attempt.to_string());
    if let Some(trace) = traceparent(assignment) {
        set("TRACEPARENT", trace);
    }
    if settings.unchecked {
        return environment;
    }
    let device = |share: &GpuShare| settings.slices.get(&share.index).cloned().unwrap_or(share.index.to_string());
    let gpus: Vec<String> = assignment.allocation.gpus.iter().map(device).collect();
    // An empty value hides all GPUs from a job without GPUs.
    set("CUDA_VISIBLE_DEVICES", gpus.join(","));
    environment
}

#[cfg(test)]
mod tests {
    use super::level_of;

    #[test]
    fn a_line_on_stderr_says_its_level_itself() {
        for (line, level) in [
            ("3 files read", "info"),
            ("error: no such file", "error"),
            ("ERROR no such file", "error"),
            ("[ERROR] x", "error"),
            ("2026-01-02T03:04:05Z  WARN low on space", "warning"),
            ("2026-01-02 03:04:05 ERROR x", "error"),
            ("Warning: x", "warning"),
            ("DEBUG x", "debug"),
            ("Error handling is set up", "info"),
            ("errors: 0", "info"),
            ("", "info"),
        ] {
            assert_eq!(level_of(line), level, "{line}");
        }
    }
}
