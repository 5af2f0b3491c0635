//! `atlasctl job list`.

use serde_json::Value;

use crate::api::Job;
use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Column, List, ListOptions, column, wide};
use crate::words;

/// How many jobs are listed when nobody says.
const LIMIT_DEFAULT: u32 = 50;

/// Which jobs.
#[derive(Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Only jobs of this status.
    #[arg(long, value_parser = ["pending", "running", "completed", "failed", "cancelled"])]
    pub(crate) status: Option<String>,
    /// Only jobs of this agent.
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only jobs that have this label; may be repeated.
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = words::parse_label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Only jobs submitted so long ago at most.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    pub(crate) since: Option<std::time::Duration>,
    #[command(flatten)]
    pub(crate) list: ListOptions,
}

const COLUMNS: [Column<Job>; 11] = [
    column("JOB", "id", |job, _| job.id.clone()),
    column("AGENT", "agent_name", |job, _| job.agent()),
    column("STATUS", "status", |job, _| job.standing()),
    column("AGE", "created_at", |job, look| look.when(job.created_at)),
    column(
        "TOOK",
        "total_ms",
        |job, _| if job.is_terminal() { words::milliseconds(job.total_ms()) } else { String::new() },
    ),
    column("NODE", "node", |job, _| job.node.clone()),
    wide("PRIORITY", "priority", |job, _| job.priority.to_string()),
    wide("ATTEMPT", "attempt", |job, _| format!("{} of {}", job.attempt, job.max_attempts)),
    wide("LABELS", "labels", |job, _| words::labels(&job.labels)),
    wide("BY", "principal", |job, _| job.principal.clone()),
    wide("ERROR", "error", |job, _| words::short(&job.error, 40)),
];

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let value = fetch(&context.client()?, options, context.look.now).await?;
    let list = List { columns: &COLUMNS, name: |job| format!("job/{}", job.id) };
    if context.list(value, &options.list, &list)? == 0 {
        context.note("no jobs");
        context.next("next: atlasctl run AGENT key=value");
    }
    Ok(Exit::Done)
}

/// The jobs as the server has them, less those without the labels.
pub(crate) async fn fetch(client: &Client, options: &Options, now: f64) -> Result<Value, Failure> {
    let wanted = if options.labels.is_empty() { options.list.wanted(LIMIT_DEFAULT) } else { 1000 };
    let wanted = wanted.to_string();
    let since = options.since.map(|since| format!("{:.6}", now - since.as_secs_f64()));
    let mut query = vec![("view", "full"), ("limit", wanted.as_str())];
    query.extend(options.status.as_deref().map(|status| ("status", status)));
    query.extend(options.agent.as_deref().map(|agent| ("agent", agent)));
    query.extend(since.as_deref().map(|since| ("since", since)));
    let mut value = client.get(&["api", "jobs"], &query).await?;
    if let Some(jobs) = value.as_array_mut() {
        let has = |job: &Value, (key, wanted): &(String, String)| job["labels"][key] == wanted.as_str();
        jobs.retain(|job| options.labels.iter().all(|label| has(job, label)));
    }
    Ok(value)
}
