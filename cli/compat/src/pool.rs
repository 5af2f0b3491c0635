//! `atlas pool run|status|list`: jobs of the queue.
//!
//! `run` starts its own cluster. The other verbs use a running cluster, where Atlas for Python opens its database file.

use std::path::PathBuf;
use std::time::Duration;

use atlas_cli::{Client, Exit, Failure};
use atlas_contract::python;
use serde_json::Value;

use super::answer::{Answer, Refusal};
use super::embedded::{self, Plan};
use super::run::input_of;
use super::{folder, render};
use crate::job::{self, Job};

/// Longest wait of `run` for its job.
const PATIENCE: Duration = Duration::from_secs(120);

/// Members of a job that `run --json` leaves out.
const LEFT_OUT: [&str; 3] = ["retry_count", "original_job_id", "metadata"];

/// Characters of an error in a list.
const ERROR_CHARACTERS: usize = 50;

/// The subcommand.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Runs an agent through a temporary queue.
    Run(Run),
    /// Shows a job.
    Status(Status),
    /// Lists jobs, newest first.
    List(List),
}

/// Options.
#[derive(Debug, clap::Args)]
pub(super) struct Run {
    /// Name of the agent.
    agent: String,
    /// Input as JSON.
    #[arg(short, long, value_name = "JSON", allow_hyphen_values = true)]
    input: String,
    /// Folder of agents.
    #[arg(long, alias = "agents", default_value = "./agents", value_name = "DIR")]
    agents_path: PathBuf,
    /// Priority; higher runs first.
    #[arg(short, long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i64,
    /// Maximum number of concurrent jobs.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    max_concurrent: u32,
    /// Maximum number of idle slots.
    #[arg(long, default_value_t = 2)]
    warm_pool_size: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Accepted for compatibility; ignored.
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
}

/// Options for the cluster.
#[derive(Debug, clap::Args)]
struct ServerOptions {
    /// Address of a controller.
    #[arg(long, env = "ATLAS_SERVER", default_value = "http://127.0.0.1:7400", value_name = "URL")]
    server: String,
    /// Accepted for compatibility; jobs are read from the cluster.
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `atlas pool status`.
#[derive(Debug, clap::Args)]
pub(super) struct Status {
    /// Id of the job.
    id: String,
    #[command(flatten)]
    place: ServerOptions,
}

/// Options of `atlas pool list`.
#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Only jobs with this status.
    #[arg(long)]
    status: Option<String>,
    /// Only jobs of this agent.
    #[arg(long)]
    agent: Option<String>,
    /// Maximum number of jobs.
    #[arg(long, default_value_t = 50)]
    limit: u32,
    #[command(flatten)]
    place: ServerOptions,
}

pub(super) fn run(verb: &Verb) -> Answer {
    match verb {
        Verb::Run(options) => execute(options),
        Verb::Status(options) => status(options),
        Verb::List(options) => list(options),
    }
}

fn execute(options: &Run) -> Answer {
    let input = input_of(&options.input)?;
    let found = folder::agents(&options.agents_path);
    let plan = Plan {
        agents: &found,
        agent: &options.agent,
        input: &input,
        priority: options.priority,
        places: options.max_concurrent,
        warm_pool_size: options.warm_pool_size,
        patience: Some(PATIENCE),
    };
    let mut value = embedded::run(&plan)?;
    let job: Job = read(&value)?;
    let shown = options.json.then(|| {
        if let Some(members) = value.as_object_mut() {
            members.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
        }
        render::json(&value)
    });
    if job.status != "completed" {
        // The job is printed even if it failed; the exit code reports the failure.
        shown.map_or(Ok(()), |text| super::answer::print(&text))?;
        let why = if job.error.is_empty() { job.status } else { job.error };
        return Err(Refusal::new(format!("Job failed: {why}")));
    }
    if let Some(shown) = shown {
        return Ok(shown);
    }
    let timing = format!("[{}] warmup={:.1}ms, exec={:.1}ms", job.id, job.warmup_ms, job.execution_ms);
    Ok(format!("{}\n{timing}\n", render::result(&value["output_data"])))
}

fn status(options: &Status) -> Answer {
    let value = ask(&options.place, &["api", "jobs", &options.id], &[]);
    let value = value.map_err(|failure| match failure.exit {
        Exit::NotFound => Refusal::new(format!("Job not found: {}", options.id)),
        _ => told(&failure),
    })?;
    if options.place.json {
        return Ok(render::json(&value));
    }
    let job: Job = read(&value)?;
    let timing = if job.execution_ms > 0.0 || job.warmup_ms > 0.0 {
        format!("warmup={:.1}ms, exec={:.1}ms", job.warmup_ms, job.execution_ms)
    } else {
        String::new()
    };
    let lines = [
        ("Agent", job.agent_name),
        ("Status", job.status),
        ("Error", job.error),
        ("Output", job.output_data.as_ref().map(python::display).unwrap_or_default()),
        ("Timing", timing),
        ("Priority", if job.priority == 0 { String::new() } else { job.priority.to_string() }),
    ];
    let mut text = format!("Job: {}\n", job.id);
    for (name, value) in lines.into_iter().filter(|(_, value)| !value.is_empty()) {
        text += &format!("  {name}: {value}\n");
    }
    Ok(text)
}

fn list(options: &List) -> Answer {
    let limit = options.limit.to_string();
    let mut query = vec![("limit", limit.as_str())];
    query.extend(options.status.as_deref().map(|status| ("status", status)));
    query.extend(options.agent.as_deref().map(|agent| ("agent", agent)));
    let value = ask(&options.place, &["api", "jobs"], &query).map_err(|failure| told(&failure))?;
    if options.place.json {
        return Ok(render::json(&value));
    }
    let jobs: Vec<Job> = read(&value)?;
    if jobs.is_empty() {
        return Ok("No jobs found.\n".to_owned());
    }
    let lines = jobs.iter().map(|job| row(job) + "\n");
    Ok(format!("Found {} job(s):\n\n{}", jobs.len(), lines.collect::<String>()))
}

/// `  id  agent  status  (12ms)  [start of the error...]`.
fn row(job: &Job) -> String {
    let mut text = format!("  {}  {}  {}", job.id, job.agent_name, job.status);
    if job.execution_ms > 0.0 {
        text += &format!("  ({:.0}ms)", job.execution_ms);
    }
    if !job.error.is_empty() {
        text += &format!("  [{}...]", job.error.chars().take(ERROR_CHARACTERS).collect::<String>());
    }
    text
}

fn ask(place: &ServerOptions, path: &[&str], query: &[(&str, &str)]) -> Result<Value, Failure> {
    let client = Client::new(&place.server)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::usage(format!("the async runtime could not be started: {error}")))?;
    runtime.block_on(client.get(path, query))
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, Refusal> {
    job::read(value).map_err(|failure| told(&failure))
}

fn told(failure: &Failure) -> Refusal {
    Refusal::new(format!("Error: {}", failure.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_beginning_of_the_error() {
        let job = Job {
            id: "job-1".to_owned(),
            agent_name: "echo".to_owned(),
            status: "failed".to_owned(),
            error: "x".repeat(60),
            execution_ms: 12.3,
            ..Job::default()
        };
        let expected = format!("  job-1  echo  failed  (12ms)  [{}...]", "x".repeat(50));
        assert_eq!(row(&job), expected);
    }
}
