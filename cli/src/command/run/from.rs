//! `atlasctl run --from`: a job for each line of a file.
//!
//! Jobs are sent in slices, each with its own idempotency key, so that a repeated slice submits no job twice. While the
//! queue is full, the rest waits; a slice is sent when the previous one is complete, which keeps the order.

mod results;

use std::time::Duration;

use atlas_env::Env;
use serde_json::{Map, Value, json};

use super::{Options, members};
use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;

/// Maximum number of jobs and maximum size of one request.
const SLICE_JOBS: usize = 500;
const SLICE_BYTES: usize = 1 << 20;
/// How long the controller may wait for room in the queue before it answers, in seconds.
const QUEUE_WAIT: &str = "20";
/// The pause before jobs are sent again if the controller names none.
const PAUSE: Duration = Duration::from_secs(1);

/// A line that is not empty.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    /// The number of the line in the file, from 1.
    number: usize,
    job: Value,
}

/// The result of a line: the id of its job, or the problem why it was refused.
type Settled = Result<String, Value>;

pub(super) async fn run(context: &Context, options: &Options, file: &str) -> Result<Exit, Failure> {
    let text = if file == "-" { input::read_stdin()? } else { input::read_file(file.as_ref())? };
    let lines = lines(context, options, &text)?;
    let client = context.client()?;
    let mut settled = Vec::new();
    let mut ended = Ok(());
    for slice in slices(&lines) {
        ended = submit(context, &client, slice, &mut settled).await;
        if ended.is_err() {
            break;
        }
    }
    // The submitted jobs are reported even if the others failed.
    let refused = settled.iter().filter(|settled| settled.is_err()).count();
    let told = format!("{} of {} submitted, {refused} refused", settled.len() - refused, lines.len());
    if options.wait {
        context.note(&told);
        let waited = results::print(context, &client, options, &lines, &settled).await;
        ended?;
        return waited;
    }
    let all = lines.iter().zip(&settled).map(|(line, settled)| match settled {
        Ok(id) => results::submitted(id),
        Err(problem) => results::refusal(line.number, problem),
    });
    context.show(&results::together(all.collect()))?;
    context.note(&told);
    ended?;
    Ok(if refused == 0 { Exit::Done } else { Exit::Invalid })
}

/// The job of each line, with its own idempotency key. A line that is not a job is an error before any job is submitted.
fn lines(context: &Context, options: &Options, text: &str) -> Result<Vec<Line>, Failure> {
    let base = members(context, options)?;
    let key = options.idempotency_key.clone();
    let key = key.unwrap_or_else(|| format!("atlasctl-{:032x}", Env::system().entropy.u128()));
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = at + 1;
        let wrong = |what: &str| Failure::usage(format!("line {number}: {what}; no job was submitted"));
        let value: Value = serde_json::from_str(line).map_err(|error| not_json(number, &error))?;
        let Value::Object(own) = value else { return Err(wrong("it is not a JSON object")) };
        let mut job = base.clone();
        if options.agent.is_some() {
            job.insert("input".to_owned(), Value::Object(own));
        } else if own.contains_key("agent") {
            job.extend(own);
        } else {
            let failure = wrong("it has no \"agent\"");
            return Err(failure.with_next("use one agent for all lines: atlasctl run AGENT --from FILE"));
        }
        let named: &mut Map<String, Value> = &mut job;
        named.entry("idempotency_key").or_insert_with(|| format!("{key}.{number}").into());
        lines.push(Line { number, job: Value::Object(job) });
    }
    Ok(lines)
}

/// The parser counts the lines of its own text, which is always one.
fn not_json(number: usize, error: &serde_json::Error) -> Failure {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    Failure::usage(format!("line {number}, column {}: not JSON: {what}; no job was submitted", error.column()))
}

/// Splits the jobs into slices that each fit in one request, in order.
fn slices(jobs: &[Line]) -> Vec<&[Line]> {
    let (mut slices, mut from, mut bytes) = (Vec::new(), 0, 0);
    for (at, line) in jobs.iter().enumerate() {
        let size = line.job.to_string().len();
        if at > from && (at - from >= SLICE_JOBS || bytes + size > SLICE_BYTES) {
            slices.push(&jobs[from..at]);
            (from, bytes) = (at, 0);
        }
        bytes += size;
    }
    if from < jobs.len() {
        slices.push(&jobs[from..]);
    }
    slices
}

/// Submits a slice until each of its jobs is settled.
async fn submit(context: &Context, client: &Client, slice: &[Line], settled: &mut Vec<Settled>) -> Result<(), Failure> {
    let clock = Env::system().clock;
    let mut results: Vec<Option<Settled>> = vec![None; slice.len()];
    let mut told = false;
    let ended = loop {
        let open: Vec<usize> = (0..slice.len()).filter(|&at| results[at].is_none()).collect();
        if open.is_empty() {
            break Ok(());
        }
        let pause = match send(client, slice, &open, &mut results).await {
            Ok(pause) => pause,
            Err(failure) => match failure.retry_after {
                Some(seconds) => Some(Duration::from_secs(seconds)),
                None => break Err(failure),
            },
        };
        if let Some(pause) = pause {
            if !told {
                context.note("the queue is full: waiting to submit the rest");
                told = true;
            }
            clock.sleep(pause.max(Duration::from_millis(100))).await;
        }
    };
    // After a failure only completed lines are reported, up to the first gap.
    settled.extend(results.into_iter().map_while(|result| result));
    ended
}

/// Sends the open jobs once; if some stay open, returns how long to wait before they are sent again.
async fn send(
    client: &Client,
    slice: &[Line],
    open: &[usize],
    results: &mut [Option<Settled>],
) -> Result<Option<Duration>, Failure> {
    let jobs: Vec<&Value> = open.iter().map(|&at| &slice[at].job).collect();
    let query = [("validate", "refuse"), ("queue_wait", QUEUE_WAIT)];
    let answer = match client.post(&["api", "jobs:batch"], &query, &json!({"jobs": jobs})).await {
        Ok(answer) => answer,
        // An older controller, which does not know this request.
        Err(failure) if matches!(failure.code.as_deref(), Some("E1107" | "E1108")) => {
            return one_by_one(client, slice, open, results).await;
        }
        Err(failure) => return Err(failure),
    };
    let all = answer["results"].as_array().filter(|all| all.len() == open.len());
    let all = all.ok_or_else(|| Failure::answer("a result for each job is expected"))?;
    for (&at, result) in open.iter().zip(all) {
        results[at] = match (result["id"].as_str(), &result["error"]) {
            (Some(id), _) => Some(Ok(id.to_owned())),
            (None, problem) if problem["retry_after_s"].is_u64() => None,
            (None, problem) => Some(Err(problem.clone())),
        };
    }
    Ok(answer["retry_after_s"].as_u64().map(Duration::from_secs))
}

/// Like [`send`], with one request per job.
async fn one_by_one(
    client: &Client,
    slice: &[Line],
    open: &[usize],
    results: &mut [Option<Settled>],
) -> Result<Option<Duration>, Failure> {
    for &at in open {
        let mut job = slice[at].job.clone();
        let key = job.as_object_mut().and_then(|job| job.remove("idempotency_key")).unwrap_or_default();
        let key = key.as_str().unwrap_or_default().to_owned();
        match client.post_named(&["api", "jobs"], &[("validate", "refuse")], &job, &key).await {
            Ok(answer) => {
                let id = answer["id"].as_str();
                let id = id.ok_or_else(|| Failure::answer("a submission is answered with an id"))?;
                results[at] = Some(Ok(id.to_owned()));
            }
            // The jobs after this one wait too, to keep the order.
            Err(failure) if failure.exit == Exit::Busy => {
                return Ok(Some(failure.retry_after.map_or(PAUSE, Duration::from_secs)));
            }
            Err(failure) if failure.exit == Exit::Unreachable => return Err(failure),
            Err(failure) => results[at] = Some(Err(failure.value()["error"].take())),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_keep_the_order_and_the_bounds() {
        let line = |number: usize| Line { number, job: json!({"agent": "a", "input": {"n": number}}) };
        let jobs: Vec<Line> = (0..1_201).map(line).collect();
        let lengths: Vec<usize> = slices(&jobs).iter().map(|slice| slice.len()).collect();
        assert_eq!(lengths, [500, 500, 201]);
        assert_eq!(slices(&jobs).concat(), jobs);
        let large = |bytes: usize| Line { number: 1, job: json!({"input": "x".repeat(bytes)}) };
        let jobs = [large(10), large(2 << 20), large(10), large(10)];
        let lengths: Vec<usize> = slices(&jobs).iter().map(|slice| slice.len()).collect();
        assert_eq!(lengths, [1, 1, 2]);
        assert!(slices(&[]).is_empty());
    }

    #[test]
    fn a_line_that_is_not_json_is_told_once() {
        let error = serde_json::from_str::<Value>("nope").expect_err("not JSON");
        let told = "error: line 3, column 2: not JSON: expected ident; no job was submitted";
        assert_eq!(not_json(3, &error).to_string(), told);
    }
}
