//! Providers: how an agent's program is started, given a job and stopped. One file per kind.
//!
//! Providers run on the task of a slot and share its runtime with the pump and the link: slow work, such as a fork or
//! reading a large answer, runs on other threads.

mod collect;
mod command;
mod container;
mod durable;
mod exec;
mod graph;
mod host;
mod inside;
mod io_loop;
pub(crate) mod json_text;
mod library;
mod llm;
mod login;
mod mcp;
mod nodejs;
mod platform;
mod program_model;
mod python;
mod round;
mod shared;
mod special;
mod user;
mod warm_exec;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use atlas_contract::{ExecMode, ProviderKind, Replay};
use atlas_documents::VectorCache;
use atlas_env::Env;
use atlas_secrets::Redactor;
use atlas_turn::Outcome;
use atlas_types::{Failure, FailureKind, Micros, StreamKind};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub(crate) use self::collect::Collection;
pub(crate) use self::container::Containers;
use self::llm::fault::Fault;
pub(crate) use self::llm::preflight;
pub(crate) use self::mcp::Programs;
pub(crate) use self::shared::{Control, Shared};
use crate::attempt::Work;
use crate::cgroup::Breach;
use crate::inside::Inside;
use crate::interpreter::Finder;
use crate::journal::JournalError;
use crate::mailbox::Mailbox;
use crate::model_environment::ModelEnvironment;
use crate::nodejs::NodeJs;
use crate::process::Tree;
use crate::python::Python;
use crate::sandbox::Sandboxes;
use crate::secrets::SecretSources;
use crate::texts::bounded;

/// The name of this program in a command.
const ATLAS: &str = "@atlas";

/// The code for an agent whose processes could not be confined.
const UNCONFINED: &str = "E3106";

/// The error text for a program that failed without a message.
const UNKNOWN: &str = "unknown error";

/// Settings of all providers.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The largest output of one job.
    pub(crate) output_bytes_max: usize,
    /// How much of a process's stderr is kept for its error text.
    pub(crate) stderr_bytes_max: usize,
    /// The most bytes of log lines of one attempt.
    pub(crate) log_bytes_max: usize,
    /// How long `on_shutdown` may take.
    pub(crate) shutdown_timeout: Duration,
    /// The start timeout for agents whose contract has none, if it is shorter than the cluster's.
    pub(crate) warmup_timeout: Option<Micros>,
    pub(crate) atlas_program: PathBuf,
    /// Finds the interpreter, once.
    pub(crate) python: Finder<Python>,
    /// Finds Node.js, once.
    pub(crate) nodejs: Finder<NodeJs>,
    /// The directory of our unpacked Python package.
    pub(crate) sdk: PathBuf,
    /// The environment that every agent gets.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The environment in which agents' Python packages are installed.
    pub(crate) pip_environment: Vec<(OsString, OsString)>,
    /// True if the operator declared the hardware. Jobs then report the hardware that they held.
    pub(crate) declared: bool,
    /// True if hardware is not checked. Jobs then hold no GPU and see all of them.
    pub(crate) unchecked: bool,
    /// The unique ids of GPU slices by their inventory index.
    pub(crate) slices: BTreeMap<u32, String>,
    /// How agents are confined.
    pub(crate) sandboxes: Sandboxes,
    /// How agents run in containers.
    pub(crate) containers: Containers,
    /// Where values of secrets are, apart from leases.
    pub(crate) secrets: SecretSources,
    /// Serves agents inside this process.
    pub(crate) inside: Option<Inside>,
    /// The models of the worker's environment.
    pub(crate) models: ModelEnvironment,
    /// Vectors of documents, kept between jobs.
    pub(crate) vectors: Arc<VectorCache>,
}

/// A started program in its slot.
pub(crate) enum Program {
    /// One process per job: there is no process between jobs, and the slot ends with the job.
    Exec(Box<exec::Exec>),
    /// A container per job. Its slot ends with the job.
    Container(Box<container::ContainerAgent>),
    /// A process that serves many jobs, one after the other.
    Warm(Box<warm_exec::WarmExec>),
    /// A host process with its agent.
    Host(Box<host::HostProgram>),
    /// An agent that is a function of this process. Its slot ends with the job.
    Inside(Box<inside::InsideAgent>),
    /// A model in a loop of tools. Its slot ends with the job.
    Llm(Box<llm::LlmAgent>),
    /// A graph. Its slot ends with the job.
    Graph(Box<graph::GraphAgent>),
    /// A call of an MCP server. Its slot ends with the job.
    Mcp(Box<mcp::McpAgent>),
    /// Reads sources of document bases. Its slot ends with the job.
    Collect(Box<collect::CollectAgent>),
}

impl Program {
    /// Runs one job. Returns within the job's time limit, or soon after a requested stop.
    pub(crate) async fn execute(&mut self, work: &Arc<Work>, control: &mut Control<'_>) -> Execution {
        if let Some(tree) = self.tree() {
            control.limits = tree.enforced().text();
            control.sandbox = tree.confined().map(str::to_owned);
        }
        let (execution, tree) = match self {
            Self::Exec(program) => return program.execute(work, control).await,
            Self::Container(agent) => return agent.execute(work, control).await,
            Self::Inside(agent) => return agent.execute(work, control).await,
            Self::Llm(agent) => return agent.execute(work, control).await,
            Self::Graph(agent) => return agent.execute(work, control).await,
            Self::Mcp(agent) => return agent.execute(work, control).await,
            Self::Collect(agent) => return agent.execute(work, control).await,
            Self::Warm(program) => {
                program.tree_mut().begin_attempt().await;
                (program.execute(work, control).await, program.tree_mut())
            }
            Self::Host(program) => {
                program.tree_mut().begin_attempt().await;
                (program.execute(work, control).await, program.tree_mut())
            }
        };
        // What came after the last look counts as well.
        tree.look().await;
        let breach = tree.breach();
        execution.explained(breach, control).await
    }

    /// How an attempt was confined: `text` is how its process was.
    pub(crate) fn confinement(&self, text: Option<String>, work: &Work) -> Option<String> {
        if !work.agent.contract.needs_container() || matches!(self, Self::Container(_)) {
            return text;
        }
        let missing = "not enforced: container";
        Some(text.map_or_else(|| missing.to_owned(), |text| format!("{text}; {missing}")))
    }

    /// The limits of an attempt: `text` is how those of its process were enforced.
    pub(crate) fn limits(text: Option<String>, work: &Work) -> Option<String> {
        let all: Vec<String> = text.into_iter().chain(mcp::unlimited(work)).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// False if its process exists only while a job runs.
    pub(crate) fn outlives_job(&self) -> bool {
        !matches!(
            self,
            Self::Exec(_)
                | Self::Container(_)
                | Self::Inside(_)
                | Self::Llm(_)
                | Self::Graph(_)
                | Self::Mcp(_)
                | Self::Collect(_)
        )
    }

    /// True if the idle program has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.tree().is_some_and(Tree::has_changed)
    }

    /// True if the idle program may have ended. Otherwise the task is woken when it ends.
    pub(crate) fn poll_ended(&self, cx: &mut Context<'_>) -> bool {
        self.tree().is_some_and(|tree| tree.poll_changed(cx))
    }

    /// Sets whether an attempt runs in the program.
    pub(crate) fn set_busy(&self, busy: bool) {
        if let Some(tree) = self.tree() {
            tree.set_busy(busy);
        }
    }

    /// Kills processes that a job left running in a program that continues, and logs them.
    pub(crate) async fn end_others(&self, control: &mut Control<'_>) {
        let Some(tree) = self.tree() else { return };
        let keeps = if let Self::Host(program) = self { program.keeps() } else { &[] };
        for process in tree.end_others(keeps).await {
            let text =
                format!("killed a process that the job left running: {} (process {})", process.name, process.pid);
            control.say(StreamKind::Log, "warning", text).await;
        }
    }

    /// Stops the program, gracefully at first.
    pub(crate) async fn stop(mut self, env: &Env) {
        match &mut self {
            Self::Exec(_)
            | Self::Container(_)
            | Self::Inside(_)
            | Self::Llm(_)
            | Self::Graph(_)
            | Self::Mcp(_)
            | Self::Collect(_) => {}
            Self::Warm(program) => program.stop(env).await,
            Self::Host(program) => program.stop(env).await,
        }
    }

    fn tree(&self) -> Option<&Tree> {
        match self {
            Self::Exec(_)
            | Self::Container(_)
            | Self::Inside(_)
            | Self::Llm(_)
            | Self::Graph(_)
            | Self::Mcp(_)
            | Self::Collect(_) => None,
            Self::Warm(program) => Some(program.tree()),
            Self::Host(program) => Some(program.tree()),
        }
    }
}

/// How `execute` ended.
#[derive(Debug)]
pub(crate) enum Execution {
    /// With an output that is not validated yet.
    Output {
        output: Box<RawValue>,
        /// The agent's measurements.
        metadata: Map<String, Value>,
        /// The program can serve another job.
        usable: bool,
    },
    /// With a failure.
    Failed {
        failure: Failure,
        metadata: Map<String, Value>,
        /// The program can serve another job.
        usable: bool,
    },
}

impl Execution {
    /// True if the program can serve another job.
    pub(crate) fn usable(&self) -> bool {
        matches!(self, Self::Output { usable: true, .. } | Self::Failed { usable: true, .. })
    }

    /// A failure after which the slot is destroyed.
    fn failed(kind: FailureKind, error: impl Into<String>) -> Self {
        let failure = Failure { kind, error: bounded(error.into()).into() };
        Self::Failed { failure, metadata: Map::new(), usable: false }
    }

    /// Adds the limit that the attempt reached to the failure. An attempt that ended well all the same fails, or has a line in its log if the
    /// limit was kept by ending a part of it.
    async fn explained(mut self, breach: Option<Breach>, control: &mut Control<'_>) -> Self {
        let Some(Breach { code, text, is_end }) = breach else { return self };
        if matches!(self, Self::Output { .. }) {
            if !is_end {
                control.say(StreamKind::Log, "warning", text).await;
                return self;
            }
            self = Self::failed(FailureKind::Agent, text);
        } else if let Self::Failed { failure, usable, .. } = &mut self {
            failure.error = explained(&failure.error, &text).into();
            *usable &= !is_end;
        }
        let (Self::Output { metadata, .. } | Self::Failed { metadata, .. }) = &mut self;
        metadata.insert("_error_code".to_owned(), code.into());
        self
    }

    /// The program was not started, because it could not be confined.
    fn unconfined(why: impl fmt::Display) -> Self {
        let code = Map::from_iter([("_error_code".to_owned(), UNCONFINED.into())]);
        Self::failed(FailureKind::Internal, format!("the agent was not started: {why}")).measured(code)
    }

    /// The execution took too long.
    fn timed_out(limit: Micros) -> Self {
        Self::failed(FailureKind::Timeout, format!("Execution timed out after {}s", seconds(limit)))
    }

    /// The execution with the agent's measurements.
    fn measured(mut self, measured: Map<String, Value>) -> Self {
        let (Self::Output { metadata, .. } | Self::Failed { metadata, .. }) = &mut self;
        *metadata = measured;
        self
    }

    /// A fault of the worker's part in the agent's work.
    fn fault(fault: &Fault) -> Self {
        let mut metadata = Map::new();
        metadata.extend(fault.code().map(|code| ("_error_code".to_owned(), code.into())));
        metadata.extend(fault.seen().map(|seen| ("_models".to_owned(), seen)));
        Self::Failed { failure: fault.failure(), metadata, usable: false }
    }

    /// A durable program has left a part of its record out: an error if its contract says so, or else a line in its log.
    async fn left_out(work: &Work, text: String, control: &mut Control<'_>) -> Option<Self> {
        if work.agent.contract.replay == Replay::Strict {
            let error = JournalError::Program(format!("{text}; the contract says replay: strict"));
            return Some(Self::fault(&error.into()));
        }
        control.say(StreamKind::Log, "warning", text).await;
        None
    }

    /// The execution of a program that can serve another job, or not.
    fn usable_if(mut self, is_usable: bool) -> Self {
        let (Self::Output { usable, .. } | Self::Failed { usable, .. }) = &mut self;
        *usable = is_usable;
        self
    }

    /// The execution with more of the agent's measurements.
    fn also_measured(mut self, measured: Map<String, Value>) -> Self {
        let (Self::Output { metadata, .. } | Self::Failed { metadata, .. }) = &mut self;
        metadata.extend(measured);
        self
    }

    /// Reading the answer was interrupted, because the process ends.
    fn cut_short() -> Self {
        Self::failed(FailureKind::Internal, "reading the answer was interrupted")
    }

    /// The attempt was stopped. The text is visible only after an internal error.
    fn stopped() -> Self {
        Self::failed(FailureKind::Internal, "the attempt was stopped")
    }
}

/// Why a program did not start. The texts follow `Pool error: ` and are those of compatibility §7.1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The agent requires skills, and its namespace has none.
    #[error("Agent requires skills but no SkillResolver configured")]
    NoSkills,
    /// A required skill is not deployed, or has another version.
    #[error("Skill resolution failed: {0}")]
    Skill(String),
    /// No class, no `agent.py`, or an unsupported kind of agent. The text is that of Atlas for Python; the reason is in the metadata.
    #[error("Agent not found or no implementation: {agent}")]
    NoImplementation { agent: String, why: String },
    /// `agent.py` could not be imported: file, line and Python's error.
    #[error("{0}")]
    Import(String),
    #[error("Agent {agent} startup timed out ({limit}s)")]
    TimedOut { agent: String, limit: String },
    /// `on_startup` raised.
    #[error("{0}")]
    Raised(String),
    /// The operating system refused to start the process.
    #[error("could not start the process of agent {agent}")]
    Spawn { agent: String, source: std::io::Error },
    /// The node cannot run agents of this kind.
    #[error("{0}")]
    NodeLacks(String),
    /// The process cannot be confined, or could not.
    #[error("{0}")]
    Unconfined(String),
    /// The program reached a limit of its contract before its first job.
    #[error("{text}")]
    Exceeded { code: &'static str, text: String },
    #[error("the attempt was stopped while it started")]
    Stopped,
}

impl StartError {
    /// The code of the error, if it has one.
    pub(crate) fn code(&self) -> Option<&'static str> {
        match self {
            Self::Unconfined(_) => Some(UNCONFINED),
            Self::Exceeded { code, .. } => Some(code),
            _ => None,
        }
    }

    /// The reason, if the text has no place for it.
    pub(crate) fn why(&self) -> Option<&str> {
        if let Self::NoImplementation { why, .. } = self { Some(why) } else { None }
    }
}

/// Starts the program of `work`'s agent.
pub(crate) async fn start(work: &Arc<Work>, shared: &Shared, control: &mut Control<'_>) -> Result<Program, StartError> {
    let contract = &work.agent.contract;
    // An agent with a model resolves its tools when a job begins.
    if !contract.provider.kind.has_models() && contract.provider.kind != ProviderKind::Mcp {
        platform::check_skills(work, shared, control.mailbox).await?;
    }
    if let Some(agent) = inside::InsideAgent::of(work, shared) {
        return Ok(Program::Inside(Box::new(agent)));
    }
    if let Some(agent) = collect::CollectAgent::of(work, shared) {
        return Ok(Program::Collect(Box::new(agent)));
    }
    if contract.needs_container()
        && let Some(agent) = container::ContainerAgent::of(work, shared, control).await?
    {
        return Ok(Program::Container(Box::new(agent)));
    }
    if matches!(contract.provider.kind, ProviderKind::LokiAgent | ProviderKind::Graph) || mcp::has_programs(work) {
        // Their tools, scripts and MCP servers are processes that start later, some of them for a model, which must not be the one to
        // learn that they cannot be confined.
        let confined = shared.settings.sandboxes.enforced(contract);
        let confined = confined.map_err(|why| StartError::Unconfined(why.to_string()))?;
        control.sandbox = confined.map(|enforced| enforced.to_string());
    }
    match (contract.provider.kind, contract.provider.mode) {
        (ProviderKind::Python, _) => Ok(Program::Host(Box::new(python::start(work, shared, control).await?))),
        (ProviderKind::Node, _) => Ok(Program::Host(Box::new(nodejs::start(work, shared, control).await?))),
        (ProviderKind::Exec, Some(ExecMode::Warm)) => {
            Ok(Program::Warm(Box::new(warm_exec::WarmExec::start(work, shared, control).await?)))
        }
        (ProviderKind::Exec, _) => Ok(Program::Exec(Box::new(exec::Exec::new(shared)))),
        (ProviderKind::Llm | ProviderKind::LokiAgent, _) => Ok(Program::Llm(Box::new(llm::LlmAgent::new(shared)))),
        (ProviderKind::Graph, _) => Ok(Program::Graph(Box::new(graph::GraphAgent::new(shared)))),
        (ProviderKind::Mcp, _) => Ok(Program::Mcp(Box::new(mcp::McpAgent::new(shared)))),
        // No lease is granted for it.
        (ProviderKind::Chain, _) => Err(StartError::NoImplementation {
            agent: contract.name.to_string(),
            why: "a chain runs without a worker".to_owned(),
        }),
    }
}

/// Completes when the attempt must stop.
async fn stopped(mailbox: &Mailbox) {
    while mailbox.stop_asked().is_none() {
        mailbox.woken().await;
    }
}

/// Runs work whose duration depends on the number of `bytes`: on the current thread if small, otherwise on a blocking
/// thread. None if it was interrupted.
pub(crate) async fn elsewhere<T: Send + 'static>(
    env: &Env,
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    /// This much is parsed and checked in about 50 µs.
    const BYTES_AT_ONCE: usize = 8 << 10;
    if bytes <= BYTES_AT_ONCE {
        return Some(work());
    }
    env.spawn_blocking("read output", work).join().await.ok()
}

/// An outcome without values of secrets.
fn redacted(outcome: Outcome, redactor: &Redactor) -> Outcome {
    match outcome {
        Outcome::Value(mut value) => {
            redactor.json(&mut value);
            Outcome::Value(value)
        }
        Outcome::Error { kind, text } => Outcome::Error { text: redactor.text(&text).into_owned(), kind },
    }
}

/// An error with its reason.
fn explained(error: &str, why: &str) -> String {
    match error.strip_suffix(UNKNOWN) {
        Some(error) => format!("{error}{why}"),
        None => format!("{error}; {why}"),
    }
}

/// Seconds as Python prints a float: `60.0`, `0.3`.
fn seconds(duration: Micros) -> String {
    format!("{:?}", duration.0 as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_read_like_a_python_float() {
        assert_eq!(seconds(Micros::from_secs(60)), "60.0");
        assert_eq!(seconds(Micros::from_millis(300)), "0.3");
        assert_eq!(seconds(Micros(1_250_000)), "1.25");
    }
}
