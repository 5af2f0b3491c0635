//! `atlasctl memory compact`: a job asks a model for a summary of the oldest entries, and one change of the memory puts it in their place.
//! Entries that are appended meanwhile stay; a memory whose oldest entries are others by then is not changed.

use std::time::Duration;

use atlas_api::types::{Job, Memory, MemoryEntry};
use serde_json::{Value, json};

use super::{PATH, Scope};
use crate::answers;
use crate::command::model;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// The contract of the agent that writes summaries. It is registered with the first one.
const CONTRACT: &str = include_str!("compact.yaml");
const AGENT: &str = "memory-compact";

/// Options of `atlasctl memory compact`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    #[command(flatten)]
    scope: Scope,
    /// The model that writes the summary.
    #[arg(long, value_name = "NAME", value_parser = names::model)]
    model: String,
    /// How many of the newest entries stay as they are.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    keep: usize,
    /// Longest wait for the summary.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = words::parse_duration)]
    timeout: Duration,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let Options { scope: Scope { scope }, model, keep, timeout } = options;
    let client = context.client()?;
    let value = client.get(&[PATH[0], PATH[1], "entries"], &[("scope", scope)]).await?;
    let entries: Vec<MemoryEntry> = answers::read(&value)?;
    let live: Vec<&MemoryEntry> = entries.iter().filter(|entry| !entry.replaced).collect();
    let old = oldest(&live, *keep);
    let (Some(first), Some(last)) = (old.first(), old.last()) else {
        let there = words::entries(live.len() as u64);
        context.note(&format!(
            "nothing to compact: the memory of {scope} has {there}, and --keep leaves {keep} as they are"
        ));
        let memory = client.get(&PATH, &[("scope", scope)]).await?;
        return show(context, memory, |name, _| format!("{name}  unchanged  {there}\n"));
    };
    let texts: Vec<&str> = old.iter().map(|entry| entry.text.as_str()).collect();
    let input = json!({"model": model, "entries": texts});
    let value = model::job_of_own_agent(&client, AGENT, CONTRACT, input, *timeout, Some(context)).await?;
    let job: Job = answers::read(&value)?;
    let summary = summary(&job, model)?;
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let of = json!({"first": first.id, "last": last.id, "entries": old.len(), "job": job.id});
    let body = json!({"content": summary, "action": "compact", "scope": scope, "summary_of": of});
    let memory = client.post(&PATH, &[], &body).await.map_err(|failure| match failure.exit {
        Exit::Conflict => failure.with_next("run the command again: it reads the memory as it is now"),
        _ => failure.with_next(format!("what the model wrote: atlasctl job result {}", job.id)),
    })?;
    let compacted = words::entries(old.len() as u64);
    let (before, after) = (words::bytes(bytes as u64), words::bytes(summary.len() as u64));
    show(context, memory, |name, memory| {
        let now = format!("{}, {}", words::entries(memory.entries), words::bytes(memory.bytes));
        format!("{name}  compacted  {compacted}, {before} to a summary of {after}  ({now} now)\n")
    })
}

fn show(context: &Context, value: Value, text: impl Fn(&str, &Memory) -> String) -> Result<Exit, Failure> {
    let memory: Memory = answers::read(&value)?;
    let name = format!("memory/{}", memory.scope);
    context.show(&Shown { text: text(&name, &memory), value, names: vec![name] })?;
    Ok(Exit::Done)
}

/// The entries before the newest ones; none if they are only a summary, which another one would not make shorter.
fn oldest<'e>(live: &'e [&'e MemoryEntry], keep: usize) -> &'e [&'e MemoryEntry] {
    let old = live.get(..live.len().saturating_sub(keep)).unwrap_or_default();
    match old {
        [entry] if entry.summary => &[],
        old => old,
    }
}

/// What the model wrote.
fn summary(job: &Job, model: &str) -> Result<String, Failure> {
    let id = &job.id;
    match ending::exit(job) {
        Exit::Done => {}
        Exit::JobFailed => return Err(model::failed(model, job)),
        exit => {
            let text = format!("the model \"{model}\" has written no summary: the job {id} is {}", job.standing());
            let code = if exit == Exit::WaitTimedOut { "E4004" } else { "E3201" };
            return Err(Failure::new(code, exit, text).with_next(format!("atlasctl job explain {id}")));
        }
    }
    if job.metadata.get("_halted").is_some() {
        let text = format!("the summary of the model \"{model}\" was cut off; the memory is as it was");
        return Err(Failure::new("E3201", Exit::JobFailed, text).with_next("keep more entries as they are: --keep"));
    }
    let output = job.output_data.as_ref();
    let text = output.and_then(|output| output.get("result")).and_then(Value::as_str).map(str::trim);
    let text = text.filter(|text| !text.is_empty()).map(str::to_owned);
    text.ok_or_else(|| {
        let text = format!("the model \"{model}\" wrote nothing; the memory is as it was");
        Failure::new("E3201", Exit::JobFailed, text).with_next(format!("atlasctl job steps {id}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, summary: bool) -> MemoryEntry {
        MemoryEntry { id: id.to_owned(), summary, replaces: summary, ..MemoryEntry::default() }
    }

    #[test]
    fn the_contract_takes_the_model_from_its_input() {
        let contract = atlas_contract::parse(CONTRACT.as_bytes()).expect("a contract");
        assert_eq!((contract.name.as_str(), contract.model.name.as_deref()), (AGENT, Some("{input.model}")));
        assert!(contract.warnings.is_empty(), "{:?}", contract.warnings);
    }

    #[test]
    fn the_newest_entries_stay() {
        let entries = [entry("1", true), entry("2", false), entry("3", false)];
        let live: Vec<&MemoryEntry> = entries.iter().collect();
        let ids = |keep| oldest(&live, keep).iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>();
        assert_eq!(ids(0), ["1", "2", "3"]);
        assert_eq!(ids(1), ["1", "2"]);
        // Only the summary itself is left.
        assert_eq!(ids(2), Vec::<&str>::new());
        assert_eq!(ids(9), Vec::<&str>::new());
    }

    #[test]
    fn an_empty_answer_is_no_summary() {
        let job = |output: Value| {
            let job = Job { status: "completed".to_owned(), id: "job-1".to_owned(), ..Job::default() };
            summary(&Job { output_data: Some(output), ..job }, "fast").map_err(|failure| failure.message)
        };
        assert_eq!(job(json!({"result": " Ada: tea. \n"})), Ok("Ada: tea.".to_owned()));
        for output in [json!({"result": " \n"}), json!({"error": "max iterations reached"}), Value::Null] {
            assert_eq!(job(output), Err("the model \"fast\" wrote nothing; the memory is as it was".to_owned()));
        }
    }
}
