//! `atlasctl __complete`: prints the names that fit at a position of the command line; the completion scripts call it.
//!
//! It prints no errors, because they would appear in the middle of the line that the user types.

mod words;

use std::time::Duration;

use serde_json::Value;

use crate::client::Client;
use crate::command::complete::words::{CompletionContext, Names};
use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;

/// Longest wait for names after the user presses Tab.
const WITHIN: Duration = Duration::from_secs(1);

/// Maximum number of offered jobs; the newest jobs are offered.
const JOBS_MAX: &str = "1000";

/// Options of `atlasctl __complete`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The words behind the program's name, up to the one that is completed, which may be empty.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<String>,
}

/// The command line that is completed.
pub(crate) struct Line {
    /// All its commands.
    pub(crate) root: fn() -> clap::Command,
    /// The global options in some words of a line; none if these are no line.
    pub(crate) globals: fn(Vec<String>) -> Option<Globals>,
}

pub(crate) fn run(context: &Context, options: &Options, line: &Line) -> Result<Exit, Failure> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return Ok(Exit::Done) };
    let found = runtime.block_on(async { tokio::time::timeout(WITHIN, candidates(&options.words, line)).await });
    // A DNS lookup that is still running must not block the shell.
    runtime.shutdown_background();
    if let Ok(Some(found)) = found {
        context.print(&found.iter().map(|name| format!("{name}\n")).collect::<String>())?;
    }
    Ok(Exit::Done)
}

/// The candidates for the last word of the line.
async fn candidates(words: &[String], line: &Line) -> Option<Vec<String>> {
    let mut root = (line.root)();
    root.build();
    let place = CompletionContext::of(&root, words)?;
    // The cluster that the line names, otherwise the default one.
    let words = [vec!["atlasctl".to_owned()], place.cluster.clone(), vec!["version".to_owned()]].concat();
    let context = Context::new(&(line.globals)(words)?);
    let (mut found, mut client) = (Vec::new(), None);
    for names in &place.names {
        found.extend(match names {
            Names::Words(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            Names::Contexts => context.config().ok()?.contexts.keys().cloned().collect(),
            names => {
                if client.is_none() {
                    client = Some(context.client().ok()?);
                }
                asked(client.as_ref()?, names).await?
            }
        });
    }
    Some(place.fitting(found))
}

/// Asks the cluster for its names of one kind.
async fn asked(client: &Client, names: &Names) -> Option<Vec<String>> {
    let all = [("all", "true"), ("view", "full")];
    let (path, query, member): (&[&str], &[(&str, &str)], &str) = match names {
        Names::Jobs => (&["api", "jobs"], &[("limit", JOBS_MAX), ("view", "full")], "id"),
        Names::Agents | Names::Orchestrators => (&["api", "agents"], &[("view", "full")], "name"),
        Names::Versions => (&["api", "agents"], &all, "name"),
        Names::Nodes => (&["api", "nodes"], &[], "id"),
        Names::Conversations => (&["api", "conversations"], &[], "id"),
        Names::Knowledge => (&["api", "knowledge", "entries"], &[("limit", "1000")], "id"),
        Names::Bases => (&["api", "bases"], &[], "name"),
        Names::Questions => (&["api", "questions"], &[], "id"),
        Names::Controllers => (&["api", "cluster", "members"], &[], "name"),
        Names::Triggers => (&["api", "triggers"], &[("limit", "-1")], "id"),
        Names::Models | Names::Skills | Names::Secrets | Names::Chains | Names::Objects(_) => {
            let kind = match names {
                Names::Objects(kind) => kind,
                Names::Models => "model",
                Names::Skills => "skill",
                Names::Chains => "chain",
                _ => "secret",
            };
            let objects = object::all(client, kind).await.ok()?;
            return Some(
                objects.iter().filter_map(|model| model["metadata"]["name"].as_str().map(str::to_owned)).collect(),
            );
        }
        Names::Words(_) | Names::Contexts => return None,
    };
    let answer = client.get(path, query).await.ok()?;
    let name = |item: &Value| match (names, item[member].as_str()?) {
        (Names::Orchestrators, _) if item["kind"] != "orchestrator" => None,
        (Names::Versions, name) => Some(format!("{name}@{}", item["version"].as_str()?)),
        (_, name) => Some(name.to_owned()),
    };
    Some(answer.as_array()?.iter().filter_map(name).collect())
}
