//! `atlasctl chain`: agents that work one after the other; one file per verb.

mod check;
mod definition;
mod graph;
mod run;
mod runs;
mod tree;

use atlas_api::types::ObjectMetadata;
use serde::Deserialize;
use serde_json::Value;

use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, List, ListOptions, column, members, wide};

pub(crate) use check::warnings;
pub(crate) use definition::{input_schema, is_definition, put, put_text};
pub(crate) use run::{Start, conclude, start, wait};

/// The word of chains in the API.
pub(crate) const KIND: &str = "chain";

/// Verbs of `atlasctl chain`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists stored chains.
    List(Options),
    /// Shows one stored chain as apply reads it.
    Show(Names),
    /// Shows how each step of a chain gets its input from the step before.
    Check(check::Options),
    /// Draws the steps of a chain.
    Graph(graph::Options),
    /// Runs a stored chain, or one in a file, and prints its output.
    Run(run::Options),
    /// Lists runs of chains, newest first. The verbs of atlasctl job take their ids.
    Runs(runs::Options),
}

/// Options of `atlasctl chain list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    list: ListOptions,
}

/// Names of chains.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {
    /// The chain's name.
    #[arg(value_name = "NAME", required = true, value_parser = names::chain)]
    names: Vec<String>,
}

/// A chain as a list shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chain {
    metadata: ObjectMetadata,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    description: String,
    steps: Vec<Step>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step {
    agent: String,
}

const COLUMNS: [Column<Chain>; 5] = [
    column("NAME", "metadata", |chain, _| chain.metadata.name.clone()),
    column("STEPS", "spec", |chain, _| {
        chain.spec.steps.iter().map(|step| step.agent.as_str()).collect::<Vec<_>>().join(" → ")
    }),
    column("DESCRIPTION", "spec", |chain, _| chain.spec.description.clone()),
    wide("REVISION", "metadata", |chain, _| chain.metadata.revision.to_string()),
    wide("NAMESPACE", "metadata", |chain, _| chain.metadata.namespace.clone()),
];

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List(options) => list(context, options).await,
        Verb::Show(options) => {
            names::each(context, &options.names, async |name| object::show(context, KIND, name).await).await
        }
        Verb::Check(options) => check::run(context, options).await,
        Verb::Graph(options) => graph::run(context, options).await,
        Verb::Run(options) => run::run(context, options).await,
        Verb::Runs(options) => runs::run(context, options).await,
    }
}

async fn list(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let chains = object::all(&context.client()?, KIND).await?;
    let name = |chain: &Chain| format!("{KIND}/{}", chain.metadata.name);
    let list = List { columns: &COLUMNS, members: members::OBJECT, name };
    if context.list(Value::Array(chains), &options.list, &list)? == 0 {
        context.note("no chains: atlasctl deploy chain.yaml");
    }
    Ok(Exit::Done)
}
