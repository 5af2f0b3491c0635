//! `atlasctl agent eval`: runs an agent over a data set, and says how many outputs are right.

mod data;
mod score;

use std::fmt::Write as _;
use std::path::PathBuf;

use atlas_api::types::Job;
use atlas_env::Env;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use self::data::Case;
use self::score::{Check, Ended, Score};
use crate::answers;
use crate::client::Client;
use crate::command::agent::named;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Shown, Table};
use crate::words;

/// How long the controller may wait for the end of a job before it answers, in seconds.
const WAIT: &str = "30";

/// Options of `atlasctl agent eval`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Agent name, optionally with @VERSION.
    #[arg(value_parser = names::agent)]
    name: String,
    /// Data set: a line {"input": {…}, "expected": {…}, "name": "…"} for each case. Members that expected names must be equal in
    /// the output. The checks of the agent's eval.yaml count too.
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Run another version too, and compare.
    #[arg(long, value_name = "VERSION")]
    against: Option<String>,
    /// Share of cases, from 0 to 1, that must pass; exits 1 if fewer do.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    min_score: Option<f64>,
    /// By how much the score may be below that of the version of --against; exits 1 if it is more.
    #[arg(long, value_name = "SHARE", value_parser = share, default_value_t = 0.0, requires = "against")]
    max_drop: f64,
    /// Let another agent judge each output, such as the bundled judge: it gets input, output, expected and criterion, and answers with
    /// passed and reason.
    #[arg(long, value_name = "AGENT", value_parser = names::agent)]
    judge: Option<String>,
    /// What the judge shall look at.
    #[arg(long, value_name = "TEXT", requires = "judge")]
    criterion: Option<String>,
    /// Number of jobs at the same time.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    context.form.fits_one()?;
    let cases = data::read(&options.data)?;
    let client = context.client()?;
    let (name, version) = named(&options.name);
    for version in [version, options.against.as_deref()] {
        exists(&client, name, version).await?;
    }
    let first = score(&client, (name, version), &cases, options).await?;
    let second = match &options.against {
        Some(version) => Some(score(&client, (name, Some(version)), &cases, options).await?),
        None => None,
    };
    let mut text = wrong(&first);
    let mut versions = vec![&first];
    versions.extend(&second);
    for score in &versions {
        let _ = writeln!(text, "{}", score.summary(name));
    }
    let changed = second.as_ref().map(|second| score::changed(&first, second)).unwrap_or_default();
    for change in &changed {
        let _ = writeln!(text, "{change}");
    }
    let value = json!({
        "agent": name,
        "versions": versions.iter().map(|score| score.value()).collect::<Vec<_>>(),
        "changed": changed,
    });
    context.show(&Shown { value, text, names: vec![format!("agent/{name}")] })?;
    let short = missed(options, &first, second.as_ref());
    short.iter().for_each(|why| context.note(why));
    Ok(if short.is_empty() { Exit::Done } else { Exit::Short })
}

/// Refuses an agent that is not there, before any job. A stored chain is called like an agent.
async fn exists(client: &Client, name: &str, version: Option<&str>) -> Result<(), Failure> {
    let query: Vec<(&str, &str)> = version.iter().map(|text| ("version", *text)).collect();
    let Err(failure) = client.get(&["api", "agents", name], &query).await else { return Ok(()) };
    let is_chain = version.is_none() && client.get(&["api", "objects", "chain", name], &[]).await.is_ok();
    if is_chain { Ok(()) } else { Err(failure) }
}

/// Why the result is not good enough.
fn missed(options: &Options, first: &Score, second: Option<&Score>) -> Vec<String> {
    let mut why = Vec::new();
    // Alone, everything has to pass; beside another version, it must not be worse.
    let least = options.min_score.or_else(|| second.is_none().then_some(1.0));
    if let Some(least) = least.filter(|least| first.share() < *least) {
        why.push(format!("the score {:.3} is below {least:.3}", first.share()));
    }
    if let Some(second) = second {
        let drop = second.share() - first.share();
        if drop > options.max_drop {
            why.push(format!("the score is {drop:.3} below that of version {}", second.version));
        }
    }
    why
}

/// The cases that did not pass.
fn wrong(score: &Score) -> String {
    let mut table = Table::new(&["CASE", "JOB", "STATUS", "TOOK", "WRONG"]);
    let mut any = false;
    for ended in score.ended.iter().filter(|ended| !ended.passed()) {
        any = true;
        let took = words::milliseconds(ended.took_ms);
        table.row([ended.name.clone(), ended.job.clone(), ended.status.clone(), took, ended.wrong().join("; ")]);
    }
    if any { table.text() } else { String::new() }
}

/// Runs all cases.
async fn score(
    client: &Client,
    (agent, version): (&str, Option<&str>),
    cases: &[Case],
    options: &Options,
) -> Result<Score, Failure> {
    let key = format!("atlasctl-eval-{:032x}", Env::system().entropy.u128());
    let ended = cases.iter().enumerate().map(|(place, case)| {
        let key = format!("{key}.{place}");
        async move { one(client, (agent, version), (case, &key), options).await }
    });
    let ended: Vec<Ended> = stream::iter(ended).buffered(options.parallel.into()).try_collect().await?;
    let ran = ended.iter().map(|ended| ended.version.as_str()).find(|version| !version.is_empty());
    let version = ran.or(version).unwrap_or("latest").to_owned();
    Ok(Score { version, ended })
}

async fn one(
    client: &Client,
    (agent, version): (&str, Option<&str>),
    (case, key): (&Case, &str),
    options: &Options,
) -> Result<Ended, Failure> {
    let job = ran(client, (agent, version), &case.input, key).await?;
    let is_completed = job.status == "completed";
    let output = job.output_data.clone().unwrap_or_default();
    let mut checks: Vec<Check> = Vec::new();
    if is_completed {
        let trace = client.get(&["api", "traces", &job.id], &[]).await?;
        checks.extend(trace["eval_results"].as_array().into_iter().flatten().map(Check::of));
        if let Some(judge) = &options.judge {
            let input = case.question(&output, options.criterion.as_deref());
            let judged = ran(client, named(judge), &input, &format!("{key}.judge")).await?;
            checks.push(Check::judged(judge, &judged));
        }
    }
    Ok(Ended {
        name: case.name.clone(),
        error: if is_completed { String::new() } else { job.error_text() },
        differences: if is_completed && options.judge.is_none() { case.differences(&output) } else { Vec::new() },
        took_ms: job.execution_ms,
        tokens: job.tokens_input + job.tokens_output,
        cost_usd: job.tree_cost_usd.max(job.cost_usd),
        job: job.id,
        version: job.agent_version,
        status: job.status,
        checks,
    })
}

/// Runs an agent once, until its end.
async fn ran(
    client: &Client,
    (agent, version): (&str, Option<&str>),
    input: &Value,
    key: &str,
) -> Result<Job, Failure> {
    // Each run stands alone, also if the agent has a session.
    let mut body = json!({"agent": agent, "input": input, "labels": {"eval": "true"}, "conversation": "temp"});
    if let Some(version) = version {
        body["version"] = json!(version);
    }
    let clock = Env::system().clock;
    let answer = loop {
        match client.post_named(&["api", "jobs"], &[("queue_wait", "20")], &body, key).await {
            Err(failure) if failure.exit == Exit::Busy => {
                clock.sleep(std::time::Duration::from_secs(failure.retry_after.unwrap_or(1))).await;
            }
            answer => break answer?,
        }
    };
    let id = answer["id"].as_str().ok_or_else(|| Failure::answer("a submission is answered with an id"))?.to_owned();
    loop {
        let query = [("timeout", WAIT), ("view", "full")];
        let job: Job = answers::read(&client.get(&["api", "jobs", &id, "wait"], &query).await?)?;
        if job.is_terminal() {
            return Ok(job);
        }
    }
}

/// A list of JSON texts, a line each.
fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// Options of `atlasctl agent data-set`.
#[derive(Debug, clap::Args)]
pub(crate) struct DataSetOptions {
    /// Agent name, optionally with @VERSION.
    #[arg(value_parser = names::agent)]
    name: String,
    /// Maximum number of jobs, the newest first.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Add the outputs as what is expected.
    #[arg(long)]
    with_expected: bool,
}

/// `atlasctl agent data-set`: a case for each completed job.
pub(super) async fn data_set(context: &Context, options: &DataSetOptions) -> Result<Exit, Failure> {
    let (name, version) = named(&options.name);
    let limit = options.limit.to_string();
    let query = [("agent", name), ("status", "completed"), ("view", "full"), ("limit", &limit)];
    let jobs: Vec<Job> = answers::read(&context.client()?.get(&["api", "jobs"], &query).await?)?;
    let fits = |job: &&Job| version.is_none_or(|version| job.agent_version == version);
    let cases: Vec<Value> = jobs.iter().filter(fits).map(|job| data::case(job, options.with_expected)).collect();
    if cases.is_empty() {
        context.note(&format!("{name} has no completed jobs"));
    }
    let names = jobs.iter().map(|job| format!("job/{}", job.id)).collect();
    context.show(&Shown { text: lines(&cases), value: Value::Array(cases), names })?;
    Ok(Exit::Done)
}
