//! `atlasctl trace`: what a job or a run of a chain did, and when.

mod draw;
mod list;

use atlas_api::types::Job;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answers;
use crate::client::Client;
use crate::command::chain_run;
use crate::command::job::{steps, tree};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Most recorded steps of one job.
const STEPS_MAX: usize = 200;

/// Most jobs of a tree whose steps and checks are asked for.
const JOBS_MAX: usize = 100;

/// Verbs of `atlasctl trace`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists the traces of jobs that completed or failed, the latest first.
    List(list::Options),
    /// Draws what a job or a run of a chain did: its phases, model calls, checks, retries and the jobs that it spawned.
    Show(Options),
}

/// Which jobs.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Ids of jobs or of runs of chains, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::ran)]
    ids: Vec<String>,
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List(options) => list::run(context, options).await,
        Verb::Show(options) => show_all(context, options).await,
    }
}

/// Draws each trace.
pub(crate) async fn show_all(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| show(context, id).await).await
}

/// A job with what is known of it.
#[derive(Debug, Default)]
struct Traced {
    job: Job,
    trace: Trace,
    steps: Vec<Step>,
    children: Vec<Traced>,
    /// The jobs that it was retried as.
    retries: Vec<Traced>,
}

/// The members of a trace that a job does not have.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Trace {
    parent_trace_id: String,
    chain_name: String,
    step_index: i64,
    eval_results: Vec<Check>,
}

/// A check of an agent's `eval.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Check {
    name: String,
    passed: bool,
    message: String,
}

/// A recorded step.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step {
    kind: String,
    duration_ms: f64,
    tokens_input: u64,
    tokens_output: u64,
    cost_usd: f64,
    outcome: Value,
}

async fn show(context: &Context, id: &str) -> Result<Exit, Failure> {
    let client = context.client()?;
    let (_, mut value) = tree::read(&client, id).await?;
    let mut left = JOBS_MAX;
    let mut traced = gather(&client, &mut value, &mut left).await?;
    if let Some(chain) = value["chain_name"].as_str() {
        traced.job.agent_name = format!("chain {chain}");
    }
    let mut names = Vec::new();
    traced.ids(&mut names);
    let text = std::iter::once(&traced).chain(&traced.retries).map(draw::text).collect();
    context.show(&Shown { text, value, names })?;
    let parent = &traced.trace.parent_trace_id;
    if !parent.is_empty() {
        context.next(&format!("next: atlasctl trace show {parent}"));
    }
    Ok(Exit::Done)
}

/// Adds steps and trace to the object of a job and to those below it, and reads them.
async fn gather(client: &Client, value: &mut Value, left: &mut usize) -> Result<Traced, Failure> {
    let job: Job = answers::read(value)?;
    let mut traced = Traced { job, ..Traced::default() };
    let Some(members) = value.as_object_mut() else { return Ok(traced) };
    if *left > 0 {
        *left -= 1;
        add_details(client, &mut traced, members).await?;
    }
    for (member, below) in [("children", &mut traced.children), ("retries", &mut traced.retries)] {
        for value in members.get_mut(member).and_then(Value::as_array_mut).into_iter().flatten() {
            below.push(Box::pin(gather(client, value, left)).await?);
        }
    }
    Ok(traced)
}

async fn add_details(client: &Client, traced: &mut Traced, members: &mut Map<String, Value>) -> Result<(), Failure> {
    let id = traced.job.id.as_str();
    if chain_run::is_one(id) {
        let trace = known(client.get(&["api", "traces", id], &[]).await)?.unwrap_or(Value::Null);
        members.insert("trace".to_owned(), trace);
        return Ok(());
    }
    let limit = STEPS_MAX.to_string();
    let steps = known(client.get(&["api", "jobs", id, "steps"], &[("limit", &limit)]).await)?.unwrap_or(json!([]));
    // A job has a trace when it has ended, unless it was cancelled.
    let trace = known(client.get(&["api", "traces", id], &[]).await)?.unwrap_or(Value::Null);
    traced.steps = answers::read(&steps)?;
    if !trace.is_null() {
        traced.trace = answers::read(&trace)?;
    }
    members.insert("steps".to_owned(), without_outcomes(steps));
    members.insert("trace".to_owned(), trace);
    Ok(())
}

/// What the server does not know is none: jobs leave the state, and traces exist for some jobs only.
fn known(answer: Result<Value, Failure>) -> Result<Option<Value>, Failure> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(failure) if failure.exit == Exit::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// A trace tells what steps are called and how long they took; `atlasctl job steps` shows their contents.
fn without_outcomes(mut steps: Value) -> Value {
    for step in steps.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        let outcome = step.remove("outcome").unwrap_or_default();
        if let Some(name) = steps::name_in(&outcome).filter(|name| !name.is_empty()) {
            step.insert("name".to_owned(), name.into());
        }
    }
    steps
}

impl Traced {
    fn ids(&self, names: &mut Vec<String>) {
        let id = &self.job.id;
        names.push(if chain_run::is_one(id) { id.clone() } else { format!("job/{id}") });
        self.children.iter().chain(&self.retries).for_each(|below| below.ids(names));
    }
}
