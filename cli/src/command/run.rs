//! `atlasctl run`: submits one job, waits for its end and prints its output. A stored chain runs where no agent has the name.

mod chain;
mod from;

use std::time::Duration;

use atlas_api::types::{Agent, Job, Line};
use atlas_env::Env;
use atlas_model::NanoDollars;
use serde_json::{Map, Value, json};

use crate::answers;
use crate::client::Client;
use crate::command::agent::one_version;
use crate::command::graph::Nodes;
use crate::command::job::{self, Piece, Printed};
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{self, Source};
use crate::names;
use crate::output::{Shown, members as known};
use crate::questions;
use crate::words;

/// How long to wait for an agent's last log lines after its job has ended.
const LAST_LINES: Duration = Duration::from_millis(500);

/// The error of a conversation whose earlier message is still being answered.
const ANSWERING: &str = "E1120";

/// Options of `atlasctl run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Agent name, optionally with @VERSION, also as printed by -o name; or the name of a stored chain.
    #[arg(required_unless_present = "from", value_parser = names::agent)]
    agent: Option<String>,
    /// Input: one JSON object, or key=value arguments (key=@FILE reads the text of a file); values are text unless the agent's input schema
    /// says otherwise.
    #[arg(value_name = "JSON|KEY=VALUE")]
    words: Vec<String>,
    /// Input as JSON, @FILE, or - for stdin.
    #[arg(short, long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    input: Option<String>,
    /// Submit a job for each line of a file or of stdin (-). Each line is an input, or without an AGENT a whole job
    /// such as {"agent": "hello", "input": {}}. Prints the id of each job, or why its line was refused, in the order of
    /// the lines; with --wait, prints the output of each job instead. Waits while the queue is full.
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["words", "input", "follow"], allow_hyphen_values = true)]
    from: Option<String>,
    /// Print only the job's id and return immediately, as --at does.
    #[arg(short, long, conflicts_with_all = ["follow", "wait"])]
    detach: bool,
    /// Wait for the job to end; the default without --at and --from. With --from, wait for all jobs.
    #[arg(short, long)]
    wait: bool,
    /// Stream the agent's log lines, and models' answers as they form, to stderr.
    #[arg(short, long)]
    follow: bool,
    /// Start no earlier than this time: +5m, @UNIXSECONDS or 2026-11-22T12:01:07Z.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<String>,
    /// Version to run, such as 1.2.0, or a requirement such as ^1.2.0; defaults to the latest.
    #[arg(long = "version", value_name = "REQUIREMENT")]
    requirement: Option<String>,
    /// Priority; higher runs first.
    #[arg(short, long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i64,
    /// Maximum time to wait; the job continues after that.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    timeout: Option<Duration>,
    /// Exit when the first job ends, even if it failed and is retried.
    #[arg(long)]
    no_retry_wait: bool,
    /// Execution time limit; defaults to the contract's.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    execution_timeout: Option<Duration>,
    /// Most that its model calls may cost in US dollars; a call that could exceed it is not made.
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    budget: Option<NanoDollars>,
    /// Whether the job waits or fails while no registered node has what it needs; defaults to what its namespace says, or else fail.
    #[arg(long, value_name = "wait|fail", value_parser = ["wait", "fail"])]
    unsatisfiable: Option<String>,
    /// What happens to its questions to people: fail, wait, or answer:TEXT. The default is wait on a terminal, which
    /// asks them, and fail elsewhere.
    #[arg(long, value_name = "RULE")]
    questions: Option<String>,
    /// Continue this conversation, or begin it; with temp, begin one that is not kept. Without it, an agent may have a
    /// conversation of its own. Waits for earlier messages of it.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "at"], value_parser = names::conversation)]
    conversation: Option<String>,
    /// What the job is about: one line of at most 200 characters that people see in lists.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Label of the job; repeatable.
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = words::parse_label)]
    labels: Vec<(String, String)>,
    /// Idempotency key; a repeated request with the same key returns the first job.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    if let Some(file) = &options.from {
        return from::run(context, options, file).await;
    }
    let later = options.at.is_some() && !options.wait && !options.follow;
    let detached = options.detach || later;
    context.form.fits(if detached { known::ID } else { known::JOB })?;
    let client = context.client()?;
    let id = match submit(context, &client, options).await {
        Ok(id) => id,
        Err(failure) => return chain::run(context, &client, options, failure).await,
    };
    if detached {
        let shown = Shown { value: json!({"id": id}), text: format!("{id}\n"), names: vec![format!("job/{id}")] };
        context.show(&shown)?;
        return Ok(Exit::Done);
    }
    let mut latest = id;
    let waited = tokio::select! {
        waited = family(context, &client, &mut latest, options.attending(), Env::system().clock.monotonic()) => waited?,
        // Ctrl-C ends this program, not the job.
        _ = tokio::signal::ctrl_c() => None,
    };
    let Some(waited) = waited else {
        context.note(&format!("{latest} continues"));
        context.next(&format!("next: atlasctl job wait {latest}   or: atlasctl job cancel {latest}"));
        return Ok(Exit::WaitTimedOut);
    };
    let job: Job = answers::read(&waited)?;
    if context.form.is_text() {
        return ending::conclude(context, &client, &job).await;
    }
    let names = vec![format!("job/{}", job.id)];
    context.show(&Shown { value: waited, text: String::new(), names })?;
    Ok(ending::exit(&job))
}

/// How to wait for a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attending {
    pub(crate) timeout: Option<Duration>,
    /// Whether to print the agent's log lines and models' answers.
    pub(crate) follow: bool,
    /// Whether to stop when the first job ends.
    pub(crate) no_retry_wait: bool,
}

impl Options {
    fn attending(&self) -> Attending {
        Attending { timeout: self.timeout, follow: self.follow, no_retry_wait: self.no_retry_wait }
    }
}

/// Waits for the end of a job and of its automatic retries; `latest` is the id of the job that is currently waited for.
/// The timeout counts from `since`.
pub(crate) async fn family(
    context: &Context,
    client: &Client,
    latest: &mut String,
    attending: Attending,
    since: Duration,
) -> Result<Option<Value>, Failure> {
    let clock = Env::system().clock;
    loop {
        let left = attending.timeout.map(|timeout| timeout.saturating_sub(clock.monotonic().saturating_sub(since)));
        let waited = attend(context, client, latest, left, attending.follow).await?;
        let job: Job = answers::read(&waited)?;
        if job.is_terminal() {
            context.note(&ending::summary(&job));
        }
        if job.retried_by.is_empty() || attending.no_retry_wait {
            return Ok(Some(waited));
        }
        context.note(&format!("attempt failed, retrying{}: {}", pause(client, &job).await, job.retried_by));
        *latest = job.retried_by;
    }
}

/// ` in 2 s`: the delay before the next retry; empty if the contract of the failed job is not available.
async fn pause(client: &Client, failed: &Job) -> String {
    let agent = client.get(&["api", "agents", &failed.agent_name], &[("version", &failed.agent_version)]).await;
    let base = agent.ok().and_then(|agent| agent.pointer("/contract/retry/backoff_base")?.as_f64());
    let seconds = base.map(|base| base * (failed.retry_count as f64).exp2());
    seconds.map(|seconds| format!(" in {}", words::brief_seconds(seconds))).unwrap_or_default()
}

/// Waits for the end of one job, and meanwhile prints the agent's log lines if requested.
async fn attend(
    context: &Context,
    client: &Client,
    id: &str,
    timeout: Option<Duration>,
    follow: bool,
) -> Result<Value, Failure> {
    if !follow {
        return questions::wait(context, client, id, timeout, Some(context)).await;
    }
    let (mut printed, mut nodes) = (Printed::default(), Nodes::default());
    let follow = async {
        let each = |event: &str, data: &str| tell(context, &mut printed, &mut nodes, event, data);
        let followed = job::follow_pieces(client, id, each).await;
        context.passing(printed.end_line());
        // The command must print the output even if the log lines cannot be followed.
        if let Err(failure) = followed {
            context.note(&format!("could not follow its log lines: {}", failure.message));
        }
    };
    let wait = questions::wait(context, client, id, timeout, None);
    tokio::pin!(follow, wait);
    let mut told = false;
    let waited = loop {
        tokio::select! {
            () = &mut follow, if !told => told = true,
            waited = &mut wait => break waited,
        }
    };
    // The last log lines may arrive after the end of the job.
    if !told {
        tokio::select! {
            () = &mut follow => {}
            () = Env::system().clock.sleep(LAST_LINES) => {}
        }
    }
    waited
}

/// Prints a log line, what a node of a graph did, or a piece of a model's answer.
fn tell(context: &Context, printed: &mut Printed, nodes: &mut Nodes, event: &str, data: &str) -> Result<(), Failure> {
    let value: Value = serde_json::from_str(data).map_err(Failure::answer)?;
    if matches!(event, "delta" | "gap" | "reset") {
        context.passing(&printed.hear(event, &answers::read::<Piece>(&value)?));
        return Ok(());
    }
    context.passing(printed.end_line());
    let line: Line = answers::read(&value)?;
    context.note(nodes.hear(&line).unwrap_or_else(|| job::log_line(&line)).trim_end());
    Ok(())
}

async fn submit(context: &Context, client: &Client, options: &Options) -> Result<String, Failure> {
    let input = match input::source(&options.words, options.input.as_deref())? {
        Source::Whole(value) => value,
        Source::Pairs(pairs) => input::object(pairs, &input_schema(client, options).await?)?,
    };
    let mut body = members(context, options)?;
    body.insert("input".to_owned(), input);
    let body = Value::Object(body);
    // A stored chain is run as one, so that its steps are shown.
    let query = [("validate", "refuse"), ("only", "agent")];
    let post = async || match &options.idempotency_key {
        Some(key) => client.post_named(&["api", "jobs"], &query, &body, key).await,
        None => client.post(&["api", "jobs"], &query, &body).await,
    };
    let mut told = false;
    let answer = loop {
        match post().await {
            Err(failure) if failure.code.as_deref() == Some(ANSWERING) => {
                if !std::mem::replace(&mut told, true) {
                    context.note(&failure.message);
                }
            }
            answer => break answer?,
        }
    };
    let id = answer["id"].as_str().ok_or_else(|| Failure::answer("a submission is answered with an id"))?;
    Ok(id.to_owned())
}

/// The agent's name and the version requirement.
fn named(options: &Options) -> Result<(&str, Option<&str>), Failure> {
    one_version(options.agent.as_deref().unwrap_or_default(), options.requirement.as_deref())
}

/// The members of each job except its input, from the options.
fn members(context: &Context, options: &Options) -> Result<Map<String, Value>, Failure> {
    let (name, requirement) = named(options)?;
    let mut members = Map::new();
    let mut set = |name: &str, value: Value| drop(members.insert(name.to_owned(), value));
    if !name.is_empty() {
        set("agent", name.into());
    }
    set("priority", options.priority.into());
    if let Some(at) = &options.at {
        set("at", json!(words::parse_moment(at, context.look.now).map_err(Failure::usage)?));
    }
    if let Some(requirement) = requirement {
        set("version", requirement.into());
    }
    if let Some(limit) = options.execution_timeout {
        set("timeout", json!(limit.as_secs_f64()));
    }
    if let Some(conversation) = &options.conversation {
        set("conversation", conversation.as_str().into());
    }
    if let Some(budget) = options.budget {
        set("budget_usd", budget.to_string().into());
    }
    if let Some(rule) = &options.unsatisfiable {
        set("unsatisfiable", rule.as_str().into());
    }
    if let Some(title) = &options.title {
        set("title", title.as_str().into());
    }
    let attended = options.from.is_none() && !options.detach && questions::is_attended();
    if let Some(rule) = options.questions.as_deref().or(attended.then_some("wait")) {
        set("questions", rule.into());
    }
    if !options.labels.is_empty() {
        set("labels", options.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect());
    }
    Ok(members)
}

/// The input schema, by which `key=value` arguments are converted to numbers and lists.
async fn input_schema(client: &Client, options: &Options) -> Result<Value, Failure> {
    let (name, requirement) = named(options)?;
    let query: Vec<(&str, &str)> = requirement.iter().map(|text| ("version", *text)).collect();
    let agent: Agent = answers::read(&client.get(&["api", "agents", name], &query).await?)?;
    Ok(agent.input_schema)
}
