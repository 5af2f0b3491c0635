//! Python agents: one host process per slot, framed JSON over two separate pipes.
//!
//! The agent's stdout and stderr become log lines. The host flushes both before it answers, so that the
//! lines of an attempt are in the pipes when its answer arrives.

mod frame;
mod model;

use std::io::{self, PipeReader};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_types::{FailureKind, StreamKind};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::frame::{Frame, JobContext, Kind, level, spawn_call};
use self::model::{Calls, News, offered};
use super::exec::environment;
use super::io_loop::{ReadResult, Ready, Sink, Source, Wait, Woken};
use super::round::caller::pass;
use super::{Execution, Settings, StartError, elsewhere, explained, seconds};
use crate::agent::Agent;
use crate::attempt::Work;
use crate::cgroup::Breach;
use crate::folder::OwnDirectory;
use crate::mailbox::Answer;
use crate::process::{Change, Spawn, Supervisor, Tree};
use crate::provider::{Control, Shared};
use crate::sandbox::Unconfined;
use crate::secrets::Secrets;
use crate::texts::Lines;

/// The size of a frame in addition to the output itself.
const FRAME_BYTES_EXTRA: usize = 1 << 20;

/// A host process with its agent.
pub(crate) struct PythonProgram {
    host: Host,
    /// The processes that the agent keeps for its next job, as it said with its latest answer.
    keeps: Vec<i32>,
    settings: Arc<Settings>,
    shared: Shared,
}

/// Why there is no answer.
enum Silence {
    TimedOut,
    Stopped,
    /// The host was not started, because it could not be confined.
    Unconfined(String),
    /// The host ended or violated the protocol.
    Broken(String),
}

impl PythonProgram {
    pub(super) async fn start(
        work: &Arc<Work>,
        shared: &Shared,
        control: &mut Control<'_>,
    ) -> Result<Self, StartError> {
        let settings = Arc::clone(&shared.settings);
        let contract = &work.agent.contract;
        let agent = || contract.name.to_string();
        if !work.agent.directory.join("agent.py").is_file() {
            let why = "the package has no agent.py".to_owned();
            return Err(StartError::NoImplementation { agent: agent(), why });
        }
        let (job, supervisor, chosen) = (Arc::clone(work), Arc::clone(&shared.supervisor), Arc::clone(&settings));
        // Runs on a blocking thread, because finding the interpreter and forking would delay other tasks of the
        // runtime.
        let host =
            shared.env.spawn_blocking("start host", move || Host::spawn(&job, &supervisor, &chosen)).join().await;
        let host = host.unwrap_or_else(|_| Err(HostError::Spawn(io::ErrorKind::Interrupted.into())));
        let host = host.map_err(|error| match error {
            HostError::NoPython(why) => StartError::NodeLacks(why),
            HostError::Spawn(source) => StartError::Spawn { agent: agent(), source },
            HostError::Unconfined(unconfined) => StartError::Unconfined(unconfined.to_string()),
        })?;
        let mut program = Self { host, keeps: Vec::new(), settings, shared: shared.clone() };
        let directory = program.host.directory.display().to_string();
        let model = offered(work, shared);
        program.host.send(&json!({
            "type": "start",
            "contract": contract.to_json(),
            "directory": directory,
            "model": model.as_ref().ok(),
            "no_model": model.as_ref().err(),
        }));
        // The contract's timeout applies. Without one, the cluster's limit applies, or the worker's if it is shorter.
        let granted = work.assignment.startup_timeout;
        let own = program.settings.warmup_timeout.filter(|_| contract.startup_timeout.is_none());
        let limit = own.map_or(granted, |own| own.min(granted));
        let mut wait = Wait::until(control.now() + limit.as_duration());
        let mut calls = Calls::new(work, shared);
        let answer = program.host.answer(&mut wait, control, &mut calls, program.settings.output_bytes_max).await;
        let frame = match answer {
            Ok(frame) => frame,
            Err(Silence::TimedOut) => return Err(StartError::TimedOut { agent: agent(), limit: seconds(limit) }),
            Err(Silence::Stopped) => return Err(StartError::Stopped),
            Err(Silence::Unconfined(why)) => return Err(StartError::Unconfined(why)),
            Err(Silence::Broken(why)) => {
                return Err(match program.host.tree.breach() {
                    Some(Breach { code, text, .. }) => StartError::Exceeded { code, text: explained(&why, &text) },
                    None => StartError::Raised(why),
                });
            }
        };
        match frame.kind {
            Kind::Ready => {
                program.host.tree.settle();
                Ok(program)
            }
            Kind::Failed if frame.stage == "load" => {
                Err(StartError::NoImplementation { agent: agent(), why: frame.error })
            }
            Kind::Failed if frame.stage == "import" => Err(StartError::Import(frame.error)),
            _ => Err(StartError::Raised(frame.error)),
        }
    }

    pub(super) async fn execute(&mut self, work: &Arc<Work>, control: &mut Control<'_>) -> Execution {
        let mut calls = Calls::new(work, &self.shared);
        self.host.run(work, &offered(work, &self.shared), &control.secrets, control.env);
        let limit = work.assignment.execution_timeout;
        let mut wait = Wait::until(control.now() + limit.as_duration());
        let answer = self.host.answer(&mut wait, control, &mut calls, self.settings.output_bytes_max).await;
        calls.finish(control).await;
        let mut frame = match answer {
            Ok(frame) => frame,
            Err(Silence::TimedOut) => return Execution::timed_out(limit),
            Err(Silence::Stopped) => return Execution::stopped(),
            // Told by the first answer, which is that to the start.
            Err(Silence::Unconfined(why)) => return Execution::unconfined(why),
            Err(Silence::Broken(why)) => return Execution::failed(FailureKind::Agent, why),
        };
        self.keeps = std::mem::take(&mut frame.keeps);
        frame.execution_metadata.extend(calls.measured());
        match frame.kind {
            Kind::Result => Execution::Output {
                // An agent that returns nothing returns null.
                output: frame.output.unwrap_or_else(|| RawValue::NULL.to_owned()),
                metadata: frame.execution_metadata,
                usable: !wait.stopping() && !self.host.strayed,
            },
            _ => match Execution::failed(FailureKind::Agent, frame.error) {
                Execution::Failed { failure, usable, .. } => {
                    Execution::Failed { failure, metadata: frame.execution_metadata, usable }
                }
                other => other,
            },
        }
    }

    /// The processes that the agent keeps for its next job.
    pub(super) fn keeps(&self) -> &[i32] {
        &self.keeps
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.host.tree
    }

    pub(super) fn tree_mut(&mut self) -> &mut Tree {
        &mut self.host.tree
    }

    pub(super) async fn stop(&mut self, env: &Env) {
        let patience = self.settings.shutdown_timeout;
        self.host.stop(env, patience).await;
    }
}

enum HostError {
    NoPython(String),
    Spawn(io::Error),
    Unconfined(Unconfined),
}

impl From<Unconfined> for HostError {
    fn from(unconfined: Unconfined) -> Self {
        Self::Unconfined(unconfined)
    }
}

impl From<io::Error> for HostError {
    fn from(error: io::Error) -> Self {
        Self::Spawn(error)
    }
}

/// The folder with an interpreter's libraries: that above its folder `bin`.
fn root_of(program: &Path) -> &Path {
    program.parent().and_then(Path::parent).unwrap_or(program)
}

struct Host {
    tree: Tree,
    /// Where it runs: its package, or a copy.
    directory: PathBuf,
    /// Keeps the package in the cache while its program runs.
    _agent: Arc<Agent>,
    to_host: Sink,
    from_host: Source,
    frames: Vec<u8>,
    /// The number of the current run. It is random, so that a process forked in an earlier run cannot guess it. Before
    /// the first run it is the number of the start.
    run: u64,
    /// True if an answer arrived for another run. The current job keeps its own answer, and the next job gets another
    /// host.
    strayed: bool,
    stdout: Printed,
    stderr: Printed,
}

/// A stream of printed lines.
struct Printed {
    source: Source,
    lines: Lines,
    level: &'static str,
}

impl Printed {
    fn new(pipe: PipeReader, level: &'static str) -> io::Result<Self> {
        Ok(Self { source: Source::new(pipe)?, lines: Lines::default(), level })
    }

    /// Passes on available lines, up to a limit, so that a flood of lines does not delay the answer or the deadline.
    async fn read(&mut self, control: &mut Control<'_>) {
        let mut bytes = Vec::new();
        for _ in 0..8 {
            if !matches!(self.source.read(&mut bytes), ReadResult::Bytes(n) if n == 64 << 10) {
                break;
            }
        }
        if !bytes.is_empty() && control.listens() {
            for line in self.lines.push(&bytes) {
                control.say(StreamKind::Log, self.level, line).await;
            }
        }
    }

    async fn finish(&mut self, control: &mut Control<'_>) {
        self.read(control).await;
        if let Some(line) = self.lines.finish() {
            control.say(StreamKind::Log, self.level, line).await;
        }
    }
}

impl Host {
    fn spawn(work: &Work, supervisor: &Supervisor, settings: &Settings) -> Result<Self, HostError> {
        let program = match work.agent.python.get() {
            Some(own) => &own.python,
            None => &settings.python.get().map_err(|why| HostError::NoPython(why.to_owned()))?.program,
        };
        let contract = &work.agent.contract;
        // An environment's interpreter is a link to that of the machine, which has the standard library.
        let linked = program.canonicalize().unwrap_or_else(|_| program.clone());
        let own = [settings.sdk.as_path(), root_of(program), root_of(&linked)];
        let package = work.agent.directory.as_path();
        let own_directory = settings.sandboxes.own_directory(contract, package)?;
        let directory = own_directory.as_ref().map_or(package, OwnDirectory::path).to_owned();
        let sandbox = settings.sandboxes.of(contract, &directory, &own, &[])?;
        let (host_reads, we_write) = io::pipe()?;
        let (we_read, host_writes) = io::pipe()?;
        let (stdout, host_stdout) = io::pipe()?;
        let (stderr, host_stderr) = io::pipe()?;
        let fds = [host_reads.as_raw_fd().to_string(), host_writes.as_raw_fd().to_string()];
        let mut environment = environment(work, settings);
        environment.push(("PYTHONPATH".into(), settings.sdk.clone().into()));
        // The working directory is the package. `-P` keeps it from preceding the standard library while the host loads.
        let arguments = ["-P", "-m", "atlas._host"].iter().map(Into::into).chain(fds.map(Into::into)).collect();
        let tree = supervisor.spawn(Spawn {
            program: program.clone().into(),
            arguments,
            directory: &directory,
            environment,
            stdin: Stdio::null(),
            stdout: host_stdout.into(),
            stderr: host_stderr.into(),
            passed: vec![OwnedFd::from(host_reads), OwnedFd::from(host_writes)],
            limits: work.agent.limits(),
            sandbox,
            own_directory,
            makes_code: false,
            leased: true,
            shares_pids: false,
            after: Vec::new(),
        })?;
        Ok(Self {
            tree,
            directory,
            _agent: Arc::clone(&work.agent),
            to_host: Sink::new(we_write)?,
            from_host: Source::new(we_read)?,
            frames: Vec::new(),
            run: 0,
            strayed: false,
            stdout: Printed::new(stdout, "info")?,
            stderr: Printed::new(stderr, "error")?,
        })
    }

    fn send(&mut self, frame: &Value) {
        let body = frame.to_string();
        self.send_body(body.as_bytes());
    }

    fn run(&mut self, work: &Work, model: &Result<String, String>, secrets: &Secrets, env: &Env) {
        // It is plain data, so it can be written.
        let mut context = serde_json::to_string(&JobContext::of(work, model)).unwrap_or_default();
        if let Some(chain) = work.context.as_deref().and_then(|chain| std::str::from_utf8(chain).ok()) {
            // Its members are none of those above.
            let members = chain.trim().strip_prefix('{').and_then(|chain| chain.strip_suffix('}')).unwrap_or_default();
            if !members.trim().is_empty() {
                context.pop();
                context.push_str(&format!(", {members}}}"));
            }
        }
        if let Some(secrets) = secrets.json() {
            context.pop();
            context.push_str(&format!(", \"secrets\": {secrets}}}"));
        }
        let mut body = b"{\"type\": \"run\", \"input\": ".to_vec();
        body.extend_from_slice(&work.input);
        self.run = env.entropy.u64();
        body.extend_from_slice(format!(", \"number\": {}, \"context\": {context}}}", self.run).as_bytes());
        self.send_body(&body);
    }

    /// Sends the run the result of a job that it spawned.
    fn tell(&mut self, call: u64, answer: Answer) {
        let (word, value) = match answer {
            Answer::Completed(output) => ("data", output.to_vec()),
            Answer::Failed(error) => ("error", json!(error).to_string().into_bytes()),
            Answer::Refused(why) => ("refused", json!(why).to_string().into_bytes()),
        };
        let mut body = format!("{{\"type\": \"spawned\", \"call\": {call}, \"{word}\": ").into_bytes();
        body.extend_from_slice(&value);
        body.push(b'}');
        self.send_body(&body);
    }

    fn send_body(&mut self, body: &[u8]) {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let mut frame = length.to_be_bytes().to_vec();
        frame.extend_from_slice(body);
        self.to_host.send(&frame);
    }

    /// Waits for the answer to the current run or to the start.
    async fn answer(
        &mut self,
        wait: &mut Wait,
        control: &mut Control<'_>,
        calls: &mut Calls,
        output_bytes_max: usize,
    ) -> Result<Frame, Silence> {
        loop {
            let pipes: [&dyn Ready; 4] = [&self.to_host, &self.from_host, &self.stdout.source, &self.stderr.source];
            let woken = tokio::select! {
                biased;
                woken = wait.next(control, &mut self.tree, pipes) => woken,
                news = calls.next() => {
                    match news {
                        News::Told(told) => pass(control, told).await,
                        News::Answered(call, answer) => self.tell(call, answer),
                    }
                    continue;
                }
            };
            match woken {
                Woken::Io { pipes: [to_host, from_host, stdout, stderr], tree } => {
                    if to_host {
                        self.to_host.flush();
                    }
                    if stdout {
                        self.stdout.read(control).await;
                    }
                    if stderr {
                        self.stderr.read(control).await;
                    }
                    let change = tree.then(|| self.tree.change()).flatten();
                    // Frames that the host sent before its end are read first.
                    while from_host || change.is_some() {
                        let found = self.from_host.read(&mut self.frames);
                        match self.take_answer(control, calls, output_bytes_max).await {
                            Ok(Some(answer)) => {
                                self.stdout.finish(control).await;
                                self.stderr.finish(control).await;
                                return Ok(answer);
                            }
                            Ok(None) if change.is_some() && matches!(found, ReadResult::Bytes(_)) => {}
                            Ok(None) => break,
                            Err(why) => {
                                self.tree.kill().await;
                                return Err(Silence::Broken(why));
                            }
                        }
                    }
                    if let Some(Change::NotConfined(refused)) = change {
                        return Err(Silence::Unconfined(refused.to_string()));
                    }
                    if let Some(change) = change {
                        return Err(Silence::Broken(self.epitaph(change, control).await));
                    }
                }
                Woken::Answered => {
                    for (call, answer) in control.answers() {
                        self.tell(call, answer);
                    }
                }
                Woken::TimedOut => {
                    self.stdout.finish(control).await;
                    self.stderr.finish(control).await;
                    return Err(Silence::TimedOut);
                }
                Woken::Stopped => return Err(Silence::Stopped),
            }
        }
    }

    /// Reads complete frames from the buffer: passes on intermediate frames and returns the answer.
    async fn take_answer(
        &mut self,
        control: &mut Control<'_>,
        calls: &mut Calls,
        output_bytes_max: usize,
    ) -> Result<Option<Frame>, String> {
        while let Some(header) = self.frames.first_chunk::<4>() {
            let length = u32::from_be_bytes(*header) as usize;
            if length > output_bytes_max + FRAME_BYTES_EXTRA {
                return Err(format!("the agent's output has more than {output_bytes_max} bytes"));
            }
            if self.frames.len() < 4 + length {
                return Ok(None);
            }
            let rest = self.frames.split_off(4 + length);
            let body = std::mem::replace(&mut self.frames, rest);
            let frame = elsewhere(control.env, length, move || serde_json::from_slice::<Frame>(&body[4..]).ok()).await;
            let frame = frame.flatten().ok_or("the agent's host sent a malformed frame")?;
            match frame.kind {
                Kind::Log => control.say(StreamKind::Log, level(&frame.level), frame.text).await,
                Kind::Progress => control.say(StreamKind::Progress, "", frame.text).await,
                Kind::Delta if frame.number == self.run => {
                    control.delta((frame.step, frame.try_number), frame.text).await;
                }
                // A process that was forked during a job may also send an answer.
                _ if frame.number != self.run => self.strayed = true,
                Kind::Tool => {
                    let input = frame.input.unwrap_or_else(|| RawValue::NULL.to_owned());
                    control.tool(frame.call, frame.tool, Box::<str>::from(input).into_boxed_bytes().into()).await;
                }
                Kind::Model => calls.ask(frame.call, frame.input, control).await,
                Kind::Spawn => control.spawn(spawn_call(frame)).await,
                Kind::Leave => control.leave(frame.call).await,
                _ => return Ok(Some(frame)),
            }
        }
        Ok(None)
    }

    /// The error text for a host that ended instead of answering.
    async fn epitaph(&mut self, change: Change, control: &mut Control<'_>) -> String {
        self.tree.kill().await;
        self.stdout.finish(control).await;
        self.stderr.finish(control).await;
        match change {
            Change::NotStarted { errno } => {
                format!("could not start Python: {}", nix::errno::Errno::from_raw(errno).desc())
            }
            Change::NotConfined(refused) => refused.to_string(),
            Change::Exited(status) => match status.code() {
                Some(code) => format!("Agent process exited with code {code} before it answered"),
                None => format!("Agent process was ended by a signal before it answered ({status})"),
            },
        }
    }

    /// Runs `on_shutdown` for at most `patience`, then kills the host.
    async fn stop(&mut self, env: &Env, patience: Duration) {
        self.send(&json!({"type": "shutdown"}));
        let until = env.clock.monotonic() + patience;
        let mut unread = Vec::new();
        while self.tree.change().is_none() {
            // Output at this point belongs to no attempt, but must be read so that the host can end.
            for source in [&mut self.from_host, &mut self.stdout.source, &mut self.stderr.source] {
                source.read(&mut unread);
            }
            unread.clear();
            let now = env.clock.monotonic();
            if now >= until {
                break;
            }
            self.tree.wait_for_change((until - now).min(Duration::from_millis(100))).await;
        }
        self.tree.kill().await;
    }
}
