//! The process of a host: its frames, and what it prints.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_types::StreamKind;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::calls::{Calls, News};
use super::frame::{Beginning, Frame, JobContext, Kind, level, spawn_call};
use super::printed::Printed;
use super::{HostStart, Silence};
use crate::agent::Agent;
use crate::attempt::Work;
use crate::folder::OwnDirectory;
use crate::journal::JournalError;
use crate::mailbox::Answer;
use crate::process::{Change, Spawn, Supervisor, Tree};
use crate::provider::durable::{Said, SaidKind};
use crate::provider::exec::environment;
use crate::provider::io_loop::{ReadResult, Ready, Sink, Source, Wait, Woken};
use crate::provider::round::caller::pass;
use crate::provider::{Control, Settings, elsewhere};
use crate::sandbox::Unconfined;
use crate::secrets::Secrets;

/// The size of a frame in addition to the output itself.
pub(super) const FRAME_BYTES_EXTRA: usize = 1 << 20;

/// Why a host did not start.
pub(super) enum HostError {
    Lacks(String),
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

/// A host process.
pub(super) struct Host {
    pub(super) tree: Tree,
    language: &'static str,
    /// Where it runs: its package, or a copy.
    pub(super) directory: PathBuf,
    /// Keeps the package in the cache while its program runs.
    _agent: Arc<Agent>,
    pub(super) to_host: Sink,
    pub(super) from_host: Source,
    pub(super) frames: Vec<u8>,
    /// The number of the current run. It is random, so that a process forked in an earlier run cannot guess it. Before
    /// the first run it is the number of the start.
    pub(super) run: u64,
    /// True if an answer arrived for another run. The current job keeps its own answer, and the next job gets another
    /// host.
    pub(super) strayed: bool,
    pub(super) stdout: Printed,
    pub(super) stderr: Printed,
}

impl Host {
    pub(super) fn spawn(
        start: HostStart,
        work: &Work,
        supervisor: &Supervisor,
        settings: &Settings,
    ) -> Result<Self, HostError> {
        let contract = &work.agent.contract;
        let own: Vec<&Path> = start.own.iter().map(PathBuf::as_path).collect();
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
        environment.extend(start.environment);
        let arguments = start.arguments.into_iter().chain(fds.map(Into::into)).collect();
        let tree = supervisor.spawn(Spawn {
            program: start.program,
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
            language: start.language,
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

    pub(super) fn send(&mut self, frame: &Value) {
        let body = frame.to_string();
        self.send_body(body.as_bytes());
    }

    /// Begins a run. `beginning` has more members of the frame.
    pub(super) fn run(
        &mut self,
        work: &Work,
        (model, beginning): (&Result<String, String>, &str),
        secrets: &Secrets,
        env: &Env,
    ) {
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
        // JavaScript's numbers have no more bits.
        self.run = env.entropy.u64() >> 11;
        body.extend_from_slice(format!(", \"number\": {}, \"context\": {context}{beginning}}}", self.run).as_bytes());
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

    pub(super) fn send_body(&mut self, body: &[u8]) {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let mut frame = length.to_be_bytes().to_vec();
        frame.extend_from_slice(body);
        self.to_host.send(&frame);
    }

    /// Waits for the answer to the current run or to the start.
    pub(super) async fn answer(
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
                        News::Called(called) => self.send_body(called.frame().as_bytes()),
                        // The order to stop is on its way.
                        News::Failed(JournalError::Stopped) => {}
                        News::Failed(error) => return Err(Silence::Fault(error.into())),
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
                Woken::Parked => return Err(Silence::Parked),
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
            if let Some(durable) = &mut calls.durable
                && let (Some(kind), number) = about_a_call(&body[4..])?
            {
                match Said::read(kind, &body[4..]) {
                    // A process that was forked during a job may also make calls.
                    _ if number != self.run => self.strayed = true,
                    Ok(said) => durable.take(said),
                    Err(error) => return Err(format!("the agent's host sent a malformed frame: {error}")),
                }
                continue;
            }
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
                    let input = frame.input.map_or_else(|| RawValue::NULL.get().into(), Box::<str>::from);
                    let (input, kept) = calls.of_tool(&frame.tool, input, control.secrets.redactor());
                    control.tool(frame.call, frame.tool, input.into_boxed_bytes().into(), kept).await;
                }
                Kind::Model => calls.ask(frame.call, frame.input, control).await,
                Kind::Spawn => control.spawn(spawn_call(frame)).await,
                Kind::Leave => control.leave(frame.call).await,
                // Nothing of a program that is not durable, and of one whose job runs.
                Kind::Call | Kind::Made | Kind::Forget | Kind::Left => {}
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
                format!("could not start {}: {}", self.language, nix::errno::Errno::from_raw(errno).desc())
            }
            Change::NotConfined(refused) => refused.to_string(),
            Change::Exited(status) => match status.code() {
                Some(code) => format!("Agent process exited with code {code} before it answered"),
                None => format!("Agent process was ended by a signal before it answered ({status})"),
            },
        }
    }

    /// Runs `on_shutdown` for at most `patience`, then kills the host.
    pub(super) async fn stop(&mut self, env: &Env, patience: Duration) {
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

/// Whether a frame of a durable program is about a call, and the number of its run.
fn about_a_call(body: &[u8]) -> Result<(Option<SaidKind>, u64), String> {
    let beginning = serde_json::from_slice(body).map_err(|_| "the agent's host sent a malformed frame".to_owned());
    let Beginning { kind, number } = beginning?;
    let about = match kind {
        Kind::Call => Some(SaidKind::Call),
        Kind::Made => Some(SaidKind::Made),
        Kind::Forget => Some(SaidKind::Forget),
        _ => None,
    };
    Ok((about, number))
}
