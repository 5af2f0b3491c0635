//! `atlasctl job list`.

use crate::api::{self, Job};
use crate::context::Context;
use crate::ending::waits;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Shown, Table};
use crate::words;

/// Which jobs.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only jobs of this status.
    #[arg(long, value_parser = ["pending", "running", "completed", "failed", "cancelled"])]
    status: Option<String>,
    /// Only jobs of this agent.
    #[arg(long)]
    agent: Option<String>,
    /// Most jobs to list.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let limit = options.limit.to_string();
    let mut query = vec![("view", "full"), ("limit", limit.as_str())];
    query.extend(options.status.as_deref().map(|status| ("status", status)));
    query.extend(options.agent.as_deref().map(|agent| ("agent", agent)));
    let value = context.client()?.get(&["api", "jobs"], &query).await?;
    let jobs: Vec<Job> = api::read(&value)?;
    let mut table = Table::new(&["JOB", "AGENT", "STATUS", "CREATED", "TOOK", "NODE"]);
    for job in &jobs {
        let took = if job.is_terminal() { words::milliseconds(job.total_ms()) } else { String::new() };
        let status = if job.is_terminal() { job.status.clone() } else { waits(job) };
        let created = words::time_of_day(job.created_at);
        table.row([job.id.clone(), job.agent(), status, created, took, job.node.clone()]);
    }
    let names = jobs.iter().map(|job| format!("job/{}", job.id)).collect();
    let text = if jobs.is_empty() { String::new() } else { table.text() };
    if jobs.is_empty() {
        context.note("no jobs");
        context.next("next: atlasctl run AGENT key=value");
    }
    context.show(&Shown { value, text, names })?;
    Ok(Exit::Done)
}
