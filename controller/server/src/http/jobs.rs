//! `/api/jobs` (compatibility §15.1).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atlas_api::types::{self, of};
use atlas_model::NanoDollars;
use atlas_service::{
    Caller, Decision, Error, ForkRequest, JobQuery, RetryRequest, Set, Shown, StepQuery, Submission, View,
};
use atlas_types::{AgentName, JobStatus, LABELS_MAX, Micros, QuestionRule, SubmitJob, Timestamp};
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::HttpDoor;
use super::answer::{self, Answer, Problem, Response, ready_json, with_warnings};
use super::members::Members;
use super::names::ignored_members;
use super::query::Query;
use super::request::Request;

/// When a list has reached this size, further large payloads are left out.
const LIST_BYTES_MAX: usize = 4 << 20;
/// The end of the year 9999.
const SECONDS_MAX: f64 = 253_402_300_799.0;
/// The bounds of the time limit of an execution: a millisecond, and three decades.
const TIMEOUT_S_MIN: f64 = 0.001;
const TIMEOUT_S_MAX: f64 = 1e9;
/// Most characters of a value that is shown.
const SHOWN_MAX: usize = 32;
/// The default time limit of `wait`.
const WAIT_DEFAULT: Duration = Duration::from_secs(60);

/// `POST /api/jobs`: answers 201 with the id. With `?wait=` it waits until the job has ended and returns the job.
pub(crate) async fn submit(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let body = request.body(door, door.limits.body_bytes_max).await?;
    let (mut submission, unknown) = read_submission(&body)?;
    let query = request.query();
    let warnings =
        ignored_members(of::<types::Submission>(), unknown.iter().map(String::as_str), query.flag("strict")?)?;
    submission.refuse = query.get("validate").as_deref() == Some("refuse");
    submission.only_agents = query.get("only").as_deref() == Some("agent");
    let (wait, family) = (query.seconds("wait", door.limits.wait_max)?, query.flag("family")?);
    submission.request_id = caller.request_id.clone();
    let answer = match wait {
        Some(wait) => {
            let until = door.env.clock.monotonic() + wait;
            let mut shown = door.service.submit_and_wait(caller, submission, wait).await?;
            if let (true, Some(next)) = (family, shown.job().successor) {
                let left = until.saturating_sub(door.env.clock.monotonic());
                shown = door.service.wait_family(caller, next, View::Plain, left).await?;
            }
            shown_job(StatusCode::OK, &shown, request.view())
        }
        None => {
            let id = door.service.submit(caller, submission).await?;
            answer::body(StatusCode::CREATED, &types::Id { id: id.to_string() })
        }
    };
    Ok(with_warnings(answer, warnings))
}

/// `GET /api/jobs`: newest first.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let query = request.query();
    let nothing = || Ok(ready_json(StatusCode::OK, b"[]".to_vec()));
    // A status or name that no job can have matches no jobs, as in Atlas for Python.
    let status = match query.filled("status").map(|text| text.parse::<JobStatus>()) {
        Some(Err(_)) => return nothing(),
        status => status.and_then(Result::ok),
    };
    let agent = match query.filled("agent").map(|text| AgentName::new(&text)) {
        Some(Err(_)) => return nothing(),
        agent => agent.and_then(Result::ok),
    };
    let time = |name| -> Result<Option<Timestamp>, Problem> {
        let Some(text) = query.filled(name) else { return Ok(None) };
        let seconds: f64 = text.parse().map_err(|_| Problem::malformed(format!("'{name}' must be Unix seconds")))?;
        Ok(Some(Timestamp((seconds * 1e6) as i64)))
    };
    let text = query.filled("text");
    let words = text.as_deref().map(atlas_history::words).unwrap_or_default();
    if text.is_some() && words.is_empty() {
        return nothing();
    }
    let before = match query.filled("before") {
        Some(id) => Some(door.service.job_id(caller, &id).await?),
        None => None,
    };
    let wanted = JobQuery {
        status,
        agent,
        labels: labels(&query)?,
        words,
        before,
        since: time("since")?,
        until: time("until")?,
        limit: query.limit(),
        offset: query.offset()?,
    };
    let view = request.view();
    let jobs = door.service.jobs(caller, &wanted, view, request.consistency()).await?;
    let mut body = vec![b'['];
    for (index, mut job) in jobs.into_iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        // Payloads are loaded one at a time. Beyond the limit, large payloads are not loaded and appear as null.
        if body.len() < LIST_BYTES_MAX {
            door.service.load(&mut job).await?;
        }
        job.write(&mut body, view);
    }
    body.push(b']');
    Ok(ready_json(StatusCode::OK, body))
}

/// The labels that a list asks for: each is a member `label=key=value`.
fn labels(query: &Query<'_>) -> Result<Vec<(String, String)>, Problem> {
    let given = query.members().filter(|(name, value)| name == "label" && !value.is_empty());
    let labels = given.map(|(_, label)| {
        let (key, value) = label.split_once('=').ok_or_else(|| Problem::malformed("'label' must be KEY=VALUE"))?;
        Ok((key.to_owned(), value.to_owned()))
    });
    let labels: Vec<_> = labels.collect::<Result<_, Problem>>()?;
    if labels.len() > LABELS_MAX {
        return Err(Problem::malformed(format!("'label' can be given at most {LABELS_MAX} times")));
    }
    Ok(labels)
}

/// `GET /api/jobs/{id}`; with `?wait=` as [`wait`].
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    if let Some(timeout) = request.query().seconds("wait", door.limits.wait_max)? {
        return waited(door, caller, request, id, timeout).await;
    }
    let id = door.service.job_id(caller, id).await?;
    let view = request.view();
    let shown = door.service.job(caller, id, view, request.consistency()).await?;
    Ok(shown_job(StatusCode::OK, &shown, view))
}

/// `GET /api/jobs/{id}/wait?timeout=`: waits until the job has ended or the timeout is reached and returns the job.
/// With `&family=true` it waits for the last retry.
pub(crate) async fn wait(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    let timeout = request.query().seconds("timeout", door.limits.wait_max)?.unwrap_or(WAIT_DEFAULT);
    waited(door, caller, request, id, timeout).await
}

async fn waited(door: &HttpDoor, caller: &Caller, request: &Request, id: &str, timeout: Duration) -> Answer {
    let (view, family) = (request.view(), request.query().flag("family")?);
    let id = door.service.job_id(caller, id).await?;
    let shown = match family {
        true => door.service.wait_family(caller, id, view, timeout).await?,
        false if request.query().flag("questions")? => door.service.wait_or_asked(caller, id, timeout).await?,
        false => door.service.wait(caller, id, view, timeout).await?,
    };
    Ok(shown_job(StatusCode::OK, &shown, view))
}

/// `GET /api/jobs/{id}/tree`: the job with the jobs that it spawned.
pub(crate) async fn tree(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    let id = door.service.job_id(caller, id).await?;
    let tree = door.service.tree(caller, id, request.consistency()).await?;
    let mut body = Vec::with_capacity(4096);
    tree.write(&mut body);
    Ok(ready_json(StatusCode::OK, body))
}

/// `GET /api/jobs/{id}/explain`: why the job waits, and what would start it.
pub(crate) async fn explain(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    let id = door.service.job_id(caller, id).await?;
    let explained = door.service.explain(caller, id, request.consistency()).await?;
    Ok(ready_json(StatusCode::OK, explained.to_string().into_bytes()))
}

/// `DELETE /api/jobs/{id}`: cancels a pending job. The answer is false for any other job (compatibility §6.2).
pub(crate) async fn delete(door: &HttpDoor, caller: &Caller, id: &str) -> Answer {
    let cancelled = match door.service.job_id(caller, id).await {
        Ok(id) => door.service.cancel(caller, id, false).await,
        Err(error) => Err(error),
    };
    match cancelled {
        Ok(cancelled) => Ok(told_cancelled(cancelled)),
        Err(Error::UnknownJob) => Ok(told_cancelled(false)),
        Err(error) => Err(error.into()),
    }
}

/// `POST /api/jobs/{id}/cancel`: cancels a pending or running job.
pub(crate) async fn cancel(door: &HttpDoor, caller: &Caller, id: &str) -> Answer {
    let id = door.service.job_id(caller, id).await?;
    Ok(told_cancelled(door.service.cancel(caller, id, true).await?))
}

/// `GET /api/jobs/{id}/steps?after=&limit=`: the recorded steps of the job.
pub(crate) async fn steps(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    let query = StepQuery { after: request.query().count("after")?, limit: request.query().limit() };
    let id = door.service.job_id(caller, id).await?;
    let steps = door.service.steps(caller, id, query, request.consistency()).await?;
    let mut body = Vec::with_capacity(4096);
    steps.write(&mut body);
    Ok(ready_json(StatusCode::OK, body))
}

/// `GET /api/jobs/{id}/receipt`: what is known about a job that has ended, to be verified anywhere.
pub(crate) async fn receipt(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    let id = door.service.job_id(caller, id).await?;
    let receipt = door.service.receipt(caller, id, request.consistency()).await?;
    let receipt =
        types::Receipt { job: id.to_string(), head: receipt.head().to_string(), lines: receipt.lines().to_vec() };
    Ok(answer::body(StatusCode::OK, &receipt))
}

/// `POST /api/jobs/{id}/retry`: runs an ended job again, as a new one; with `?resume=true` from its recorded steps on.
pub(crate) async fn retry(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    let query = request.query();
    let questions = query.filled("questions").map(|rule| question_rule(&rule)).transpose()?;
    let retry = RetryRequest { resume: query.flag("resume")?, questions, request_id: caller.request_id.clone() };
    let id = door.service.job_id(caller, id).await?;
    let new = door.service.retry(caller, id, retry).await?;
    Ok(answer::body(StatusCode::CREATED, &types::Id { id: new.to_string() }))
}

fn question_rule(text: &str) -> Result<QuestionRule, Problem> {
    text.parse().map_err(|why| Problem::malformed(format!("'questions': {why}")))
}

/// `POST /api/jobs/{id}/erase`: erases what was sent to and made by an ended job.
pub(crate) async fn erase(door: &HttpDoor, caller: &Caller, id: &str) -> Answer {
    let id = door.service.job_id(caller, id).await?;
    door.service.erase_job(caller, id).await?;
    Ok(answer::body(StatusCode::OK, &types::Erasure { erased: true }))
}

/// `POST /api/jobs:erase`: erases all jobs of a namespace.
pub(crate) async fn erase_all(door: &HttpDoor, caller: &Caller) -> Answer {
    door.service.erase_namespace(caller).await?;
    Ok(answer::body(StatusCode::OK, &types::Erasure { erased: true }))
}

/// `POST /api/jobs/{id}/fork`: `{"steps": N, "model": M, "version": V, "set": {"before": S, "values": {…}}}`.
pub(crate) async fn fork(door: &HttpDoor, caller: &Caller, request: &mut Request, id: &str) -> Answer {
    let body = request.json_text(door, door.limits.body_bytes_max).await?;
    let fork = ForkRequest { request_id: caller.request_id.clone(), ..read_fork(&body)? };
    let id = door.service.job_id(caller, id).await?;
    let new = door.service.fork(caller, id, &fork).await?;
    Ok(answer::body(StatusCode::CREATED, &types::Id { id: new.to_string() }))
}

fn read_fork(body: &[u8]) -> Result<ForkRequest, Problem> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Members {
        steps: u64,
        #[serde(default)]
        model: Option<String>,
        #[serde(default)]
        version: Option<String>,
        #[serde(default)]
        set: Option<SetMembers>,
    }
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct SetMembers {
        before: u64,
        values: serde_json::Map<String, serde_json::Value>,
    }
    let members: Members = serde_json::from_slice(body).map_err(|_| {
        Problem::malformed(
            "'steps' must be a whole number, 'model' and 'version' texts, 'set' an object with the whole number 'before' and the object \
             'values', and there are no other members",
        )
    })?;
    let Members { steps, model, version, set } = members;
    let set = set.map(|SetMembers { before, values }| Set { before, values });
    Ok(ForkRequest { steps, model, version, set, request_id: None })
}

/// `POST /api/jobs/{id}/resolve`: `{"run_again": true}`, `{"output": …}` or `{"error": text}` for a job in doubt.
pub(crate) async fn resolve(door: &HttpDoor, caller: &Caller, request: &mut Request, id: &str) -> Answer {
    let body = request.json_text(door, door.limits.body_bytes_max).await?;
    let decision = read_decision(&body)?;
    let id = door.service.job_id(caller, id).await?;
    let status = door.service.resolve_job(caller, id, decision).await?;
    let resolution = types::Resolution { id: id.to_string(), status: status.as_str().to_owned() };
    Ok(answer::body(StatusCode::OK, &resolution))
}

/// The decision in a body. Exactly one member must be present.
fn read_decision(body: &[u8]) -> Result<Decision, Problem> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Members<'a> {
        #[serde(default)]
        run_again: bool,
        #[serde(borrow, default)]
        output: Option<&'a RawValue>,
        #[serde(default)]
        error: Option<String>,
    }
    let one = || Problem::malformed("exactly one of 'run_again': true, 'output' and 'error' is required");
    let members: Members<'_> = serde_json::from_slice(body).map_err(|_| one())?;
    match (members.run_again, members.output, members.error) {
        (true, None, None) => Ok(Decision::RunAgain),
        (false, Some(output), None) => Ok(Decision::Completed(Bytes::copy_from_slice(output.get().as_bytes()))),
        (false, None, Some(error)) => Ok(Decision::Failed(error)),
        _ => Err(one()),
    }
}

fn told_cancelled(cancelled: bool) -> Response {
    answer::body(StatusCode::OK, &types::Cancellation { cancelled })
}

fn shown_job(status: StatusCode, shown: &Shown, view: View) -> Response {
    let mut body = Vec::with_capacity(1024);
    shown.write(&mut body, view);
    ready_json(status, body)
}

/// A submission, and the members of the body that mean nothing.
pub(crate) fn read_submission(body: &Bytes) -> Result<(Submission, Vec<String>), Problem> {
    let members: Members<'_> = serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Problem::malformed("the body must be a JSON object"),
        _ => Problem::malformed("Invalid JSON"),
    })?;
    let agent = read_agent(members.get("agent"))?;
    let input = match members.get("input") {
        // The text is part of the body, so it is shared and not copied.
        Some(input) => body.slice_ref(input.get().as_bytes()),
        None => Bytes::from_static(b"{}"),
    };
    let mut submission = Submission::new(agent, input);
    submission.priority = members.get("priority").map_or(Ok(0), read_priority)?;
    if let Some(version) = members.get("version") {
        submission.version = read(version, "'version' must be a string")?;
    }
    if let Some(labels) = members.get("labels") {
        let labels: Option<BTreeMap<String, String>> = read(labels, "'labels' must be an object of strings")?;
        submission.labels = labels.unwrap_or_default().into();
    }
    if let Some(timeout) = members.get("timeout") {
        let seconds: Option<f64> = read(timeout, "'timeout' must be a number of seconds")?;
        if !seconds.is_none_or(|seconds| (TIMEOUT_S_MIN..=TIMEOUT_S_MAX).contains(&seconds)) {
            let bounds = format!("it must be from {TIMEOUT_S_MIN} to {TIMEOUT_S_MAX} seconds");
            return Err(Problem::malformed(format!("'timeout' is {}; {bounds}", shown(timeout))));
        }
        submission.execution_timeout = seconds.map(|seconds| Micros((seconds * 1e6) as u64));
    }
    if let Some(at) = members.get("at") {
        let seconds: Option<f64> = read(at, "'at' must be Unix seconds")?;
        if seconds.is_some_and(|seconds| !(0.0..=SECONDS_MAX).contains(&seconds)) {
            let bounds = "it must be Unix seconds from 1970 to the year 9999";
            return Err(Problem::malformed(format!("'at' is {}; {bounds}", shown(at))));
        }
        submission.not_before = seconds.map(|seconds| Timestamp((seconds * 1e6) as i64));
    }
    if let Some(budget) = members.get("budget_usd") {
        submission.budget_nanodollars = read_budget(budget)?;
    }
    if let Some(name) = members.get("conversation") {
        submission.continues = read(name, "'conversation' must be a string")?;
    }
    if let Some(rule) = members.get("unsatisfiable") {
        submission.waits_for_node = read_unsatisfiable(rule)?;
    }
    if let Some(title) = members.get("title") {
        submission.title = read_title(title)?;
    }
    if let Some(rule) = members.get("questions") {
        let rule: Option<String> = read(rule, "'questions' must be a string")?;
        submission.questions = rule.map(|rule| question_rule(&rule)).transpose()?.unwrap_or_default();
    }
    let known: Vec<&str> = of::<types::Submission>().members().collect();
    Ok((submission, members.without(&known)))
}

/// The beginning of a value, for an error.
fn shown(value: &RawValue) -> String {
    value.get().chars().take(SHOWN_MAX).collect()
}

fn read<'a, T: Deserialize<'a>>(value: &'a RawValue, wrong: &str) -> Result<T, Problem> {
    serde_json::from_str(value.get()).map_err(|_| Problem::malformed(wrong))
}

/// The agent name. A missing member counts as missing, and so does every value that is false in Python.
fn read_agent(value: Option<&RawValue>) -> Result<AgentName, Problem> {
    let missing = || Problem::malformed("Missing 'agent' field");
    let value = value.ok_or_else(missing)?;
    let falsy = ["null", "false", "0", "0.0", "-0", "-0.0", "\"\"", "[]", "{}"];
    if falsy.contains(&value.get()) {
        return Err(missing());
    }
    let name: String = read(value, "'agent' must be a string")?;
    Ok(AgentName::new(&name).map_err(Error::from)?)
}

/// The budget: US dollars as a number, or as a text such as `"0.01"`, which is exact.
fn read_budget(value: &RawValue) -> Result<Option<u64>, Problem> {
    let wrong = || Problem::malformed("'budget_usd' must be US dollars such as \"0.01\"");
    // A number is read by its digits and not as a binary fraction.
    let text = match value.get() {
        "null" => return Ok(None),
        text if text.starts_with('"') => read(value, "'budget_usd' must be US dollars such as \"0.01\"")?,
        text => text.to_owned(),
    };
    let budget: NanoDollars = text.parse().map_err(|_| wrong())?;
    Ok(Some(budget.0))
}

/// What happens to a job that no registered node could run: whether it waits for one.
fn read_unsatisfiable(value: &RawValue) -> Result<Option<bool>, Problem> {
    let wrong = "'unsatisfiable' must be \"wait\" or \"fail\"";
    match read::<Option<String>>(value, wrong)?.as_deref() {
        None => Ok(None),
        Some("wait") => Ok(Some(true)),
        Some("fail") => Ok(Some(false)),
        Some(_) => Err(Problem::malformed(wrong)),
    }
}

/// The title; an empty one is none.
fn read_title(value: &RawValue) -> Result<Option<Arc<str>>, Problem> {
    let most = SubmitJob::TITLE_MAX;
    let wrong =
        format!("'title' must be one line of text, at most {most} characters, none of which controls how it is shown");
    let title = read::<Option<String>>(value, &wrong)?.unwrap_or_default();
    // Separators of lines and paragraphs, and what shows text in another order than it is in.
    let controls = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if title.chars().count() > most || title.contains(controls) {
        return Err(Problem::malformed(wrong));
    }
    Ok((!title.is_empty()).then(|| title.into()))
}

/// The priority: a whole number, a fraction, which is truncated, or a text of digits (compatibility §15.1).
fn read_priority(value: &RawValue) -> Result<i64, Problem> {
    let wrong = || Problem::malformed("'priority' must be a whole number");
    let text = value.get();
    if let Ok(number) = text.parse::<i64>() {
        return Ok(number);
    }
    match text.as_bytes().first() {
        Some(b'"') => {
            let digits: String = read(value, "'priority' must be a whole number")?;
            digits.trim().parse().map_err(|_| wrong())
        }
        Some(b't') => Ok(1),
        Some(b'f') => Ok(0),
        Some(b'-' | b'0'..=b'9') => {
            let number: f64 = text.parse().map_err(|_| wrong())?;
            let whole = number.trunc();
            // A number beyond 2^63 is not a valid priority.
            if whole.abs() < 9.2e18 { Ok(whole as i64) } else { Err(wrong()) }
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests;
