//! Durable programs without a host: they say their calls as lines of JSON over a pair of descriptors, and hear the answers so.

use std::ffi::{OsString, c_int};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use atlas_types::FailureKind;
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::{Exec, Process, document, too_large};
use crate::attempt::Work;
use crate::journal::JournalError;
use crate::provider::durable::{Durable, News, Said};
use crate::provider::io_loop::{ReadResult, Sink, Source, Wait, Woken};
use crate::provider::round::caller::pass;
use crate::provider::{Control, Execution, stopped};

/// The size of a line in addition to the output itself.
const LINE_BYTES_EXTRA: usize = 1 << 20;

/// The worker's side of the descriptors.
struct Lines {
    to: Sink,
    from: Source,
    /// The beginning of the next line.
    read: Vec<u8>,
    bytes_max: usize,
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
        let lines = Self { to: Sink::new(we_write)?, from: Source::new(we_read)?, read: Vec::new(), bytes_max };
        Ok((lines, Ends { passed, environment }))
    }

    /// Reads what is there, and handles whole lines. The error says which line ends the job.
    fn take(&mut self, durable: &mut Durable) -> Result<(), String> {
        while matches!(self.from.read(&mut self.read), ReadResult::Bytes(_)) {
            while let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(end + 1);
                let line = std::mem::replace(&mut self.read, rest);
                if !line.trim_ascii().is_empty() {
                    durable.take(Said::of_line(&line).map_err(|why| format!("a line to ATLAS_STEP_OUT: {why}"))?);
                }
            }
            if self.read.len() > self.bytes_max {
                return Err(format!("a line to ATLAS_STEP_OUT has more than {} bytes", self.bytes_max));
            }
        }
        Ok(())
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
        process.stdin.send(&document(work));
        process.stdin.finish();
        let execution = loop {
            let Process { tree, stdin, stdout, stderr, .. } = &mut process;
            let woken = tokio::select! {
                biased;
                woken = wait.next(control, tree, [&*stdin, &*stdout, &*stderr, &lines.to, &lines.from]) => woken,
                news = durable.next() => {
                    match news {
                        News::Told(told) => pass(control, told).await,
                        News::Called(called) => lines.to.send(called.line().as_bytes()),
                        // The order to stop is on its way.
                        News::Failed(JournalError::Stopped) => {}
                        News::Failed(error) => {
                            process.tree.kill().await;
                            return Execution::fault(&error.into()).also_measured(durable.measured());
                        }
                    }
                    continue;
                }
            };
            match woken {
                Woken::Io { pipes: [stdin, stdout, stderr, to, from], tree } => {
                    if to {
                        lines.to.flush();
                    }
                    if from && let Err(why) = lines.take(&mut durable) {
                        process.tree.kill().await;
                        return Execution::failed(FailureKind::Agent, why);
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
        execution.also_measured(durable.measured())
    }
}
