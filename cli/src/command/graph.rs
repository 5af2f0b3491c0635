//! `atlasctl graph`: graph agents in folders. It needs no server.

mod history;
mod watch;

pub(crate) use watch::{Nodes, event_line};

use std::path::{Path, PathBuf};

use atlas_graph::{Finding, Level, LoadError, LoadedGraph};
use atlas_package::{CONTRACT_FILE, GRAPH_FILE, GraphError, GraphFolder};
use serde_json::{Value, json};

use crate::command::run as run_agent;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::program::{Findings, definition};
use crate::words;

/// Verbs of `atlasctl graph`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Checks a graph without running it.
    Check(Options),
    /// Draws a graph.
    Show(ShowOptions),
    /// Runs a deployed graph, as atlasctl run does.
    Run(Box<run_agent::Options>),
    /// Lists the recorded work of a run: which nodes ended, and with what result.
    History(history::Options),
    /// Follows a run until it has ended: which nodes run, what each super-step changed, where the run goes on, and what each node cost.
    Watch(watch::Options),
    /// Begins a new run with the recorded work of a failed one, and does the failed work of its last super-step again.
    Resume(history::ResumeOptions),
    /// Begins a new run with the first recorded steps of another one.
    Fork(history::ForkOptions),
}

/// Options of `atlasctl graph check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder with a graph.yaml.
    #[arg(default_value = ".")]
    folder: PathBuf,
}

/// Options of `atlasctl graph show`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowOptions {
    /// Folder with a graph.yaml.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Draw in the language of Mermaid, for documents.
    #[arg(long)]
    mermaid: bool,
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Check(options) => check(context, &options.folder),
        Verb::Show(options) => show(context, options),
        Verb::Run(options) => run_agent::run(context, options).await,
        Verb::History(options) => history::run(context, options).await,
        Verb::Watch(options) => watch::run(context, options).await,
        Verb::Resume(options) => history::resume(context, options).await,
        Verb::Fork(options) => history::fork(context, options).await,
    }
}

fn check(context: &Context, folder: &Path) -> Result<Exit, Failure> {
    let graph = GraphFolder::new(&named(folder)?);
    let loaded = read(&graph)?;
    // One that cannot be read is told by what reads it: deploy and test.
    let contract = std::fs::read(graph.folder.join(CONTRACT_FILE)).ok();
    let contract = contract.and_then(|text| atlas_contract::parse(&text).ok());
    let graph = GraphFolder { known: definition::known(&graph.folder, &loaded.graph, contract.as_ref()), ..graph };
    let found = atlas_graph::check(&loaded, &graph);
    let mut beyond = Findings::default();
    definition::beyond(&graph.folder, &loaded, &mut beyond);
    let errors = found.iter().filter(|finding| finding.level == Level::Error).count() + beyond.faults.len();
    let warnings = found.len() + beyond.faults.len() + beyond.warnings.len() - errors;
    let counted = format!("{}, {}", words::count(errors as u64, "error"), words::count(warnings as u64, "warning"));
    let mut text: String = found.iter().map(line).collect();
    text.extend(beyond.faults.iter().map(|(at, what)| format!("error    {at}: {what}\n")));
    text.extend(beyond.warnings.iter().map(|warning| format!("warning  {warning}\n")));
    let nodes = words::count(loaded.graph.nodes.len() as u64, "node");
    text.push_str(&format!("graph {}: {nodes}, {counted}\n", loaded.graph.name));
    let value = json!({
        "graph": loaded.graph.name, "nodes": loaded.graph.nodes.len(), "errors": errors, "warnings": warnings,
        "findings": found.iter().map(value).chain(beyond_values(&beyond)).collect::<Vec<_>>(),
    });
    context.show(&Shown { value, text, names: vec![format!("graph/{}", loaded.graph.name)] })?;
    Ok(match (errors, warnings) {
        (0, 0) => Exit::Done,
        (0, _) => Exit::Short,
        _ => Exit::Invalid,
    })
}

/// What tools, documents and schemas of nodes have wrong, in the form of findings.
fn beyond_values(beyond: &Findings) -> impl Iterator<Item = Value> {
    let shown = |level: &str, path: &str, message: &str, hint: Option<&str>| {
        json!({
            "check": "first-job", "level": level, "node": null, "pointer": path, "line": null, "message": message, "suggestion": hint,
        })
    };
    let faults = beyond.faults.iter().map(move |(at, what)| shown("error", at, what, None));
    faults.chain(
        beyond
            .warnings
            .iter()
            .map(move |warning| shown("warning", &warning.path, &warning.message, warning.hint.as_deref())),
    )
}

fn show(context: &Context, options: &ShowOptions) -> Result<Exit, Failure> {
    let graph = read(&GraphFolder::new(&named(&options.folder)?))?.graph;
    let drawn = if options.mermaid { atlas_graph::draw::mermaid(&graph) } else { atlas_graph::draw::text(&graph) };
    let text = drawn + "\n";
    context.show(&Shown { value: graph.to_json(), text, names: vec![format!("graph/{}", graph.name)] })?;
    Ok(Exit::Done)
}

/// The folder by its own name, because other agents are looked up next to it.
fn named(folder: &Path) -> Result<PathBuf, Failure> {
    folder.canonicalize().map_err(|error| words::could_not("read", folder, &error))
}

fn read(folder: &GraphFolder) -> Result<LoadedGraph, Failure> {
    folder.read_strictly().map_err(|error| {
        let file = folder.folder.join(GRAPH_FILE);
        let failure =
            |message: String| Failure::new("E1103", Exit::Invalid, message).with_next("the rules: atlasctl docs graph");
        match error {
            GraphError::Load(errors) => {
                let message = format!("the graph \"{}\" cannot be read", file.display());
                Failure { places: errors.0.iter().map(place).collect(), ..failure(message) }
            }
            other => failure(format!("\"{}\": {}", folder.folder.display(), atlas_env::chain(&other))),
        }
    })
}

/// Where a document is wrong, and how.
fn place(error: &LoadError) -> (String, String) {
    let hint = error.suggestion.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let place = match error.line {
        Some(line) => format!("line {line}"),
        None => "/".to_owned(),
    };
    let what = match (error.pointer.as_str(), &error.kind) {
        (pointer, atlas_graph::LoadErrorKind::WrongType { .. }) if !pointer.is_empty() => {
            format!("{pointer} {}", error.kind)
        }
        _ => error.kind.to_string(),
    };
    (place, what + &hint)
}

fn line(finding: &Finding) -> String {
    let level = if finding.level == Level::Error { "error  " } else { "warning" };
    format!("{level}  {finding}\n")
}

fn value(finding: &Finding) -> Value {
    json!({
        "check": finding.check.code(),
        "level": if finding.level == Level::Error { "error" } else { "warning" },
        "node": finding.node,
        "pointer": finding.pointer,
        "line": finding.line,
        "message": finding.message,
        "suggestion": finding.suggestion,
    })
}
