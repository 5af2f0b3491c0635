//! `atlasctl job events`.

use serde_json::Value;

use crate::api::{self, JobEvent};
use crate::context::Context;
use crate::ending::waits;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Form, Shown};
use crate::words;

/// Which job.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The job's id, or a unique beginning of it.
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    id: String,
    /// Goes on until the job has ended.
    #[arg(short, long)]
    follow: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let mut query = vec![("view", "full")];
    if !options.follow {
        query.push(("follow", "false"));
    }
    // One document needs all events; every other form prints each as it comes.
    let whole = matches!(context.form, Form::Json | Form::Yaml);
    let mut collected = Vec::new();
    client
        .events(&["api", "jobs", &options.id, "events"], &query, |frame| {
            let value: Value = serde_json::from_str(&frame.data).map_err(Failure::answer)?;
            if whole {
                collected.push(value);
                return Ok(true);
            }
            let event: JobEvent = api::read(&value)?;
            let names = vec![format!("job/{}", event.job.id)];
            context.show(&Shown { text: line(&event), value, names })?;
            Ok(true)
        })
        .await?;
    if whole {
        context.show(&Shown { value: Value::Array(collected), text: String::new(), names: Vec::new() })?;
    }
    Ok(Exit::Done)
}

/// `12:01:07.205  +1 ms  granted    laptop, attempt 1`
pub(crate) fn line(event: &JobEvent) -> String {
    let job = &event.job;
    let since = words::milliseconds((event.timestamp - job.created_at) * 1000.0);
    let what = if event.change.is_empty() { &event.new_status } else { &event.change };
    let detail = match what.as_str() {
        "submitted" => job.agent(),
        "granted" | "started" if !job.node.is_empty() => format!("{}, attempt {}", job.node, job.attempt),
        "ended" if job.error.is_empty() => job.status.clone(),
        "ended" => format!("{}: {}", job.status, job.error),
        _ => waits(job),
    };
    format!("{}  {:<9}  {what:<10}  {detail}\n", words::time_of_day(event.timestamp), format!("+{since}"))
}
