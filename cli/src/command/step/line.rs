//! The lines of JSON that a durable program and its worker exchange.

use std::io::{BufRead, Read as _, Write};

use serde::Deserialize;
use serde_json::{Value, json};

use super::NO_WORKER;
use crate::exit::Exit;
use crate::failure::Failure;

/// Longest line: the largest output of a step, each byte of which is six characters of JSON at most, and what is around it.
const LINE_BYTES_MAX: u64 = 8 << 20;

/// Why a step of the program failed, as it is recorded.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct StepError {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: String,
    /// The code with which the command ended.
    #[serde(deserialize_with = "lenient_code")]
    pub(super) code: Option<u8>,
    /// What it had printed.
    pub(super) stdout: Value,
}

/// A code of another program may be any number.
fn lenient_code<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_u64().and_then(|code| u8::try_from(code).ok()))
}

/// What a call gets.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// The program makes the step now. The key is the same in each attempt.
    Make {
        key: String,
        again: bool,
    },
    Value(Value),
    Error(StepError),
}

/// The exchange of one call.
pub(super) struct Line<R, W> {
    input: R,
    output: W,
    call: u64,
}

impl<R: BufRead, W: Write> Line<R, W> {
    /// The number tells the answers to this call from those to one whose process was killed.
    pub(super) fn new(input: R, output: W, call: u64) -> Self {
        Self { input, output, call }
    }

    /// Asks for a call, and waits for what it gets.
    pub(super) fn ask(&mut self, mut call: Value) -> Result<Answer, Failure> {
        call["call"] = json!(self.call);
        // This process has the lock, so an earlier one that is not finished was killed.
        call["single"] = json!(true);
        self.say(&call)?;
        self.hear()
    }

    /// Says how the step ended, and waits until that is recorded.
    pub(super) fn made(&mut self, made: Result<Value, Box<StepError>>) -> Result<Answer, Failure> {
        let said = match made {
            Ok(value) => json!({"made": self.call, "value": value}),
            Err(error) => {
                let StepError { kind, text, code, stdout } = *error;
                json!({"made": self.call, "error": {"type": kind, "text": text, "code": code, "stdout": stdout}})
            }
        };
        self.say(&said)?;
        self.hear()
    }

    fn say(&mut self, said: &Value) -> Result<(), Failure> {
        // A process that was killed may have left half a line.
        let line = format!("\n{said}\n");
        let sent = self.output.write_all(line.as_bytes()).and_then(|()| self.output.flush());
        sent.map_err(|error| gone(&error.to_string()))
    }

    fn hear(&mut self) -> Result<Answer, Failure> {
        loop {
            let mut line = Vec::new();
            let read = self.input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            read.map_err(|error| gone(&error.to_string()))?;
            if line.last() != Some(&b'\n') {
                return Err(gone(if line.is_empty() { "it closed the connection" } else { "it sent a broken line" }));
            }
            let heard: Value = serde_json::from_slice(&line).map_err(|error| unexpected(&error.to_string()))?;
            if heard["call"] != self.call {
                // The answer to a call whose process was killed.
                continue;
            }
            return read_answer(heard);
        }
    }
}

fn read_answer(mut heard: Value) -> Result<Answer, Failure> {
    if let Some(stop) = heard["stop"].as_str() {
        return Err(stopped(stop));
    }
    if heard["make"] == true {
        let key = heard["key"].as_str().unwrap_or_default().to_owned();
        return Ok(Answer::Make { key, again: heard["again"] == true });
    }
    let error = heard["error"].take();
    if let Value::String(text) = error {
        return Ok(Answer::Error(StepError { text, ..StepError::default() }));
    }
    if !error.is_null() {
        return serde_json::from_value(error).map(Answer::Error).map_err(|error| unexpected(&error.to_string()));
    }
    match heard.get_mut("value") {
        Some(value) => Ok(Answer::Value(value.take())),
        None => Err(unexpected("it has neither a value nor an error")),
    }
}

/// Why the job cannot go on: `E3013: the program differs …`.
fn stopped(text: &str) -> Failure {
    let is_code =
        |code: &str| code.len() == 5 && code.starts_with('E') && code[1..].bytes().all(|c| c.is_ascii_digit());
    match text.split_once(": ").filter(|(code, _)| code.is_ascii() && is_code(code)) {
        Some((code, rest)) => Failure::new(code, Exit::Conflict, rest),
        None => Failure::new(NO_WORKER, Exit::Conflict, text),
    }
}

fn gone(why: &str) -> Failure {
    Failure::new(NO_WORKER, Exit::Unreachable, format!("the worker does not take steps any more: {why}"))
        .with_next("what happened: atlasctl job logs JOB")
}

/// An answer that is not one.
pub(super) fn unexpected(what: &str) -> Failure {
    Failure::new(NO_WORKER, Exit::Unreachable, format!("the worker's answer could not be read: {what}"))
        .with_next("compare versions: atlasctl version")
}
