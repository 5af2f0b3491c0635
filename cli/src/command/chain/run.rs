//! `atlasctl chain run`: runs a chain, waits for its end and prints its output.

use std::cell::Cell;
use std::time::Duration;

use atlas_env::Env;
use serde_json::{Value, json};

use super::definition;
use super::tree::{title, tree_of};
use crate::client::Client;
use crate::command::chain_run;
use crate::command::run::{Attending, family};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{self, Source};
use crate::output::Shown;
use crate::words;

/// Longest wait of one request.
const WAIT_STEP: Duration = Duration::from_secs(30);
/// The same while each new step is reported.
const FOLLOW_STEP: Duration = Duration::from_millis(250);

/// Most characters of an output that is shown beside an error; atlasctl job show has all of it.
const RETURNED_MAX: usize = 2_000;

/// Options of `atlasctl chain run`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// A YAML file with a definition, or the name of a stored chain.
    #[arg(value_name = "FILE|NAME")]
    chain: String,
    /// Input: one JSON object, or key=value arguments (key=@FILE reads the text of a file).
    #[arg(value_name = "JSON|KEY=VALUE")]
    words: Vec<String>,
    /// Input as JSON, @FILE, or - for stdin.
    #[arg(short, long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    input: Option<String>,
    /// Print only the id of the run and return immediately.
    #[arg(short, long, conflicts_with = "follow")]
    detach: bool,
    /// Report each step, and stream its log lines and models' answers to stderr.
    #[arg(short, long)]
    follow: bool,
    /// Priority of its jobs; higher runs first.
    #[arg(short, long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i64,
    /// Maximum time to wait; the run continues after that.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    timeout: Option<Duration>,
    /// Idempotency key; a repeated request with the same key returns the first run.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

/// A run to start, and how far to go along with it.
pub(crate) struct Start<'a> {
    /// A definition, or the name of a stored chain.
    pub(crate) chain: Value,
    pub(crate) input: Value,
    pub(crate) priority: i64,
    pub(crate) detach: bool,
    pub(crate) follow: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) idempotency_key: Option<&'a str>,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let (client, chain) = (context.client()?, definition::chain(&options.chain)?);
    let input = match input::source(&options.words, options.input.as_deref())? {
        Source::Whole(value) => value,
        Source::Pairs(pairs) => input::object(pairs, &definition::input_schema(&client, &chain).await)?,
    };
    let wanted = Start {
        chain,
        input,
        priority: options.priority,
        detach: options.detach,
        follow: options.follow,
        timeout: options.timeout,
        idempotency_key: options.idempotency_key.as_deref(),
    };
    start(context, &client, &wanted).await
}

/// Starts a run, waits for its end and prints its output.
pub(crate) async fn start(context: &Context, client: &Client, start: &Start<'_>) -> Result<Exit, Failure> {
    let body = json!({"chain": start.chain, "input": start.input, "priority": start.priority});
    let path = ["api", "chains"];
    let started = match start.idempotency_key {
        Some(key) => client.post_named(&path, &[], &body, key).await?,
        None => client.post(&path, &[], &body).await?,
    };
    let id = started["id"].as_str().ok_or_else(|| Failure::answer("a run is answered with an id"))?.to_owned();
    if start.detach {
        context.show(&Shown { value: started, text: format!("{id}\n"), names: vec![id.clone()] })?;
        context.next(&format!("next: atlasctl job wait {id}   or: atlasctl job logs {id} --follow"));
        return Ok(Exit::Done);
    }
    let waited = tokio::select! {
        waited = attend(context, client, &id, start) => Some(waited?),
        // Ctrl-C ends this program, not the run.
        _ = tokio::signal::ctrl_c() => None,
    };
    let Some(run) = waited else {
        context.note(&format!("{id} continues"));
        context.next(&format!("next: atlasctl job wait {id}   or: atlasctl job cancel {id}"));
        return Ok(Exit::WaitTimedOut);
    };
    if !start.follow {
        context.note(&tree_of(client, &run).await);
    }
    conclude(context, run)
}

/// Waits until a run has ended, or the time is over, and returns it.
pub(crate) async fn wait(client: &Client, id: &str, timeout: Option<Duration>) -> Result<Value, Failure> {
    wait_in_steps(client, id, timeout, WAIT_STEP, async |_, _| Ok(())).await
}

/// The same, and meanwhile reports the steps if that is wanted.
async fn attend(context: &Context, client: &Client, id: &str, start: &Start<'_>) -> Result<Value, Failure> {
    if !start.follow {
        return wait(client, id, start.timeout).await;
    }
    let reported = Cell::new(0);
    let each = async |run: &Value, left| {
        reported.set(follow(context, client, run, reported.get(), left).await?);
        Ok(())
    };
    wait_in_steps(client, id, start.timeout, FOLLOW_STEP, each).await
}

/// Waits at most `step_max` in one request, and calls `each` with the run and the time that is left after it.
async fn wait_in_steps(
    client: &Client,
    id: &str,
    timeout: Option<Duration>,
    step_max: Duration,
    each: impl AsyncFn(&Value, Option<Duration>) -> Result<(), Failure>,
) -> Result<Value, Failure> {
    let clock = Env::system().clock;
    let deadline = timeout.map(|timeout| clock.monotonic() + timeout);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_sub(clock.monotonic()));
        let step = format!("{:.3}", left.unwrap_or(step_max).min(step_max).as_secs_f64());
        let run = client.get(&["api", "chains", id], &[("wait", &step), ("view", "full")]).await?;
        each(&run, left).await?;
        if run["result"].is_object() || left.is_some_and(|left| left <= step_max) {
            return Ok(run);
        }
    }
}

/// Follows the jobs of the steps that were not `reported` yet; returns how many are.
async fn follow(
    context: &Context,
    client: &Client,
    run: &Value,
    reported: usize,
    timeout: Option<Duration>,
) -> Result<usize, Failure> {
    let steps = run["step_jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    if reported == 0 && !steps.is_empty() {
        context.note(&title(run));
    }
    for step in steps.iter().skip(reported) {
        let mut job = step["job_id"].as_str().unwrap_or_default().to_owned();
        let attending = Attending { timeout, follow: true, no_retry_wait: false };
        family(context, client, &mut job, attending, Env::system().clock.monotonic()).await?;
    }
    Ok(steps.len())
}

/// Prints the output of a completed run; any other end is an error.
pub(crate) fn conclude(context: &Context, run: Value) -> Result<Exit, Failure> {
    let exit = chain_run::exit(&run);
    if !context.form.is_text() {
        let names = vec![run["id"].as_str().unwrap_or_default().to_owned()];
        context.show(&Shown { value: run, text: String::new(), names })?;
        return Ok(exit);
    }
    if let Some(output) = chain_run::returned(&run) {
        context.note(&format!("the agent returned: {}", words::short(&output, RETURNED_MAX)));
    }
    context.print(&output(&run, exit)?)?;
    Ok(Exit::Done)
}

/// The output of a completed run as a line.
fn output(run: &Value, exit: Exit) -> Result<String, Failure> {
    let id = run["id"].as_str().unwrap_or_default();
    if let (Exit::JobFailed, Some(failure)) = (exit, chain_run::failure(run)) {
        return Err(failure);
    }
    let (code, message, next) = match exit {
        Exit::Done => return Ok(format!("{}\n", run["result"]["output"])),
        Exit::JobCancelled => {
            ("E3102", format!("{id} was cancelled"), format!("what was done: atlasctl job show {id}"))
        }
        _ => {
            let message = format!("{id} has not ended within the timeout; it continues");
            ("E3104", message, format!("wait again: atlasctl job wait {id}"))
        }
    };
    Err(Failure::new(code, exit, message).with_next(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_completed_execution_has_an_output() {
        let run = json!({
            "id": "chain-1", "status": "failed", "total_steps": 2,
            "result": {"output": {"a": 1}, "error": "Agent failed at step 0 (a): boom"},
            "failure": {"step": 0, "agent": "a", "job_id": "job-1", "reason": "boom", "at": null, "output": null},
        });
        assert_eq!(output(&run, Exit::Done).as_deref(), Ok("{\"a\":1}\n"));
        let failed = output(&run, Exit::JobFailed).expect_err("it failed");
        assert_eq!(failed.message, "step 1 of 2 (a) failed: boom");
        for (exit, code) in [(Exit::JobCancelled, "E3102"), (Exit::WaitTimedOut, "E3104")] {
            assert_eq!(output(&run, exit).expect_err("no output").code.as_deref(), Some(code));
        }
    }
}
