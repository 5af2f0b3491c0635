//! The log lines of all jobs of an execution.

use std::time::Duration;

use serde_json::Value;

use super::get;
use crate::api::LogLine;
use crate::client::Client;
use crate::command::job::{self, tree};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// Longest wait for the next step.
const NEXT_STEP: Duration = Duration::from_millis(500);

/// Which lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Whether to go on until the execution has ended.
    pub(crate) follow: bool,
    pub(crate) which: &'a job::WhichLines,
}

/// Prints the log lines of the jobs of an execution, each with the number of its step.
pub(crate) async fn logs(context: &Context, id: &str, wanted: Wanted<'_>) -> Result<Exit, Failure> {
    let client = context.client()?;
    if wanted.follow {
        return follow(context, &client, id, wanted).await;
    }
    let (mut kept, mut text) = (Vec::new(), String::new());
    for (place, job) in tree::jobs_of(&tree::read(&client, id).await?.0) {
        for (said, value) in so_far(&client, &job).await? {
            if let Some(shown) = shown(context, wanted, (&place, &job), &said, value) {
                text += &shown.text;
                kept.push(shown.value);
            }
        }
    }
    if kept.is_empty() {
        context.note(&format!("no job of {id} logged anything"));
    }
    context.show(&Shown { value: Value::Array(kept), text, names: Vec::new() })?;
    Ok(Exit::Done)
}

/// Follows the jobs of one step after the other, and their retries.
async fn follow(context: &Context, client: &Client, id: &str, wanted: Wanted<'_>) -> Result<Exit, Failure> {
    let mut followed = 0;
    loop {
        let run = get(client, id).await?;
        let steps = run["step_jobs"].as_array().cloned().unwrap_or_default();
        for step in steps.iter().skip(followed) {
            let place = tree::place(step);
            let mut next = step["job_id"].as_str().map(str::to_owned);
            while let Some(job) = next {
                job::follow_logs(client, &job, |said, value| {
                    shown(context, wanted, (&place, &job), said, value).map_or(Ok(()), |shown| context.show(&shown))
                })
                .await?;
                let ended = client.get(&["api", "jobs", &job], &[("view", "full")]).await?;
                next = ended["retried_by"].as_str().filter(|retry| !retry.is_empty()).map(str::to_owned);
            }
        }
        if run["result"].is_object() && steps.len() == followed {
            return Ok(Exit::Done);
        }
        if steps.len() == followed {
            // The answer comes when the execution ends, or after this time.
            let wait = format!("{:.3}", NEXT_STEP.as_secs_f64());
            client.get(&["api", "chains", id], &[("wait", &wait)]).await?;
        }
        followed = steps.len();
    }
}

/// The lines of a job so far; none if the job was removed.
async fn so_far(client: &Client, job: &str) -> Result<Vec<(LogLine, Value)>, Failure> {
    match job::logs_so_far(client, job).await {
        Err(failure) if failure.exit == Exit::NotFound => Ok(Vec::new()),
        lines => lines,
    }
}

/// A line with its step and its job; none if the options exclude it.
fn shown(
    context: &Context,
    wanted: Wanted<'_>,
    (place, job): (&str, &str),
    said: &LogLine,
    mut value: Value,
) -> Option<Shown> {
    if !wanted.which.admits(said, context.look.now) {
        return None;
    }
    value["job"] = job.into();
    let text = format!("{place}  {}", job::log_line(said));
    Some(Shown { value, text, names: Vec::new() })
}
