//! Warm exec agents: one line of JSON in, one line out, many jobs in one process.
//!
//! A process that a job leaves running is killed, but not one that the program started for itself. To distinguish them,
//! the first line is sent without its line end: a program that has read it waits for the rest, and has then started its
//! own processes.

use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_secrets::Redactor;
use atlas_types::FailureKind;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::exec::{Ends, Process, accept, document, invalid_json, too_large};
use super::io_loop::{Wait, Woken};
use super::library::Library;
use super::{Execution, Settings, StartError, elsewhere, json_text};
use crate::attempt::Work;
use crate::process::Tree;
use crate::provider::{Control, Shared};

/// The shortest and longest pause between two checks of a starting program.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// A process that serves many jobs.
pub(crate) struct WarmExec {
    process: Process,
    /// True until the end of the first line is sent.
    starts: bool,
    settings: Arc<Settings>,
    shared: Shared,
}

/// One line of the process's output.
#[derive(Deserialize)]
struct Answer {
    output: Option<Box<RawValue>>,
    error: Option<String>,
}

impl WarmExec {
    pub(super) async fn start(work: &Arc<Work>, shared: &Shared, control: &Control<'_>) -> Result<Self, StartError> {
        let process = Process::spawn(work, shared, control, Ends::default()).await;
        let process = process.map_err(|failed| match *failed {
            Execution::Failed { failure, .. } => StartError::Raised(failure.error.to_string()),
            Execution::Output { .. } => StartError::Stopped,
        })?;
        Ok(Self { process, starts: true, settings: Arc::clone(&shared.settings), shared: shared.clone() })
    }

    /// Records the program's own processes and sends the end of the first line, which starts the first job.
    fn started(&mut self) {
        self.process.tree.settle();
        self.process.stdin.widen();
        self.process.stdin.send(b"\n");
        self.starts = false;
    }

    pub(super) async fn execute(&mut self, work: &Work, control: &mut Control<'_>) -> Execution {
        let library = Library::of(work, &self.shared);
        let execution = self.run(work, control, &library).await;
        library.settle(execution, work, control).await
    }

    async fn run(&mut self, work: &Work, control: &mut Control<'_>, library: &Library) -> Execution {
        let known = match library.begin(work, control).await {
            Ok(known) => known,
            Err(end) => return end.usable_if(true),
        };
        let mut line = document(work, &known);
        if let Some(secrets) = control.secrets.json() {
            line.pop();
            line.extend_from_slice(format!(", \"secrets\": {secrets}}}").as_bytes());
        }
        // Only the input comes from outside. Its line breaks can only be white space between tokens.
        line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        if !self.starts {
            line.push(b'\n');
        }
        self.process.stdin.send(&line);
        let limit = work.assignment.execution_timeout;
        let mut wait = Wait::until(control.now() + limit.as_duration());
        let mut searched = 0;
        let mut pause = PAUSE_MIN;
        loop {
            if self.starts && (self.process.stdin.is_taken() || self.process.output.contains(&b'\n')) {
                self.started();
            }
            let process = &mut self.process;
            if let Some(end) = process.output[searched..].iter().position(|&byte| byte == b'\n') {
                let rest = process.output.split_off(searched + end + 1);
                let line = std::mem::replace(&mut process.output, rest);
                // Output after the answer would count as the next job's answer, so the program gets no other job.
                let (bytes, usable) = (line.len(), process.output.is_empty() && !wait.stopping());
                let redactor = control.secrets.redactor().clone();
                let read = elsewhere(control.env, bytes, move || answer(&line, usable, &redactor)).await;
                return read.unwrap_or_else(Execution::cut_short);
            }
            searched = process.output.len();
            let woken = tokio::select! {
                biased;
                woken = process.wait(&mut wait, control) => woken,
                () = control.env.clock.sleep(pause), if self.starts => {
                    pause = PAUSE_MAX.min(pause * 2);
                    continue;
                }
            };
            match woken {
                Woken::Io { pipes, tree } => {
                    let change = tree.then(|| process.tree.change()).flatten();
                    let output_bytes_max = self.settings.output_bytes_max;
                    if process.read(pipes, control, output_bytes_max).await
                        || change.is_some() && process.read_output(output_bytes_max)
                    {
                        return too_large(output_bytes_max);
                    }
                    // Output that was written before the end still counts.
                    if let Some(change) = change
                        && !process.output[searched..].contains(&b'\n')
                    {
                        let quiet = || Execution::failed(FailureKind::Agent, "Process ended without an answer");
                        return process.failure(change, work, control.secrets.redactor()).unwrap_or_else(quiet);
                    }
                }
                // Exec agents cannot make calls.
                Woken::Answered => drop(control.answers()),
                Woken::TimedOut => return Execution::timed_out(limit),
                Woken::Stopped | Woken::Parked => return Execution::stopped(),
            }
        }
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.process.tree
    }

    pub(super) fn tree_mut(&mut self) -> &mut Tree {
        &mut self.process.tree
    }

    pub(super) async fn stop(&mut self, env: &Env) {
        self.process.stop(env, self.settings.shutdown_timeout).await;
    }
}

fn answer(line: &[u8], usable: bool, redactor: &Redactor) -> Execution {
    let read = json_text::parse(line).and_then(|json| {
        serde_json::from_str::<Answer>(json.get()).map_err(|_| "expected {\"output\"} or {\"error\"}".to_owned())
    });
    match read {
        Ok(Answer { error: Some(error), .. }) => Execution::failed(FailureKind::Agent, error),
        Ok(Answer { output: Some(output), .. }) => accept(output, usable),
        Ok(_) => invalid_json("expected {\"output\"} or {\"error\"}", line, redactor),
        Err(message) => invalid_json(&message, line, redactor),
    }
}
