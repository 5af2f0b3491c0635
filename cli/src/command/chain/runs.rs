//! `atlasctl chain runs`: the runs of chains.

use atlas_api::types::ChainRun;
use clap::ValueEnum;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Column, List, ListOptions, column, members, wide};
use crate::words;

/// Most runs that a list fetches.
const LISTED: &str = "1000";

/// Options of `atlasctl chain runs`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only runs with this status.
    #[arg(long, value_name = "STATUS")]
    status: Option<Status>,
    #[command(flatten)]
    list: ListOptions,
}

/// The status of a run.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Pending,
    Running,
    Completed,
    Failed,
    Cancelled,
}

const COLUMNS: [Column<ChainRun>; 7] = [
    column("ID", "id", |run, _| run.id.clone()),
    column("CHAIN", "chain_name", |run, _| run.chain_name.clone()),
    column("STATUS", "status", |run, _| run.status.clone()),
    column("STEPS", "total_steps", |run, _| {
        format!("{} of {}", run.step_jobs.as_ref().map_or(0, Vec::len), run.total_steps)
    }),
    column("AGE", "created_at", |run, look| words::age(look.now - run.created_at)),
    wide("TOOK", "completed_at", |run, _| match run.completed_at > 0.0 {
        true => words::milliseconds((run.completed_at - run.created_at) * 1000.0),
        false => String::new(),
    }),
    wide("PRIORITY", "priority", |run, _| run.priority.unwrap_or_default().to_string()),
];

/// Lists runs, newest first.
pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let status = options.status.and_then(|status| status.to_possible_value());
    let mut query = vec![("view", "full"), ("limit", LISTED)];
    query.extend(status.as_ref().map(|status| ("status", status.get_name())));
    let runs = context.client()?.get(&["api", "chains"], &query).await?;
    let list = List { columns: &COLUMNS, members: members::RUN, name: |run: &ChainRun| run.id.clone() };
    if context.list(runs, &options.list, &list)? == 0 {
        context.note("no runs of chains: atlasctl chain run NAME");
    }
    Ok(Exit::Done)
}
