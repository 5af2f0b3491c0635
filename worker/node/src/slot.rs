//! One slot: a thread of its own that runs one attempt after the other in one agent's program.

use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_slots::{AttemptEnd, SlotId};
use atlas_types::{Assignment, Failure, FailureKind, FencingToken, Micros, ReportKind, StreamEvent, Usage};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::agent::{Agent, OutputFault};
use crate::mailbox::{Mailbox, Order};
use crate::metadata;
use crate::process::Keeper;
use crate::provider::{self, Execution, Program, StartError};

/// One attempt with everything that it needs.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) assignment: Box<Assignment>,
    /// The input, JSON text.
    pub(crate) input: Arc<[u8]>,
    pub(crate) agent: Arc<Agent>,
}

/// What a slot's thread tells the pump.
#[derive(Debug)]
pub(crate) enum Told {
    /// The attempt said something.
    Event { token: FencingToken, event: StreamEvent },
    /// The attempt ended; the output is still text of any length.
    Ended { token: FencingToken, end: Ended },
    /// The idle program ended by itself.
    Died { slot: SlotId },
    /// A slot's thread is over.
    Gone,
}

/// How an attempt ended, before a large output was stored.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Set on success, and when only the output's validation failed.
    pub(crate) output: Option<Box<RawValue>>,
    pub(crate) failure: Option<Failure>,
    pub(crate) usage: Usage,
    pub(crate) metadata: Option<Arc<[u8]>>,
    pub(crate) slot_usable: bool,
}

impl Ended {
    /// An attempt that failed before its program could do anything.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self { output: None, failure: Some(failure), usage: Usage::default(), metadata: None, slot_usable: false }
    }

    /// The report, once the output has its place.
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

/// What all slots of a worker share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) settings: Arc<provider::Settings>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) told: mpsc::Sender<Told>,
}

/// The attempt's side of a slot: clock, orders, and the way for what it says.
pub(crate) struct Control<'a> {
    pub(crate) env: &'a Env,
    pub(crate) mailbox: &'a Mailbox,
    told: &'a mpsc::Sender<Told>,
    token: FencingToken,
    log_bytes_left: usize,
}

impl Control<'_> {
    /// Monotonic time.
    pub(crate) fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }

    /// False once the attempt's allowance is used up: what it says then need not even be read as lines.
    pub(crate) fn listens(&self) -> bool {
        self.log_bytes_left > 0
    }

    /// Passes a line on. What goes beyond the attempt's allowance is dropped, and said once.
    pub(crate) fn say(&mut self, kind: atlas_types::StreamKind, level: &str, text: String) {
        if self.log_bytes_left == 0 {
            return;
        }
        let (level, text) = if text.len() >= self.log_bytes_left {
            self.log_bytes_left = 0;
            ("warning", "the attempt's allowance of log bytes is used up; further lines are dropped".to_owned())
        } else {
            self.log_bytes_left -= text.len();
            (level, provider::bounded(text))
        };
        let event = StreamEvent { number: 0, at: self.env.clock.wall(), kind, level: level.to_owned(), text };
        // A pump that is gone listens to nothing any more.
        let _ = self.told.blocking_send(Told::Event { token: self.token, event });
    }
}

/// Serves orders until shut down. Blocks; runs on a thread of its own.
pub(crate) fn serve(slot: SlotId, mailbox: &Mailbox, shared: &Shared) {
    let mut program: Option<Box<dyn Program>> = None;
    loop {
        let work = match mailbox.take() {
            Some(Order::Run(work)) => work,
            Some(Order::Shutdown) => break,
            None => {
                if idle(mailbox, program.as_deref()) {
                    continue;
                }
                let _ = shared.told.blocking_send(Told::Died { slot });
                break;
            }
        };
        if program.as_deref().is_some_and(has_ended) {
            program = None;
        }
        let token = work.assignment.token;
        let mut control = Control {
            env: &shared.env,
            mailbox,
            told: &shared.told,
            token,
            log_bytes_left: shared.settings.log_bytes_max,
        };
        let end = run(&mut program, &work, shared, &mut control);
        let usable = end.slot_usable;
        if shared.told.blocking_send(Told::Ended { token, end }).is_err() || !usable {
            break;
        }
    }
    if let Some(program) = program.take() {
        program.stop(&shared.env);
    }
    let _ = shared.told.blocking_send(Told::Gone);
}

/// True if an idle program has ended: a job that it did not see yet gets another one.
fn has_ended(program: &dyn Program) -> bool {
    let fd = program.changes().map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    fd.is_some_and(|fd| matches!(poll(&mut [fd], PollTimeout::ZERO), Ok(1)))
}

/// Waits for an order; false if the idle program ended meanwhile.
fn idle(mailbox: &Mailbox, program: Option<&dyn Program>) -> bool {
    let mut fds = vec![PollFd::new(mailbox.woken(), PollFlags::POLLIN)];
    fds.extend(program.and_then(Program::changes).map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
    // An interrupted or failed wait looks at the mailbox again.
    let _ = poll(&mut fds, PollTimeout::NONE);
    fds[0].any().unwrap_or(true) || !fds.get(1).and_then(PollFd::any).unwrap_or(false)
}

fn run(program: &mut Option<Box<dyn Program>>, work: &Work, shared: &Shared, control: &mut Control<'_>) -> Ended {
    let mut usage = Usage { warm: program.is_some(), ..Usage::default() };
    let program = match program {
        Some(program) => program,
        None => {
            let began = control.now();
            match provider::start(work, shared, control) {
                Ok(started) => {
                    usage.warmup = Micros::from(control.now().saturating_sub(began)).max(Micros(1));
                    program.insert(started)
                }
                Err(error) => return Ended { usage, ..Ended::failed(pool_error(&error)) },
            }
        }
    };
    let began = control.now();
    let execution = program.execute(work, control);
    usage.execution = Micros::from(control.now().saturating_sub(began));
    conclude(execution, work, usage, shared.settings.declared)
}

/// Validates the output (spec §7.1, step 15): a wrong one is kept, and so is the slot.
fn conclude(execution: Execution, work: &Work, usage: Usage, declared: bool) -> Ended {
    let held = declared.then_some(&work.assignment.allocation);
    match execution {
        Execution::Output { output, metadata, usable } => {
            let metadata = metadata::merged(&work.assignment.metadata, &metadata, held);
            let (output, why) = match work.agent.check_output(&output) {
                Ok(()) => (Some(output), None),
                Err(OutputFault::Violations(messages)) => (Some(output), Some(messages)),
                Err(OutputFault::Unusable(why)) => (None, Some(why)),
            };
            let failure = why.map(|why| Failure {
                kind: FailureKind::OutputInvalid,
                error: provider::bounded(format!("Output validation: {why}")).into(),
            });
            Ended { output, failure, usage, metadata, slot_usable: usable }
        }
        Execution::Failed { failure, metadata, usable } => {
            let metadata = metadata::merged(&work.assignment.metadata, &metadata, held);
            Ended { output: None, failure: Some(failure), usage, metadata, slot_usable: usable }
        }
    }
}

fn pool_error(error: &StartError) -> Failure {
    let kind = match error {
        StartError::NoImplementation { .. } => FailureKind::NoAgent,
        StartError::NodeLacks { .. } => FailureKind::Internal,
        _ => FailureKind::Startup,
    };
    Failure { kind, error: provider::bounded(format!("Pool error: {error}")).into() }
}
