//! exec agents that stay: one line of JSON in, one line out, a job after the other in one process.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use atlas_env::Env;
use atlas_types::FailureKind;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::exec::{Process, accept, document, invalid_json, too_large};
use super::io_loop::{Wait, Woken};
use super::{Execution, Program, Settings, StartError, json_text};
use crate::slot::{Control, Shared, Work};

/// A process that serves many jobs.
pub(super) struct WarmExec {
    process: Process,
    settings: Arc<Settings>,
}

/// One line of the process's.
#[derive(Deserialize)]
struct Answer {
    output: Option<Box<RawValue>>,
    error: Option<String>,
}

impl WarmExec {
    pub(super) fn start(work: &Work, shared: &Shared) -> Result<Self, StartError> {
        let process = Process::spawn(work, &shared.keeper, &shared.settings).map_err(|failed| match *failed {
            Execution::Failed { failure, .. } => StartError::Raised(failure.error.to_string()),
            Execution::Output { .. } => StartError::Stopped,
        })?;
        Ok(Self { process, settings: Arc::clone(&shared.settings) })
    }
}

impl Program for WarmExec {
    fn execute(&mut self, work: &Work, control: &mut Control<'_>) -> Execution {
        let process = &mut self.process;
        let mut line = document(work);
        // The document is ours but for the input, whose line breaks can only be white space between its tokens.
        line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        line.push(b'\n');
        process.stdin.send(&line);
        let limit = work.assignment.execution_timeout;
        let mut wait = Wait::until(control.now() + limit.as_duration());
        let mut searched = 0;
        loop {
            if let Some(end) = process.output[searched..].iter().position(|&byte| byte == b'\n') {
                let rest = process.output.split_off(searched + end + 1);
                let line = std::mem::replace(&mut process.output, rest);
                // Words beyond the answer would be taken for the next job's: do not give it one.
                return answer(&line, process.output.is_empty() && !wait.stopping());
            }
            searched = process.output.len();
            match process.wait(&mut wait, control) {
                Ok(Woken::Io { pipes, tree }) => {
                    if process.read(pipes, control, self.settings.output_bytes_max) {
                        return too_large(self.settings.output_bytes_max);
                    }
                    // Its last words count, also when it ended right after them.
                    if tree
                        && !process.has_more_output()
                        && !process.output[searched..].contains(&b'\n')
                        && let Some(change) = process.tree.change()
                    {
                        let quiet = || Execution::failed(FailureKind::Agent, "Process ended without an answer");
                        return process.failure(change, work).unwrap_or_else(quiet);
                    }
                }
                Ok(Woken::TimedOut) => return Execution::timed_out(limit),
                Ok(Woken::Stopped) => return Execution::stopped(),
                Err(error) => return Execution::failed(FailureKind::Internal, format!("waiting failed: {error}")),
            }
        }
    }

    fn changes(&self) -> Option<BorrowedFd<'_>> {
        Some(self.process.tree.changes())
    }

    fn stop(self: Box<Self>, env: &Env) {
        self.process.stop(env, self.settings.shutdown_timeout);
    }
}

fn answer(line: &[u8], usable: bool) -> Execution {
    let read = json_text::parse(line).and_then(|json| {
        serde_json::from_str::<Answer>(json.get()).map_err(|_| "expected {\"output\"} or {\"error\"}".to_owned())
    });
    match read {
        Ok(Answer { error: Some(error), .. }) => Execution::failed(FailureKind::Agent, error),
        Ok(Answer { output: Some(output), .. }) => accept(output, usable),
        Ok(_) => invalid_json("expected {\"output\"} or {\"error\"}", line),
        Err(message) => invalid_json(&message, line),
    }
}
