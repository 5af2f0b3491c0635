//! Durable programs without a host: they say their calls as lines of JSON over a pair of descriptors, and hear the answers so.

use std::ffi::{OsString, c_int};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::task::Context;

use atlas_types::{FailureKind, StreamKind};
use nix::sys::memfd::{MFdFlags, memfd_create};
use serde::Deserialize;
use serde_json::json;

use super::{Exec, Process, document, too_large};
use crate::attempt::Work;
use crate::journal::JournalError;
use crate::provider::durable::{Called, Durable, News, Said};
use crate::provider::io_loop::{ReadResult, Ready, Sink, Source, Wait, Woken};
use crate::provider::library::Library;
use crate::provider::round::caller::pass;
use crate::provider::{Control, Execution, stopped};

/// The size of a line in addition to the output itself.
const LINE_BYTES_EXTRA: usize = 1 << 20;

/// How often a program is read, and how many of its lines are handled, before others have their turn.
const READS_MAX: usize = 8;
const LINES_MAX: usize = 256;

/// How many lines of a job may be no lines of ours.
const WRONG_MAX: usize = 100;

/// How much of what a program is told may wait until it reads, in addition to one result.
const UNREAD_BYTES_MAX: usize = 64 << 20;

/// The worker's side of the descriptors.
struct Lines {
    to: Sink,
    from: Source,
    /// What was read, where the next line begins in it, and how far there is no end of it.
    read: Vec<u8>,
    begin: usize,
    searched: usize,
    /// Perhaps there are whole lines in what was read.
    has_more: bool,
    bytes_max: usize,
    /// The call of an `atlasctl step`, which makes them one at a time.
    single: Option<u64>,
    /// How many lines were none.
    wrong: usize,
}

/// What is known also of a line that is none.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Head {
    #[serde(alias = "made", alias = "forget")]
    call: Option<u64>,
    /// The program makes its calls one at a time, so none that it made before is open.
    single: bool,
}

/// What a process gets to speak to the worker; nothing, unless its program is durable.
#[derive(Default)]
pub(in crate::provider) struct Ends {
    /// It reads from the first and writes to the second; the third is for locks of its processes among each other.
    pub(in crate::provider) passed: Vec<OwnedFd>,
    pub(in crate::provider) environment: Vec<(OsString, OsString)>,
}

impl Lines {
    fn new(bytes_max: usize) -> io::Result<(Self, Ends)> {
        let (program_reads, we_write) = io::pipe()?;
        let (we_read, program_writes) = io::pipe()?;
        let lock = memfd_create(c"atlas-steps", MFdFlags::MFD_CLOEXEC)?;
        let passed = vec![OwnedFd::from(program_reads), OwnedFd::from(program_writes), lock];
        let named = ["ATLAS_STEP_IN", "ATLAS_STEP_OUT", "ATLAS_STEP_LOCK"].into_iter().zip(&passed);
        let number = |fd: &OwnedFd| -> c_int { fd.as_raw_fd() };
        let environment = named.map(|(name, fd)| (name.into(), number(fd).to_string().into())).collect();
        let lines = Self {
            to: Sink::new(we_write)?,
            from: Source::new(we_read)?,
            read: Vec::new(),
            begin: 0,
            searched: 0,
            has_more: false,
            bytes_max,
            single: None,
            wrong: 0,
        };
        Ok((lines, Ends { passed, environment }))
    }

    /// Reads a piece of what is there, and handles some of its lines. Returns what is wrong with lines; the error ends the job.
    fn take(&mut self, durable: &mut Durable) -> Result<Vec<String>, String> {
        if !self.has_more {
            for _ in 0..READS_MAX {
                if !matches!(self.from.read(&mut self.read), ReadResult::Bytes(_)) {
                    break;
                }
            }
        }
        let mut wrong = Vec::new();
        for _ in 0..LINES_MAX {
            let Some(length) = self.read[self.searched..].iter().position(|byte| *byte == b'\n') else {
                self.read.drain(..self.begin);
                (self.begin, self.searched, self.has_more) = (0, self.read.len(), false);
                if self.read.len() > self.bytes_max {
                    let text = format!("a line to ATLAS_STEP_OUT has more than {} bytes", self.bytes_max);
                    return Err(too_much(text));
                }
                return Ok(wrong);
            };
            let (begin, end) = (self.begin, self.searched + length);
            (self.begin, self.searched) = (end + 1, end + 1);
            let line = self.read[begin..end].trim_ascii();
            if line.is_empty() {
                continue;
            }
            let head: Head = serde_json::from_slice(line).unwrap_or_default();
            match Said::of_line(line) {
                Ok(said) => {
                    if head.single
                        && matches!(said, Said::Call(_))
                        && let Some(earlier) = self.single.replace(head.call.unwrap_or_default())
                    {
                        // Its process was killed, or this one would not have the lock.
                        durable.take(Said::Over(earlier));
                    }
                    durable.take(said);
                }
                Err(why) => {
                    let why = format!("a line to ATLAS_STEP_OUT: {why}");
                    self.wrong += 1;
                    if self.wrong > WRONG_MAX {
                        return Err(too_much(format!("more than {WRONG_MAX} lines cannot be read; {why}")));
                    }
                    // Perhaps it is half a line of a process that was killed.
                    let mut told = json!({"error": {"type": "ValueError", "text": why}});
                    if let Some(call) = head.call {
                        told["call"] = call.into();
                    }
                    self.to.send(format!("{told}\n").as_bytes());
                    wrong.push(why);
                }
            }
        }
        self.has_more = true;
        Ok(wrong)
    }

    /// Tells the program what came of a call. The error ends the job.
    fn tell(&mut self, called: &Called) -> Result<(), String> {
        let line = called.line();
        let is_over = |call: u64| {
            let rest = line.strip_prefix(&format!(r#"{{"call":{call},"#));
            rest.is_some_and(|rest| !rest.starts_with(r#""make":true"#))
        };
        self.single = self.single.filter(|call| !is_over(*call));
        self.to.send(line.as_bytes());
        if self.to.unsent() > self.bytes_max + UNREAD_BYTES_MAX {
            let unread = self.to.unsent() >> 20;
            return Err(too_much(format!(
                "the program does not read ATLAS_STEP_IN, where {unread} MiB wait for it; let it read what came of its calls"
            )));
        }
        Ok(())
    }
}

fn too_much(text: String) -> String {
    JournalError::TooMuch(text).to_string()
}

impl Ready for Lines {
    fn poll_ready(&self, cx: &mut Context<'_>) -> bool {
        self.has_more || self.from.poll_ready(cx)
    }
}

impl Exec {
    /// Runs a job whose program records its steps.
    pub(super) async fn execute_durable(&mut self, work: &Arc<Work>, control: &mut Control<'_>) -> Execution {
        let limit = work.assignment.execution_timeout;
        let mut wait = Wait::until(control.now() + limit.as_duration());
        let (mailbox, env) = (control.mailbox, control.env);
        let opened = tokio::select! {
            biased;
            () = stopped(mailbox) => return Execution::stopped(),
            () = env.clock.sleep(limit.as_duration()) => return Execution::timed_out(limit),
            opened = Durable::open(work, &self.shared, control) => opened,
        };
        let mut durable = match opened {
            Ok(durable) => durable,
            Err(fault) => return Execution::fault(&fault),
        };
        let library = Library::of(work, &self.shared);
        let known = tokio::select! {
            biased;
            () = stopped(mailbox) => return Execution::stopped(),
            () = env.clock.sleep(limit.as_duration()) => return Execution::timed_out(limit),
            known = durable.known(&library, &work.input) => known,
        };
        let known = match known {
            Ok(Ok(known)) => known,
            Ok(Err(refused)) => return Execution::from(refused),
            Err(error) => return Execution::fault(&error.into()),
        };
        let output_bytes_max = self.shared.settings.output_bytes_max;
        let (mut lines, ends) = match Lines::new(output_bytes_max + LINE_BYTES_EXTRA) {
            Ok(made) => made,
            Err(error) => {
                return Execution::failed(FailureKind::Internal, format!("could not start a process: {error}"));
            }
        };
        let mut process = match Process::spawn(work, &self.shared, control, ends).await {
            Ok(process) => process,
            Err(failed) => return *failed,
        };
        control.limits = process.tree.enforced().text();
        control.sandbox = process.tree.confined().map(str::to_owned);
        process.stdin.send(&document(work, &known));
        process.stdin.finish();
        let execution = loop {
            let Process { tree, stdin, stdout, stderr, .. } = &mut process;
            let woken = tokio::select! {
                biased;
                // First, so that a program which writes without end does not keep its calls from going on.
                news = durable.next() => {
                    match news {
                        News::Told(told) => pass(control, told).await,
                        News::Called(called) => {
                            if let Err(why) = lines.tell(&called) {
                                process.tree.kill().await;
                                return Execution::failed(FailureKind::Agent, why);
                            }
                        }
                        // The order to stop is on its way.
                        News::Failed(JournalError::Stopped) => {}
                        News::Failed(error) => {
                            process.tree.kill().await;
                            return Execution::fault(&error.into()).also_measured(durable.measured());
                        }
                    }
                    continue;
                }
                woken = wait.next(control, tree, [&*stdin, &*stdout, &*stderr, &lines.to, &lines]) => woken,
            };
            match woken {
                Woken::Io { pipes: [stdin, stdout, stderr, to, from], tree } => {
                    if to {
                        lines.to.flush();
                    }
                    if from {
                        match lines.take(&mut durable) {
                            Ok(wrong) => {
                                for why in wrong {
                                    control.say(StreamKind::Log, "warning", why).await;
                                }
                            }
                            Err(why) => {
                                process.tree.kill().await;
                                return Execution::failed(FailureKind::Agent, why);
                            }
                        }
                        tokio::task::yield_now().await;
                    }
                    if process.read([stdin, stdout, stderr], control, output_bytes_max).await {
                        return too_large(output_bytes_max);
                    }
                    if let Some(change) = tree.then(|| process.tree.change()).flatten() {
                        break process.conclude(change, work, control, output_bytes_max).await;
                    }
                }
                Woken::Answered => drop(control.answers()),
                Woken::TimedOut => {
                    let why = process.tree.breach();
                    return Execution::timed_out(limit).explained(why, control).await;
                }
                Woken::Stopped | Woken::Parked => return Execution::stopped(),
            }
        };
        durable.finish(control).await;
        let left_out = durable.left_out(0).filter(|_| matches!(execution, Execution::Output { .. }));
        if let Some(text) = left_out
            && let Some(failed) = Execution::left_out(work, text, control).await
        {
            return failed.also_measured(durable.measured());
        }
        library.settle(execution, work, control).await.also_measured(durable.measured())
    }
}
