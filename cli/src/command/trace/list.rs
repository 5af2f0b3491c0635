//! `atlasctl trace list`.

use serde::Deserialize;

use super::Check;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, List, ListOptions, column, members, wide};
use crate::words;

/// How many traces are listed without a limit.
const LIMIT: u32 = 50;
/// How many traces are fetched if the list is filtered or sorted.
const LIMIT_SELECTING: u32 = 1_000;

/// Options of `atlasctl trace list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only jobs of this agent.
    #[arg(long, value_name = "NAME", value_parser = names::agent)]
    agent: Option<String>,
    #[command(flatten)]
    list: ListOptions,
}

/// A trace as it is listed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Trace {
    trace_id: String,
    agent_name: String,
    status: String,
    warmup_ms: f64,
    execution_ms: f64,
    completed_at: f64,
    total_tokens: u64,
    model: String,
    estimated_cost_usd: f64,
    chain_name: String,
    eval_results: Vec<Check>,
}

const COLUMNS: [Column<Trace>; 10] = [
    column("JOB", "job_id", |trace, _| trace.trace_id.clone()),
    column("AGENT", "agent_name", |trace, _| trace.agent_name.clone()),
    column("STATUS", "status", |trace, _| trace.status.clone()),
    column("CHECKS", "eval_results", |trace, _| checks(&trace.eval_results)),
    column("TIME", "execution_ms", |trace, _| words::milliseconds(trace.execution_ms)),
    column("COST", "estimated_cost_usd", |trace, _| cost(trace)),
    column("ENDED", "completed_at", |trace, look| look.when(trace.completed_at)),
    wide("WARM-UP", "warmup_ms", |trace, _| words::milliseconds(trace.warmup_ms)),
    wide("MODEL", "model", |trace, _| trace.model.clone()),
    wide("CHAIN", "chain_name", |trace, _| trace.chain_name.clone()),
];

const LIST: List<'static, Trace> =
    List { columns: &COLUMNS, members: members::TRACE, name: |trace| format!("job/{}", trace.trace_id) };

/// How many of the checks passed; empty without checks.
fn checks(results: &[Check]) -> String {
    let passed = results.iter().filter(|check| check.passed).count();
    if results.is_empty() { String::new() } else { format!("{passed}/{}", results.len()) }
}

/// The price; empty if no model was called.
fn cost(trace: &Trace) -> String {
    if trace.total_tokens == 0 { String::new() } else { words::dollars(trace.estimated_cost_usd) }
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let limit = if options.list.selects() { LIMIT_SELECTING } else { options.list.limit().unwrap_or(LIMIT) };
    let limit = limit.to_string();
    let mut query = vec![("limit", limit.as_str())];
    query.extend(options.agent.as_deref().map(|agent| ("agent", agent)));
    let traces = context.client()?.get(&["api", "traces"], &query).await?;
    if context.list(traces, &options.list, &LIST)? == 0 {
        context.note("no traces");
    }
    Ok(Exit::Done)
}
