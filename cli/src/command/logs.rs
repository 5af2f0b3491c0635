//! `atlasctl logs`: the log lines of one job, of the recent jobs of an agent, or of the recent jobs on a node.

use std::collections::BTreeSet;

use atlas_api::types::{Job, JobChange, Line};
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;

use crate::answers;
use crate::client::Client;
use crate::command::generic::{Kind, Target, one};
use crate::command::{chain_run, job};
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// Maximum number of jobs whose lines are followed at the same time.
const FOLLOWED_MAX: usize = 64;
/// Number of recent jobs that are searched for those of a node.
const LOOKED_AT: &str = "1000";
/// Length of a shortened job id, `job-` and eight digits, which is enough to tell these jobs apart.
const SHORT_ID: usize = 12;

/// Options of `atlasctl logs`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Job id, id of a run of a chain, agent name or node name; KIND/NAME if ambiguous.
    #[arg(value_name = "JOB|AGENT|NODE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    of: String,
    /// Stream new lines until the job has ended; for an agent or a node, include new jobs until Ctrl-C. For scripts with -o jsonl, because json
    /// and yaml come at the end.
    #[arg(short, long)]
    follow: bool,
    /// Maximum number of jobs of an agent or a node, latest first.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    jobs: u32,
    #[command(flatten)]
    which: job::WhichLines,
}

/// The jobs whose lines are printed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Job(String),
    /// Jobs of this agent.
    Agent(String),
    /// Jobs whose latest attempt ran on this node.
    Node(String),
}

impl Source {
    /// Parses a job id or `KIND/NAME`; none if only the cluster can tell what the text names.
    fn parse(text: &str) -> Result<Option<Self>, Failure> {
        if !text.contains('/') {
            let is_id = text.starts_with("job-") || chain_run::is_one(text);
            return Ok(is_id.then(|| Self::Job(text.to_owned())));
        }
        let target: Target = text.parse().map_err(|error| Failure::usage(format!("\"{text}\" is not {error}")))?;
        let nameless = |_| Failure::usage("no name given").with_next("write: atlasctl logs KIND/NAME");
        let name = one(&target, None, "logs").map_err(nameless)?.to_owned();
        match target.kind {
            Kind::Job => Ok(Some(Self::Job(name))),
            Kind::Agent => Ok(Some(Self::Agent(name))),
            Kind::Node => Ok(Some(Self::Node(name))),
            Kind::Controller => Err(Failure::usage("controllers log on their own machines")),
            Kind::Object(kind) => Err(Failure::usage(format!("a {kind} has no log"))),
        }
    }

    /// Looks for an agent with this name, then for a node, then for a job with this prefix of its id.
    async fn find(client: &Client, text: &str) -> Result<Self, Failure> {
        if let Some(source) = Self::parse(text)? {
            return Ok(source);
        }
        let agents = client.get(&["api", "agents"], &[("all", "true"), ("name", text)]).await?;
        if agents.as_array().is_some_and(|agents| agents.iter().any(|agent| agent["name"] == text)) {
            return Ok(Self::Agent(text.to_owned()));
        }
        match client.get(&["api", "nodes", text], &[]).await {
            Ok(_) => Ok(Self::Node(text.to_owned())),
            Err(failure) if failure.exit == Exit::NotFound => Ok(Self::Job(text.to_owned())),
            Err(failure) => Err(failure),
        }
    }

    fn has(&self, job: &Job) -> bool {
        match self {
            Self::Job(id) => job.id == *id,
            Self::Agent(name) => job.agent_name == *name,
            Self::Node(name) => job.node == *name,
        }
    }

    /// The latest jobs of the source, oldest first.
    async fn jobs(&self, client: &Client, most: u32) -> Result<Vec<Job>, Failure> {
        let limit = most.to_string();
        let query = match self {
            Self::Agent(name) => vec![("view", "full"), ("agent", name.as_str()), ("limit", limit.as_str())],
            Self::Job(_) | Self::Node(_) => vec![("view", "full"), ("limit", LOOKED_AT)],
        };
        let mut jobs: Vec<Job> = answers::read(&client.get(&["api", "jobs"], &query).await?)?;
        jobs.retain(|job| self.has(job));
        jobs.truncate(most as usize);
        jobs.reverse();
        Ok(jobs)
    }
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    match Source::find(&client, &options.of).await? {
        Source::Job(id) => job::logs(context, &id, options.follow, &options.which).await,
        source if options.follow => follow(context, &client, &source, options).await,
        source => so_far(context, &client, &source, options).await,
    }
}

/// Prints the log lines of the latest jobs so far.
async fn so_far(context: &Context, client: &Client, source: &Source, options: &Options) -> Result<Exit, Failure> {
    let (mut kept, mut text) = (Vec::new(), String::new());
    for job in source.jobs(client, options.jobs).await? {
        for (said, value) in lines(client, &job.id).await? {
            if let Some(shown) = shown(context, options, &job.id, &said, value) {
                text += &shown.text;
                kept.push(shown.value);
            }
        }
    }
    if kept.is_empty() {
        context.note(&format!("no job of {} logged anything", options.of));
    }
    context.show(&Shown { value: Value::Array(kept), text, names: Vec::new() })?;
    Ok(Exit::Done)
}

/// Prints the log lines of the latest jobs, and the lines that they and new jobs log, until Ctrl-C.
async fn follow(context: &Context, client: &Client, source: &Source, options: &Options) -> Result<Exit, Failure> {
    let tell = |id: &str, said: &Line, value: Value| match shown(context, options, id, said, value) {
        Some(shown) => context.show(&shown),
        None => Ok(()),
    };
    // The stream is opened before the list is read, so that no job is missed in between.
    let mut events = client.open(&["api", "events"], &[("view", "full")]).await?;
    let mut known = BTreeSet::new();
    let mut following = FuturesUnordered::new();
    for job in source.jobs(client, options.jobs).await? {
        known.insert(job.id.clone());
        if job.is_terminal() {
            for (said, value) in lines(client, &job.id).await? {
                tell(&job.id, &said, value)?;
            }
        } else {
            following.push(to_its_end(client, job.id, &tell));
        }
    }
    let stop = tokio::signal::ctrl_c();
    tokio::pin!(stop);
    loop {
        let frame = tokio::select! {
            Some(ended) = following.next() => {
                ended?;
                continue;
            }
            frame = events.next() => frame?,
            _ = &mut stop => None,
        };
        let Some(frame) = frame else { return Ok(Exit::Done) };
        let value: Value = serde_json::from_str(&frame.data).map_err(Failure::answer)?;
        let JobChange { job, .. } = answers::read(&value)?;
        if !source.has(&job) || job.status == "pending" {
            continue;
        }
        if following.len() >= FOLLOWED_MAX {
            if job.is_terminal() && !known.remove(&job.id) {
                context.note(&format!("too many jobs: not followed: {}", job.id));
            }
            continue;
        }
        // A job that has ended has no more events, so its id is dropped.
        let new = if job.is_terminal() { !known.remove(&job.id) } else { known.insert(job.id.clone()) };
        if new {
            following.push(to_its_end(client, job.id, &tell));
        }
    }
}

/// Prints the lines of a job until the job has ended or was removed.
async fn to_its_end(
    client: &Client,
    id: String,
    tell: &impl Fn(&str, &Line, Value) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match job::follow_logs(client, &id, |said, value| tell(&id, said, value)).await {
        Err(failure) if failure.exit == Exit::NotFound => Ok(()),
        followed => followed,
    }
}

/// The lines of a job so far; none if the job was removed.
async fn lines(client: &Client, id: &str) -> Result<Vec<(Line, Value)>, Failure> {
    match ending::logs_so_far(client, id).await {
        Err(failure) if failure.exit == Exit::NotFound => Ok(Vec::new()),
        lines => lines,
    }
}

/// A line with the id of its job; none if the options exclude the line.
fn shown(context: &Context, options: &Options, id: &str, said: &Line, mut value: Value) -> Option<Shown> {
    if !options.which.admits(said, context.look.now) {
        return None;
    }
    value["job"] = id.into();
    let text = format!("{}  {}", id.get(..SHORT_ID).unwrap_or(id), job::log_line(said));
    Some(Shown { value, text, names: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_say_whose_lines_are_wanted() {
        let parse = |text| Source::parse(text).map_err(|failure| failure.message);
        assert_eq!(parse("job-4f3a"), Ok(Some(Source::Job("job-4f3a".to_owned()))));
        assert_eq!(parse("agent/job-maker"), Ok(Some(Source::Agent("job-maker".to_owned()))));
        assert_eq!(parse("node/w1"), Ok(Some(Source::Node("w1".to_owned()))));
        assert_eq!(parse("hello"), Ok(None));
        for wrong in ["pod/x", "node/", "controller/c1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn jobs_are_those_of_the_agent_or_of_the_node() {
        let job = Job { agent_name: "hello".to_owned(), node: "w1".to_owned(), ..Job::default() };
        assert!(Source::Agent("hello".to_owned()).has(&job) && Source::Node("w1".to_owned()).has(&job));
        assert!(!Source::Agent("hell".to_owned()).has(&job) && !Source::Node("w2".to_owned()).has(&job));
    }
}
