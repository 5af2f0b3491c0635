//! `atlasctl job batch`: cancels or retries many jobs, after showing how many.

use atlas_api::types::Job;
use serde_json::{Value, json};

use crate::answers;
use crate::client::Client;
use crate::command::job::list;
use crate::command::job::pages::PAGE;
use crate::confirm;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// Verbs of `atlasctl job batch`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Cancels the matching jobs that have not ended.
    Cancel(Options),
    /// Runs the matching failed and cancelled jobs again, each as a new job.
    Retry(Options),
}

/// Options of both verbs.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Count and list the jobs without changing anything.
    #[arg(long)]
    dry_run: bool,
    /// Skip the confirmation.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    which: list::Options,
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    let (options, word, path, fits): (_, _, _, &[&str]) = match verb {
        Verb::Cancel(options) => (options, "cancel", "cancel", &["pending", "running"]),
        Verb::Retry(options) => (options, "retry", "retry", &["failed", "cancelled"]),
    };
    let client = context.client()?;
    let jobs = matching(&client, &options.which, fits, context.look.now).await?;
    let count = words::count(jobs.len() as u64, "job");
    let names = || jobs.iter().map(|job| format!("job/{}", job.id)).collect::<Vec<_>>();
    if options.dry_run || jobs.is_empty() {
        context.note(&format!("{count} to {word}"));
        let text = jobs.iter().map(|job| format!("{}  {}  {}\n", job.id, job.agent(), job.standing())).collect();
        let value = jobs.iter().map(|job| json!({"id": job.id})).collect();
        context.show(&Shown { value, text, names: names() })?;
        return Ok(Exit::Done);
    }
    if !options.yes && !confirm::agreed(&format!("{word} {count}? [y/N] "))? {
        let failure = Failure::new("E0113", Exit::Usage, format!("nothing was changed: {count} to {word}"));
        return Err(failure.with_next("confirm: --yes   or preview: --dry-run"));
    }
    let mut answers = Vec::new();
    let mut exit = Exit::Done;
    for job in &jobs {
        match client.post(&["api", "jobs", &job.id, path], &[], &json!({})).await {
            Ok(answer) => answers.push(json!({"job": job.id, "answer": answer})),
            // A job that has changed since the list was read does not stop the others.
            Err(failure) if matches!(failure.exit, Exit::Conflict | Exit::NotFound) => {
                context.note(&format!("{}  {}", job.id, failure.message));
                exit = Exit::Short;
            }
            Err(failure) => return Err(failure),
        }
    }
    let new = |answer: &Value| answer["answer"]["id"].as_str().map(|id| format!("  → {id}")).unwrap_or_default();
    let line = |answer: &Value| format!("{}{}\n", answer["job"].as_str().unwrap_or_default(), new(answer));
    let text = answers.iter().map(line).collect();
    context.show(&Shown { value: Value::Array(answers), text, names: names() })?;
    Ok(exit)
}

/// All jobs that match the options and have one of the statuses `fits`, without a limit on their number.
async fn matching(client: &Client, which: &list::Options, fits: &[&str], now: f64) -> Result<Vec<Job>, Failure> {
    list::check(&which.list, &[])?;
    let limit = which.list.limit().map_or(usize::MAX, |limit| limit as usize);
    let mut jobs = Vec::new();
    for status in fits.iter().filter(|status| which.status.as_ref().is_none_or(|wanted| wanted == *status)) {
        let mut pages = list::pages(client, &which.of_status(status), now);
        loop {
            let page = pages.next(PAGE).await?;
            if page.is_empty() {
                break;
            }
            for value in page {
                let job: Job = answers::read(&value)?;
                if which.admits(&value, &job, now)? {
                    // Inputs and outputs are not needed here; dropping them saves memory.
                    jobs.push(Job { input_data: Value::Null, output_data: None, ..job });
                }
            }
        }
    }
    jobs.sort_by(|left, right| right.created_at.total_cmp(&left.created_at));
    jobs.truncate(limit);
    Ok(jobs)
}
