//! One slot: a task that runs attempts in one agent's program, one after the other.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use atlas_env::Env;
use atlas_llm::client::Client;
use atlas_slots::{AttemptEnd, SlotId};
use atlas_types::{
    Assignment, Failure, FailureKind, FencingToken, Message, Micros, Park, ReportKind, SecretText, SpawnStep, StepKey,
    StepsResult, StreamEvent, Usage,
};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use crate::agent::{Agent, OutputFault};
use crate::journal::{Entry, hashed};
use crate::mailbox::{Answer, Mailbox, Order};
use crate::metadata;
use crate::payloads::Transfers;
use crate::process::Supervisor;
use crate::provider::{self, Execution, Lines, Program, StartError};
use crate::pump::{Asker, Resumed, TryDoor};
use crate::secrets::{Said, Secrets};

/// One attempt with all the data that it needs.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) assignment: Box<Assignment>,
    /// The input, JSON text.
    pub(crate) input: Arc<[u8]>,
    /// What the agent is told about the chain of which the job is a step, a JSON object.
    pub(crate) context: Option<Arc<[u8]>>,
    pub(crate) agent: Arc<Agent>,
}

/// An event that a slot's task reports to the pump.
#[derive(Debug)]
pub(crate) enum SlotEvent {
    /// The attempt has a stream event.
    Event { token: FencingToken, event: StreamEvent },
    /// A call of the attempt, that is a step and how often it was begun, said a piece of its answer.
    Delta { token: FencingToken, call: (u32, u32), text: String },
    /// The attempt spawns a job.
    Spawn { token: FencingToken, call: SpawnCall },
    /// The attempt calls a tool of the platform.
    Tool { token: FencingToken, call: ToolCall },
    /// The attempt no longer waits for a job that it spawned.
    Leave { token: FencingToken, call: u64 },
    /// The attempt has an entry for its journal, and waits for the answer.
    Journal { token: FencingToken, entry: Entry, answer: oneshot::Sender<StepsResult> },
    /// The attempt waits, and does nothing until it is answered. Its job may be parked meanwhile.
    /// It has waited for that time already.
    Wait { token: FencingToken, park: Park, waited: Duration, answer: oneshot::Sender<Resumed> },
    /// What the attempt waited for has come.
    WaitOver { token: FencingToken },
    /// The attempt waits for the message of a number, after it has read all before that.
    Read { token: FencingToken, number: u64, answer: oneshot::Sender<Arc<Message>> },
    /// The attempt ended. The output is still text of any length.
    Ended { token: FencingToken, end: Ended },
    /// The idle program ended on its own.
    Died { slot: SlotId },
    /// A slot's task has ended, and with it its program.
    Gone { slot: SlotId },
}

/// A job that an attempt spawns.
#[derive(Debug)]
pub(crate) struct SpawnCall {
    /// The attempt's number of the call.
    pub(crate) call: u64,
    pub(crate) agent: String,
    /// Whether `agent` is the name of a skill.
    pub(crate) skill: bool,
    /// The input as JSON text.
    pub(crate) input: Box<RawValue>,
    pub(crate) priority: i64,
    pub(crate) timeout: Duration,
    /// Set if the attempt has a journal.
    pub(crate) journaled: Option<JournaledCall>,
}

/// A tool of the platform that an attempt calls.
#[derive(Debug)]
pub(crate) struct ToolCall {
    pub(crate) tool: String,
    /// A JSON object.
    pub(crate) arguments: Arc<[u8]>,
    /// The same in each attempt that makes the call again.
    pub(crate) key: StepKey,
    /// True if an earlier attempt may have made it.
    pub(crate) again: bool,
    pub(crate) asker: Asker,
}

/// A spawn that belongs to a step of a journal.
#[derive(Debug)]
pub(crate) struct JournaledCall {
    pub(crate) step: SpawnStep,
    /// True if an earlier attempt may have spawned the job.
    pub(crate) again: bool,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// How an attempt ended, before a large output was stored.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Set on success, and also if only the output's validation failed.
    pub(crate) output: Option<Box<RawValue>>,
    pub(crate) failure: Option<Failure>,
    pub(crate) usage: Usage,
    pub(crate) metadata: Option<Arc<[u8]>>,
    pub(crate) slot_usable: bool,
}

impl Ended {
    /// The end of an attempt that failed before its program ran.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self { output: None, failure: Some(failure), usage: Usage::default(), metadata: None, slot_usable: false }
    }

    /// The report, once a large output is stored.
    pub(crate) fn into_end(self, output: Option<atlas_types::Payload>) -> AttemptEnd {
        let Self { failure, usage, metadata, slot_usable, .. } = self;
        let report = match (failure, output) {
            (Some(failure), output) => ReportKind::Failed { failure, output, usage, metadata, cancelled: false },
            (None, Some(output)) => ReportKind::Completed { output, usage, metadata },
            (None, None) => {
                let failure = Failure { kind: FailureKind::Internal, error: "the output was lost".into() };
                ReportKind::Failed { failure, output: None, usage, metadata, cancelled: false }
            }
        };
        AttemptEnd { report, slot_usable }
    }
}

/// The data that all slots of a worker share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) settings: Arc<provider::Settings>,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) transfers: Transfers,
    pub(crate) told: mpsc::Sender<SlotEvent>,
    /// Lets tries of calls of limited models begin.
    pub(crate) tries: TryDoor,
    /// Calls models; its connections are shared.
    pub(crate) models: Client,
    /// Connections to MCP servers.
    pub(crate) servers: atlas_mcp::Pool,
}

/// The attempt's side of a slot: the clock, the orders, and the channel for events.
pub(crate) struct Control<'a> {
    pub(crate) env: &'a Env,
    pub(crate) mailbox: &'a Mailbox,
    /// The enforced limits of the contract for the attempt's program. None if the contract states none.
    pub(crate) limits: Option<String>,
    /// How the attempt's programs are confined. None if they have the rights of the worker.
    pub(crate) sandbox: Option<String>,
    /// The secrets of the attempt.
    pub(crate) secrets: Secrets,
    said: Said,
    told: &'a mpsc::Sender<SlotEvent>,
    token: FencingToken,
    log_bytes_left: usize,
}

impl Control<'_> {
    /// Monotonic time.
    pub(crate) fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }

    /// Removes another value from the texts of the attempt from now on.
    pub(crate) fn hide(&mut self, name: &str, value: SecretText) {
        self.secrets.hide(name, value);
        self.said.hide(&self.secrets);
    }

    /// Passes on a piece of a model's answer, for current followers.
    pub(crate) async fn delta(&mut self, call: (u32, u32), text: String) {
        for (call, text) in self.said.piece(call, text) {
            let _ = self.told.send(SlotEvent::Delta { token: self.token, call, text }).await;
        }
    }

    /// Passes on what was held back of the last piece, because a secret might have followed.
    async fn end_deltas(&mut self) {
        if let Some((call, text)) = self.said.rest() {
            let _ = self.told.send(SlotEvent::Delta { token: self.token, call, text }).await;
        }
    }

    /// Sets the secrets of the attempt.
    fn keep(&mut self, secrets: Secrets) {
        self.said = Said::new(&secrets);
        self.secrets = secrets;
    }

    /// Spawns a job. The answer arrives in the mailbox.
    pub(crate) async fn spawn(&self, call: SpawnCall) {
        let _ = self.told.send(SlotEvent::Spawn { token: self.token, call }).await;
    }

    /// Calls a tool of the platform. The answer arrives in the mailbox.
    pub(crate) async fn tool(&self, call: u64, tool: String, arguments: Arc<[u8]>) {
        let key = hashed(&(self.token.0, call));
        let asker = Asker::Program { token: self.token, call };
        let call = ToolCall { tool, arguments, key, again: false, asker };
        let _ = self.told.send(SlotEvent::Tool { token: self.token, call }).await;
    }

    /// Stops waiting for a spawned job.
    pub(crate) async fn leave(&self, call: u64) {
        let _ = self.told.send(SlotEvent::Leave { token: self.token, call }).await;
    }

    /// The answers to calls of the attempt that have arrived.
    pub(crate) fn answers(&self) -> Vec<(u64, Answer)> {
        self.mailbox.answers(self.token)
    }

    /// False once the attempt has used up its log limit. Further output then need not be split into lines.
    pub(crate) fn listens(&self) -> bool {
        self.log_bytes_left > 0
    }

    /// Passes a line on. Lines beyond the attempt's limit are dropped, which is logged once.
    pub(crate) async fn say(&mut self, kind: atlas_types::StreamKind, level: &str, text: String) {
        if self.log_bytes_left == 0 {
            return;
        }
        let (level, text) = if text.len() >= self.log_bytes_left {
            self.log_bytes_left = 0;
            ("warning", "the attempt reached its limit of log bytes; further lines are dropped".to_owned())
        } else {
            self.log_bytes_left -= text.len();
            (level, self.said.line(text, Lines::LINE_BYTES_MAX))
        };
        let event = StreamEvent { number: 0, at: self.env.clock.wall(), kind, level: level.to_owned(), text };
        // If the pump has ended, the event is dropped.
        let _ = self.told.send(SlotEvent::Event { token: self.token, event }).await;
    }
}

/// Serves orders until shut down.
pub(crate) async fn serve(slot: SlotId, mailbox: Arc<Mailbox>, shared: Shared) {
    let mut program: Option<Program> = None;
    loop {
        let work = match mailbox.take() {
            Some(Order::Run(work)) => work,
            Some(Order::Shutdown) => break,
            None => {
                if idle(&mailbox, program.as_ref()).await {
                    continue;
                }
                let _ = shared.told.send(SlotEvent::Died { slot }).await;
                break;
            }
        };
        // If the program has ended, the job has not reached it and gets another program.
        program = program.filter(|program| !program.has_ended());
        let token = work.assignment.token;
        let mut control = Control {
            env: &shared.env,
            mailbox: &mailbox,
            limits: None,
            sandbox: None,
            secrets: Secrets::default(),
            said: Said::default(),
            told: &shared.told,
            token,
            log_bytes_left: shared.settings.log_bytes_max,
        };
        let end = run(&mut program, &work, &shared, &mut control).await;
        control.end_deltas().await;
        let mut end = redacted(end, &control).await;
        // A slot without a process is not kept, because it would count as warm and reserve memory.
        end.slot_usable &= program.as_ref().is_some_and(Program::outlives_job);
        let usable = end.slot_usable;
        if shared.told.send(SlotEvent::Ended { token, end }).await.is_err() || !usable {
            break;
        }
    }
    if let Some(program) = program.take() {
        program.stop(&shared.env).await;
    }
    let _ = shared.told.send(SlotEvent::Gone { slot }).await;
}

/// The end of an attempt without values of its secrets.
async fn redacted(end: Ended, control: &Control<'_>) -> Ended {
    let bytes = end.output.as_ref().map_or(0, |output| output.get().len());
    if control.secrets.redactor().is_empty() {
        return end;
    }
    let (secrets, usage) = (control.secrets.clone(), end.usage);
    let end = provider::elsewhere(control.env, bytes, move || secrets.redact(end)).await;
    end.unwrap_or_else(|| {
        let error = "removing secrets from the output was interrupted".into();
        Ended { usage, ..Ended::failed(Failure { kind: FailureKind::Internal, error }) }
    })
}

/// Waits for an order. False if the idle program ended meanwhile.
async fn idle(mailbox: &Mailbox, program: Option<&Program>) -> bool {
    let ended = poll_fn(|cx| match program {
        Some(program) if program.poll_ended(cx) => Poll::Ready(()),
        _ => Poll::Pending,
    });
    tokio::select! {
        biased;
        () = mailbox.woken() => true,
        () = ended => false,
    }
}

async fn run(program: &mut Option<Program>, work: &Arc<Work>, shared: &Shared, control: &mut Control<'_>) -> Ended {
    let mut usage = Usage { warm: program.is_some(), ..Usage::default() };
    if let Some(why) = &work.assignment.lacks {
        let failure = Failure { kind: FailureKind::Dependency, error: Arc::clone(why) };
        return Ended { slot_usable: program.is_some(), ..Ended::failed(failure) };
    }
    match Secrets::of(work, shared).await {
        Ok(secrets) => control.keep(secrets),
        Err(failure) => return Ended { slot_usable: program.is_some(), ..Ended::failed(failure) },
    }
    let program = match program {
        Some(program) => {
            program.set_busy(true);
            program
        }
        None => {
            let began = control.now();
            match provider::start(work, shared, control).await {
                Ok(started) => {
                    usage.warmup = Micros::from(control.now().saturating_sub(began)).max(Micros(1));
                    program.insert(started)
                }
                Err(error) => {
                    let told = [("_error_code", error.code()), ("_error_why", error.why())];
                    let measured = told.into_iter().filter_map(|(name, told)| Some((name.to_owned(), told?.into())));
                    let added = metadata::Added { measured: measured.collect(), ..metadata::Added::default() };
                    let metadata = metadata::merged(&work.assignment.metadata, &added);
                    return Ended { usage, metadata, ..Ended::failed(not_started(&error)) };
                }
            }
        }
    };
    if let Some(failure) = check_input(work, control).await {
        program.set_busy(false);
        return Ended { usage, slot_usable: true, ..Ended::failed(failure) };
    }
    let began = control.now();
    let mut execution = program.execute(work, control).await;
    if let Execution::Output { output, .. } = &mut execution
        && let Some((mended, halves)) = provider::json_text::mended(output)
    {
        *output = mended;
        let text = format!("replaced halves of surrogate pairs, such as \\ud83d, in the output by U+FFFD: {halves}");
        control.say(atlas_types::StreamKind::Log, "warning", text).await;
    }
    usage.execution = Micros::from(control.now().saturating_sub(began));
    // A program that cannot be used again is about to be killed, and stays under the watchdog until then.
    if execution.usable() {
        program.end_others(control).await;
        program.set_busy(false);
    }
    let (declared, limits) = (shared.settings.declared, control.limits.take());
    let sandbox = program.confinement(control.sandbox.take(), work);
    let confined = Limited { limits, sandbox };
    let bytes = match &execution {
        Execution::Output { output, .. } => output.get().len(),
        Execution::Failed { .. } => 0,
    };
    let work = Arc::clone(work);
    let end =
        provider::elsewhere(control.env, bytes, move || conclude(execution, &work, usage, declared, confined)).await;
    end.unwrap_or_else(|| {
        let error = "checking the output was interrupted".into();
        Ended { usage, ..Ended::failed(Failure { kind: FailureKind::Internal, error }) }
    })
}

/// Validates the input of a retry or of the step of a chain (compatibility §7.1). The door has already validated that of other first
/// tries, but retries and steps do not pass a door.
async fn check_input(work: &Arc<Work>, control: &Control<'_>) -> Option<Failure> {
    if work.assignment.retry_count == 0 && work.context.is_none() {
        return None;
    }
    let (bytes, checked) = (work.input.len(), Arc::clone(work));
    let found = provider::elsewhere(control.env, bytes, move || checked.agent.check_input(&checked.input)).await;
    let (kind, why) = match found {
        Some(Ok(())) => return None,
        Some(Err(why)) => (FailureKind::InputInvalid, why),
        None => (FailureKind::Internal, "the check was interrupted".to_owned()),
    };
    Some(Failure { kind, error: provider::bounded(format!("Input validation: {why}")).into() })
}

/// What bounded the processes of an attempt, as text.
struct Limited {
    limits: Option<String>,
    sandbox: Option<String>,
}

/// Validates the output (compatibility §7.1). An invalid output is kept, and so is the slot.
fn conclude(execution: Execution, work: &Work, usage: Usage, declared: bool, limited: Limited) -> Ended {
    let Limited { limits, sandbox } = limited;
    let held = declared.then_some(&work.assignment.allocation);
    match execution {
        Execution::Output { output, metadata, usable } => {
            let (output, wrong) = match work.agent.check_output(&output) {
                Ok(()) => (Some(output), None),
                Err(fault @ OutputFault::Violations(_)) => (Some(output), Some(fault)),
                Err(fault @ OutputFault::Unusable(_)) => (None, Some(fault)),
            };
            let error_at = wrong.as_ref().and_then(OutputFault::places);
            let added = metadata::Added { measured: metadata, held, limits, sandbox, error_at };
            let metadata = metadata::merged(&work.assignment.metadata, &added);
            Ended { output, failure: wrong.map(|fault| fault.into_failure()), usage, metadata, slot_usable: usable }
        }
        Execution::Failed { failure, metadata, usable } => {
            let added = metadata::Added { measured: metadata, held, limits, sandbox, error_at: None };
            let metadata = metadata::merged(&work.assignment.metadata, &added);
            Ended { output: None, failure: Some(failure), usage, metadata, slot_usable: usable }
        }
    }
}

fn not_started(error: &StartError) -> Failure {
    let kind = match error {
        // These are the only errors that occur before the slot exists.
        StartError::NoSkills | StartError::Skill(_) => {
            return Failure { kind: FailureKind::Dependency, error: error.to_string().into() };
        }
        StartError::NoImplementation { .. } | StartError::Import(_) => FailureKind::NoAgent,
        StartError::NodeLacks { .. } | StartError::Unconfined(_) => FailureKind::Internal,
        _ => FailureKind::Startup,
    };
    Failure { kind, error: provider::bounded(format!("Pool error: {error}")).into() }
}
