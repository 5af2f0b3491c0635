//! `atlasctl run --from`: a job for each line of a file.
//!
//! Jobs are sent in slices, each with its own idempotency key, so that a repeated slice submits no job twice. While the
//! queue is full, the rest waits; a slice is sent when the previous one is complete, which keeps the order.

use std::time::Duration;

use atlas_env::Env;
use serde_json::{Map, Value, json};

use super::{Options, members};
use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::output::Shown;

/// Maximum number of jobs and maximum size of one request.
const SLICE_JOBS: usize = 500;
const SLICE_BYTES: usize = 1 << 20;
/// How long the controller may wait for room in the queue before it answers, in seconds.
const QUEUE_WAIT: &str = "20";
/// The pause before jobs are sent again if the controller names none.
const PAUSE: Duration = Duration::from_secs(1);

/// The result of a line: the id of its job, or the problem why it was refused.
type Settled = Result<String, Value>;

pub(super) async fn run(context: &Context, options: &Options, file: &str) -> Result<Exit, Failure> {
    let text = if file == "-" { input::read_stdin()? } else { input::read_file(file.as_ref())? };
    let jobs = jobs(context, options, &text)?;
    let client = context.client()?;
    let mut settled = Vec::new();
    let mut ended = Ok(());
    for slice in slices(&jobs) {
        ended = submit(context, &client, slice, &mut settled).await;
        if ended.is_err() {
            break;
        }
    }
    // The submitted jobs are reported even if the others failed.
    let refused = settled.iter().filter(|settled| settled.is_err()).count();
    let names = settled.iter().flatten().map(|id| format!("job/{id}")).collect();
    let text = settled.iter().map(line).collect();
    let value = settled.iter().map(|settled| match settled {
        Ok(id) => json!({"id": id}),
        Err(problem) => json!({"error": problem}),
    });
    context.show(&Shown { value: value.collect(), text, names })?;
    context.note(&format!("{} of {} submitted, {refused} refused", settled.len() - refused, jobs.len()));
    ended?;
    Ok(if refused == 0 { Exit::Done } else { Exit::Invalid })
}

/// The job of each line, with its own idempotency key.
fn jobs(context: &Context, options: &Options, text: &str) -> Result<Vec<Value>, Failure> {
    let base = members(context, options)?;
    let key = options.idempotency_key.clone();
    let key = key.unwrap_or_else(|| format!("atlasctl-{:032x}", Env::system().entropy.u128()));
    let mut jobs = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: String| Failure::usage(format!("line {}: {what}", number + 1));
        let value: Value = serde_json::from_str(line).map_err(|error| wrong(format!("it is not JSON: {error}")))?;
        let Value::Object(own) = value else { return Err(wrong("it is not a JSON object".to_owned())) };
        let mut job = base.clone();
        if options.agent.is_some() {
            job.insert("input".to_owned(), Value::Object(own));
        } else if own.contains_key("agent") {
            job.extend(own);
        } else {
            let failure = wrong("it has no \"agent\"".to_owned());
            return Err(failure.with_next("use one agent for all lines: atlasctl run AGENT --from FILE"));
        }
        let named: &mut Map<String, Value> = &mut job;
        named.entry("idempotency_key").or_insert_with(|| format!("{key}.{}", number + 1).into());
        jobs.push(Value::Object(job));
    }
    Ok(jobs)
}

/// Splits the jobs into slices that each fit in one request, in order.
fn slices(jobs: &[Value]) -> Vec<&[Value]> {
    let (mut slices, mut from, mut bytes) = (Vec::new(), 0, 0);
    for (at, job) in jobs.iter().enumerate() {
        let size = job.to_string().len();
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
async fn submit(
    context: &Context,
    client: &Client,
    slice: &[Value],
    settled: &mut Vec<Settled>,
) -> Result<(), Failure> {
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
    slice: &[Value],
    open: &[usize],
    results: &mut [Option<Settled>],
) -> Result<Option<Duration>, Failure> {
    let jobs: Vec<&Value> = open.iter().map(|&at| &slice[at]).collect();
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
    slice: &[Value],
    open: &[usize],
    results: &mut [Option<Settled>],
) -> Result<Option<Duration>, Failure> {
    for &at in open {
        let mut job = slice[at].clone();
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

/// The line for a job: its id, or why it was refused.
fn line(settled: &Settled) -> String {
    match settled {
        Ok(id) => format!("{id}\n"),
        Err(problem) => {
            let text = |name: &str| problem[name].as_str();
            let why = text("detail").or(text("message")).unwrap_or("refused");
            format!("error[{}]: {why}\n", text("code").unwrap_or("E9001"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_keep_the_order_and_the_bounds() {
        let jobs: Vec<Value> = (0..1_201).map(|number| json!({"agent": "a", "input": {"n": number}})).collect();
        let lengths: Vec<usize> = slices(&jobs).iter().map(|slice| slice.len()).collect();
        assert_eq!(lengths, [500, 500, 201]);
        assert_eq!(slices(&jobs).concat(), jobs);
        let large = |bytes: usize| json!({"input": "x".repeat(bytes)});
        let jobs = [large(10), large(2 << 20), large(10), large(10)];
        let lengths: Vec<usize> = slices(&jobs).iter().map(|slice| slice.len()).collect();
        assert_eq!(lengths, [1, 1, 2]);
        assert!(slices(&[]).is_empty());
    }

    #[test]
    fn a_result_is_a_line() {
        assert_eq!(line(&Ok("job-1".to_owned())), "job-1\n");
        assert_eq!(line(&Err(json!({"code": "E1102", "detail": "no"}))), "error[E1102]: no\n");
    }
}
