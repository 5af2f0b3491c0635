//! One slot: a task that runs attempts in one agent's program, one after the other.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use atlas_slots::SlotId;
use atlas_types::{Failure, FailureKind, Micros, Usage};

use crate::agent::OutputFault;
use crate::attempt::{Ended, SlotEvent, Work};
use crate::mailbox::{Mailbox, Order};
use crate::metadata;
use crate::provider::{self, Control, Execution, Program, Shared, StartError};
use crate::secrets::Secrets;
use crate::texts::bounded;

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
        if program.is_none() && !work.is_looked_at {
            mailbox.put_back(Order::Run(work));
            let _ = shared.told.send(SlotEvent::Died { slot }).await;
            break;
        }
        let token = work.assignment.token;
        let mut control = Control::new(&shared, &mailbox, token);
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
    match Secrets::of(work, &shared.env, (&shared.settings.secrets, &shared.settings.models)).await {
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
    let (declared, limits) = (shared.settings.declared, Program::limits(control.limits.take(), work));
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
    Some(Failure { kind, error: bounded(format!("Input validation: {why}")).into() })
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
    Failure { kind, error: bounded(format!("Pool error: {error}")).into() }
}
