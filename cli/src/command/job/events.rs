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

/// `12:01:07.205  +1 ms   leased     laptop, epoch 1, token 318`; the end has a line for what came out as well.
pub(crate) fn line(event: &JobEvent) -> String {
    let job = &event.job;
    let since = match event.timestamp - job.created_at {
        since if since <= 0.0 => "+0".to_owned(),
        since => format!("+{}", words::milliseconds(since * 1000.0)),
    };
    let line = |what: &str, detail: &str| {
        format!("{}  {since:<9}  {what:<11}  {detail}", words::time_of_day(event.timestamp)).trim_end().to_owned()
            + "\n"
    };
    let what = if event.change.is_empty() { &event.new_status } else { &event.change };
    match what.as_str() {
        "submitted" => {
            let key = if job.request_id.is_empty() { "none" } else { &job.request_id };
            line("accepted", &format!("log {}, idempotency key {key}", job.log))
        }
        // History keeps no lease of an attempt that is over.
        "granted" if job.fencing_token == 0 => line("leased", &format!("{}, attempt {}", job.node, job.attempt)),
        "granted" => line("leased", &format!("{}, epoch {}, token {}", job.node, job.epoch, job.fencing_token)),
        "started" => line("started", &format!("attempt {} of {}", job.attempt, job.max_attempts)),
        "ended" => {
            let ran = format!("ran {}", words::milliseconds(job.execution_ms));
            let start =
                if job.warm { "warm".to_owned() } else { format!("cold start {}", words::milliseconds(job.warmup_ms)) };
            let how = match (job.status.as_str(), job.node.is_empty()) {
                ("completed", _) => format!("{start}, {ran}"),
                (_, _) if !job.error.is_empty() => job.error.clone(),
                (_, true) => "before it ran".to_owned(),
                (_, false) => format!("on {}", job.node),
            };
            let output = job.output_data.as_ref().filter(|_| job.status == "completed").map(|output| {
                line("output", &format!("{}, contract ok", words::bytes(output.to_string().len() as u64)))
            });
            output.unwrap_or_default() + &line(&job.status, &how)
        }
        what => line(what, &waits(job)),
    }
}
