//! The log lines of all jobs of a run.

use atlas_api::types::Line;
use serde_json::Value;

use crate::client::Client;
use crate::command::job::{self, tree};
use crate::context::Context;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// Which lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Whether to go on until the run has ended.
    pub(crate) follow: bool,
    pub(crate) which: &'a job::WhichLines,
}

/// Prints the log lines of the jobs of a run, each with the number of its step.
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
    let each = async |place: &str, job: &str| {
        job::follow_logs(client, job, |said, value| {
            shown(context, wanted, (place, job), said, value).map_or(Ok(()), |shown| context.show(&shown))
        })
        .await
    };
    context.as_one(false, super::follow_jobs(client, id, each)).await.map(|_| Exit::Done)
}

/// The lines of a job so far; none if the job was removed.
async fn so_far(client: &Client, job: &str) -> Result<Vec<(Line, Value)>, Failure> {
    match ending::logs_so_far(client, job).await {
        Err(failure) if failure.exit == Exit::NotFound => Ok(Vec::new()),
        lines => lines,
    }
}

/// A line with its step and its job; none if the options exclude it.
fn shown(
    context: &Context,
    wanted: Wanted<'_>,
    (place, job): (&str, &str),
    said: &Line,
    mut value: Value,
) -> Option<Shown> {
    if !wanted.which.admits(said, context.look.now) {
        return None;
    }
    value["job"] = job.into();
    let text = format!("{place}  {}", job::log_line(said));
    Some(Shown { value, text, names: Vec::new() })
}
