//! `atlasctl agent schema`.

use atlas_api::types::Agent;
use serde_json::{Value, json};

use crate::answers;
use crate::command::agent::one_version;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl agent schema`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Agent name, optionally with @VERSION.
    #[arg(value_parser = names::agent)]
    name: String,
    /// Version or requirement; defaults to the latest.
    #[arg(long = "version", value_name = "REQUIREMENT")]
    requirement: Option<String>,
    /// Print only the input schema.
    #[arg(long, conflicts_with = "only_output")]
    only_input: bool,
    /// Print only the output schema.
    #[arg(long)]
    only_output: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let (name, requirement) = one_version(&options.name, options.requirement.as_deref())?;
    let query: Vec<(&str, &str)> = requirement.iter().map(|text| ("version", *text)).collect();
    let agent: Agent = answers::read(&context.client()?.get(&["api", "agents", name], &query).await?)?;
    let value: Value = if options.only_input {
        agent.input_schema
    } else if options.only_output {
        agent.output_schema
    } else {
        json!({"input": agent.input_schema, "output": agent.output_schema})
    };
    let text = format!("{value:#}\n");
    context.show(&Shown { value, text, names: vec![format!("agent/{}", agent.name)] })?;
    Ok(Exit::Done)
}
