//! The command that makes a step.

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::{Value, json};

use super::connection::VARIABLES;
use super::line::StepError;

/// Most bytes of an output that are recorded.
const STDOUT_BYTES_MAX: u64 = 1 << 20;

/// The codes of shells for a command that cannot be started, and for one that is not there.
const NOT_STARTED: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The type of the error of a command that failed.
const FAILED: &str = "CommandFailed";

/// How one try ended.
#[derive(Debug, PartialEq)]
pub(super) enum Tried {
    /// What is recorded.
    Done(Value),
    /// Another try may succeed.
    Failed(StepError),
    /// Another try would fail as well.
    Wrong(StepError),
}

/// A command as the script gives it.
pub(super) struct Shell<'a> {
    pub(super) words: &'a [String],
    /// Whether it prints JSON.
    pub(super) json: bool,
    /// The idempotency key of the step.
    pub(super) key: &'a str,
    /// Whether an earlier attempt may have made the step.
    pub(super) again: bool,
}

impl Shell<'_> {
    /// Runs the command. It inherits stdin and stderr.
    pub(super) fn run(&self) -> Tried {
        let Some((program, arguments)) = self.words.split_first() else {
            return Tried::Wrong(failed(NOT_FOUND, "there is no command".to_owned()));
        };
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::piped()).env("ATLAS_STEP_KEY", self.key);
        command.env("ATLAS_STEP_AGAIN", if self.again { "true" } else { "false" });
        // A step within a step would wait for itself.
        for name in VARIABLES {
            command.env_remove(name);
        }
        match command.spawn() {
            Ok(child) => self.follow(child, program),
            Err(error) => {
                let code = if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED };
                Tried::Wrong(failed(code, format!("\"{program}\" did not start: {error}")))
            }
        }
    }

    fn follow(&self, mut child: Child, program: &str) -> Tried {
        let mut stdout = Vec::new();
        if let Some(out) = child.stdout.take() {
            let read = out.take(STDOUT_BYTES_MAX + 1).read_to_end(&mut stdout);
            if let Err(error) = read {
                return Tried::Failed(failed(1, format!("the output of \"{program}\" could not be read: {error}")));
            }
        }
        if stdout.len() as u64 > STDOUT_BYTES_MAX {
            let _ = child.kill();
            let _ = child.wait();
            return Tried::Wrong(failed(1, format!("\"{program}\" printed more than 1 MiB; write it to a file")));
        }
        let status = match child.wait() {
            Ok(status) => status,
            Err(error) => return Tried::Failed(failed(1, format!("\"{program}\" was lost: {error}"))),
        };
        let Ok(text) = String::from_utf8(stdout) else {
            let text = format!("\"{program}\" printed bytes that are no text; pass them through base64");
            return Tried::Wrong(failed(1, text));
        };
        if !status.success() {
            let (code, how) = ending(status);
            return Tried::Failed(StepError { stdout: text.into(), ..failed(code, format!("\"{program}\" {how}")) });
        }
        if !self.json {
            return Tried::Done(json!({"stdout": text, "code": 0}));
        }
        match serde_json::from_str::<Value>(&text) {
            // A text would be printed as such in place of the JSON that it is.
            Ok(value) if value.is_string() || value.is_null() => {
                Tried::Done(json!({"stdout": format!("{value}\n"), "code": 0}))
            }
            Ok(value) => Tried::Done(json!({"stdout": value, "code": 0})),
            // It has done what it does; another run would do it twice.
            Err(error) => Tried::Wrong(failed(1, format!("\"{program}\" did not print JSON: {error}"))),
        }
    }
}

fn failed(code: u8, text: String) -> StepError {
    StepError { kind: FAILED.to_owned(), text, code: Some(code), stdout: Value::Null }
}

/// The code of a shell for the end of a command, and in words.
fn ending(status: ExitStatus) -> (u8, String) {
    match (status.code(), status.signal()) {
        (Some(code), _) => (u8::try_from(code).unwrap_or(1), format!("exited with {code}")),
        (None, signal) => {
            let signal = signal.unwrap_or(0);
            (u8::try_from(128 + signal).unwrap_or(255), format!("was killed by signal {signal}"))
        }
    }
}
