//! Verbs of jobs for the jobs of a run.

use std::time::Duration;

use serde_json::Value;

use super::get;
use crate::client::Client;
use crate::command::job::tree;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// Longest wait for the next step.
const NEXT_STEP: Duration = Duration::from_millis(500);

/// Runs a verb for each job of a run, in the order of the steps. json and yaml are an array, also of one job or none.
pub(crate) async fn each_job(
    context: &Context,
    id: &str,
    verb: impl AsyncFn(&str) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let jobs = tree::jobs_of(&tree::read(&context.client()?, id).await?.0);
    if jobs.is_empty() {
        context.note(&format!("no step of {id} has begun"));
    }
    let all = async {
        for (place, job) in jobs {
            context.note(&format!("step {place}: {job}"));
            verb(&job).await?;
        }
        Ok(Exit::Done)
    };
    context.as_one(true, all).await
}

/// Follows the jobs of one step after the other, and their retries, until the run has ended, and returns it. `each` gets the
/// place of the step and the job, and returns when the job has ended.
pub(crate) async fn follow_jobs(
    client: &Client,
    id: &str,
    each: impl AsyncFn(&str, &str) -> Result<(), Failure>,
) -> Result<Value, Failure> {
    let mut followed = 0;
    loop {
        let run = get(client, id).await?;
        let steps = run["step_jobs"].as_array().cloned().unwrap_or_default();
        for step in steps.iter().skip(followed) {
            let place = tree::place(step);
            let mut next = step["job_id"].as_str().map(str::to_owned);
            while let Some(job) = next {
                each(&place, &job).await?;
                let ended = client.get(&["api", "jobs", &job], &[("view", "full")]).await?;
                next = ended["retried_by"].as_str().filter(|retry| !retry.is_empty()).map(str::to_owned);
            }
        }
        if run["result"].is_object() && steps.len() == followed {
            return Ok(run);
        }
        if steps.len() == followed {
            // The answer comes when the run ends, or after this time.
            let wait = format!("{:.3}", NEXT_STEP.as_secs_f64());
            client.get(&["api", "chains", id], &[("wait", &wait)]).await?;
        }
        followed = steps.len();
    }
}

/// Explains what a run waits for: the jobs of its steps that have not ended, each with `verb`, or else the run
/// itself. json and yaml are an array of them.
pub(crate) async fn explain(
    context: &Context,
    id: &str,
    verb: impl AsyncFn(&str) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let client = context.client()?;
    let (family, run) = tree::read(&client, id).await?;
    let id = run["id"].as_str().unwrap_or(id).to_owned();
    let waits = tree::unfinished(&family);
    let all = async {
        for (place, job) in &waits {
            context.note(&format!("step {place}: {job}"));
            verb(job).await?;
        }
        if !waits.is_empty() {
            return Ok(Exit::Done);
        }
        let status = run["status"].as_str().unwrap_or_default();
        let text = match run["result"].is_object() {
            true => format!("{id}   not waiting: {status}\n"),
            false => format!("{id}   {status}   between two steps\n"),
        };
        context.show(&Shown { value: run, text, names: vec![id.clone()] })?;
        context.next(&format!("next: atlasctl job show {id}"));
        Ok(Exit::Done)
    };
    context.as_one(true, all).await
}

/// How a command ends that went along with a run.
pub(crate) fn exit(run: &Value) -> Exit {
    match run["status"].as_str().unwrap_or_default() {
        "completed" => Exit::Done,
        "failed" => Exit::JobFailed,
        "cancelled" => Exit::JobCancelled,
        _ => Exit::WaitTimedOut,
    }
}
