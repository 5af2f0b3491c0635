//! `atlasctl step`: calls of a durable program that is a script, one at a time, over the descriptors that its worker gave it.

mod command;
mod connection;
mod line;
mod search;

use std::io::{BufRead, Write};
use std::time::Duration;

use serde_json::{Value, json};

use self::command::{Shell, Tried};
use self::connection::Connection;
use self::line::{Answer, Line, StepError};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::words;

/// The code for a step that no worker takes.
const NO_WORKER: &str = "E0131";

/// The pause before the second try of a command. Each further one is twice as long, up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Options of `atlasctl step`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["name", "sleep", "until", "ask", "receive", "spawn", "search"]))]
pub(crate) struct Options {
    /// Name of the step that the command after -- makes.
    #[arg(value_name = "NAME", requires = "command")]
    name: Option<String>,
    /// The command. What it prints is recorded, and printed again instead of running it in a later attempt.
    #[arg(last = true, value_name = "COMMAND", requires = "name")]
    command: Vec<String>,
    /// What happens to the step if its worker is lost while it runs: with pure and idempotent it runs again, with once people are asked.
    #[arg(long, value_name = "EFFECTS", value_parser = ["pure", "idempotent", "once"], default_value = "idempotent", requires = "name")]
    effects: String,
    /// What tells the step from others of its name, as JSON; defaults to the words of the command.
    #[arg(long, value_name = "JSON", requires = "name", value_parser = parse_json)]
    args: Option<Value>,
    /// How often a command that fails is tried again, after 1 s, 2 s, 4 s and so on.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "name")]
    retries: u32,
    /// Records what the command prints as JSON, and prints answers and messages as JSON.
    #[arg(long)]
    json: bool,
    /// Waits for this long.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    sleep: Option<Duration>,
    /// Waits until this time, such as 2026-12-24T18:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<String>,
    /// Asks people, and prints the answer.
    #[arg(long, value_name = "PROMPT")]
    ask: Option<String>,
    /// The answers to choose from, separated by commas.
    #[arg(long, value_name = "ANSWER,…", value_delimiter = ',', requires = "ask")]
    #[arg(conflicts_with_all = ["confirm", "name", "sleep", "until", "receive", "spawn", "search"])]
    options: Vec<String>,
    /// Several of the answers may be chosen.
    #[arg(long, requires = "options")]
    many: bool,
    /// Asks for yes or no.
    #[arg(long, requires = "ask", conflicts_with_all = ["name", "sleep", "until", "receive", "spawn", "search"])]
    confirm: bool,
    /// The answer once the time has passed.
    #[arg(long, value_name = "ANSWER", requires_all = ["ask", "timeout"])]
    default: Option<String>,
    /// Waits for the next message of a channel, and prints it; an empty name takes any message.
    #[arg(long, value_name = "CHANNEL")]
    receive: Option<String>,
    /// Longest wait for an answer, a message or a job; without a result, the exit code is 9.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    #[arg(conflicts_with_all = ["name", "sleep", "until", "search"])]
    timeout: Option<Duration>,
    /// Runs a job of this agent, and prints its output.
    #[arg(long, value_name = "AGENT")]
    spawn: Option<String>,
    /// The input of the job.
    #[arg(long, value_name = "JSON", requires = "spawn", value_parser = parse_json)]
    input: Option<Value>,
    #[command(flatten)]
    search: search::SearchOptions,
}

fn parse_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}

/// A time that is the same in each attempt.
fn parse_time(text: &str) -> Result<String, String> {
    if text.starts_with('+') || text.starts_with("in ") {
        return Err("a later attempt would wait for another time; write --sleep for a duration".to_owned());
    }
    words::parse_moment(text, 0.0).map(words::rfc3339)
}

/// How a step ends for the script.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// It goes on, after this was printed.
    Printed(Vec<u8>),
    /// There was no result in time.
    TimedOut,
    /// The command failed, with this code, after it printed this.
    Failed { error: String, code: u8, printed: Vec<u8> },
}

pub(crate) fn run(options: &Options) -> Result<Exit, Failure> {
    let connection = Connection::open()?;
    let mut line = Line::new(connection.input, connection.output, u64::from(std::process::id()));
    match make(&mut line, options)? {
        End::Printed(text) => print(&text).map(|()| Exit::Done),
        End::TimedOut => Ok(Exit::WaitTimedOut),
        End::Failed { error, code, printed } => {
            print(&printed)?;
            #[expect(clippy::print_stderr, reason = "the code that follows is not one of this program")]
            {
                eprintln!("error: {error}");
            }
            // A script sees what it would see without the step.
            std::process::exit(code.into())
        }
    }
}

fn print(text: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text).and_then(|()| out.flush()).map_err(|error| Failure::usage(format!("could not print: {error}")))
}

/// Makes one call, and says what is to be printed.
fn make<R: BufRead, W: Write>(line: &mut Line<R, W>, options: &Options) -> Result<End, Failure> {
    let answer = line.ask(call(options))?;
    let answer = match answer {
        Answer::Make { key, again } => {
            let made = tries(&Shell { words: &options.command, json: options.json, key: &key, again }, options.retries);
            line.made(made)?
        }
        answer => answer,
    };
    match answer {
        Answer::Value(value) => end(options, &value),
        Answer::Error(error) => {
            let StepError { text, code, stdout, .. } = error;
            Ok(End::Failed { error: text, code: code.unwrap_or(1).max(1), printed: printed(&stdout) })
        }
        Answer::Make { .. } => Err(line::unexpected("it asks to make a step that was made")),
    }
}

fn tries(shell: &Shell<'_>, retries: u32) -> Result<Value, Box<StepError>> {
    let mut pause = PAUSE;
    for left in (0..=retries).rev() {
        match shell.run() {
            Tried::Done(value) => return Ok(value),
            Tried::Failed(error) if left == 0 => return Err(error.into()),
            Tried::Failed(_) => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(PAUSE_MAX);
            }
            // Another try would not change it.
            Tried::Wrong(error) => return Err(error.into()),
        }
    }
    Err(Box::default())
}

/// The call that the options ask for. What identifies it is `args`, so that its worker need not know the options.
fn call(options: &Options) -> Value {
    let seconds = |time: Duration| time.as_secs_f64();
    if let Some(name) = &options.name {
        let args = options.args.clone().unwrap_or_else(|| json!(options.command));
        return json!({"kind": "step", "name": name, "effects": options.effects, "args": args});
    }
    if let Some(time) = options.sleep {
        return json!({"kind": "sleep", "name": "", "for": seconds(time), "args": [seconds(time)]});
    }
    if let Some(time) = &options.until {
        return json!({"kind": "sleep", "name": "", "until": time, "args": [time]});
    }
    if let Some(prompt) = &options.ask {
        let kind = match (options.options.is_empty(), options.many, options.confirm) {
            (_, _, true) => "confirm",
            (true, ..) => "text",
            (false, true, _) => "checkbox",
            (false, false, _) => "choose",
        };
        let mut question = json!({"kind": kind, "prompt": prompt});
        if !options.options.is_empty() {
            question["options"] = json!(options.options);
        }
        if let Some(timeout) = options.timeout {
            question["timeout_us"] = json!(u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX));
        }
        if let Some(default) = &options.default {
            question["default"] = json!(default);
        }
        return json!({"kind": "ask", "name": kind, "question": question, "args": question});
    }
    if let Some(agent) = &options.spawn {
        let input = options.input.clone().unwrap_or_else(|| json!({}));
        let mut call = json!({"kind": "spawn", "name": agent, "agent": agent, "input": input, "args": input});
        if let Some(timeout) = options.timeout {
            call["timeout"] = json!(seconds(timeout));
        }
        return call;
    }
    if let Some(call) = options.search.call() {
        return call;
    }
    let channel = options.receive.as_deref().unwrap_or_default();
    let mut call = json!({"kind": "receive", "name": channel, "args": []});
    if let Some(timeout) = options.timeout {
        call["for"] = json!(seconds(timeout));
    }
    call
}

/// What a call that has a value prints.
fn end(options: &Options, value: &Value) -> Result<End, Failure> {
    if options.name.is_some() {
        return Ok(End::Printed(printed(&value["stdout"])));
    }
    if options.sleep.is_some() || options.until.is_some() {
        return Ok(End::Printed(Vec::new()));
    }
    if options.search.is_asked() {
        return Ok(search::end(value, options.json));
    }
    if options.spawn.is_some() {
        let why = [&value["error"], &value["refused"]].into_iter().find(|why| !why.is_null());
        return Ok(match why {
            Some(_) if value["timed_out"] == true => End::TimedOut,
            Some(why) => {
                let why = why.as_str().map_or_else(|| why.to_string(), str::to_owned);
                End::Failed { error: why, code: Exit::JobFailed as u8, printed: Vec::new() }
            }
            None => End::Printed(json_line(&value["data"])),
        });
    }
    if value.is_null() {
        return Ok(End::TimedOut);
    }
    if options.json {
        return Ok(End::Printed(json_line(value)));
    }
    // A text is printed as it is, for scripts.
    let said = if options.receive.is_some() { &value["body"] } else { value };
    Ok(End::Printed(said.as_str().map_or_else(|| json_line(said), |text| format!("{text}\n").into_bytes())))
}

fn json_line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

/// What a command printed: text as it was, JSON in one line.
fn printed(stdout: &Value) -> Vec<u8> {
    match stdout {
        Value::Null => Vec::new(),
        Value::String(text) => text.clone().into_bytes(),
        value => json_line(value),
    }
}

#[cfg(test)]
mod tests;
