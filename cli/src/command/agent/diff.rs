//! `atlasctl agent diff`.

use std::path::Path;

use atlas_api::types::Agent;
use serde_json::Value;

use crate::answers;
use crate::client::Client;
use crate::command::agent::named;
use crate::command::deploy::pack;
use crate::context::Context;
use crate::difference;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl agent diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// NAME, NAME@VERSION, or the folder of an agent.
    #[arg(value_name = "A", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    old: String,
    /// Second agent to compare, in the same form.
    #[arg(value_name = "B", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    new: String,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let (old, new) = (contract(&client, &options.old).await?, contract(&client, &options.new).await?);
    let changes = difference::between(&old, &new);
    let value =
        changes.iter().map(|change| serde_json::json!({"pointer": change.place, "old": change.old, "new": change.new}));
    context.show(&Shown { value: value.collect(), text: difference::text(&changes), names: Vec::new() })?;
    Ok(if changes.is_empty() { Exit::Done } else { Exit::Short })
}

/// The contract of the agent folder `text`; if there is no such folder, of the registered version `text`.
async fn contract(client: &Client, text: &str) -> Result<Value, Failure> {
    let folder = Path::new(text);
    if atlas_package::is_agent(folder) {
        return Ok(pack(folder)?.contract.to_json());
    }
    let text = names::agent(text).map_err(Failure::usage)?;
    let (name, requirement) = named(&text);
    let query: Vec<(&str, &str)> = requirement.iter().map(|requirement| ("version", *requirement)).collect();
    let value = client.get(&["api", "agents", name], &query).await?;
    let agent: Agent = answers::read(&value)?;
    value.get("contract").cloned().ok_or_else(|| Failure::answer(format!("{} has no contract", agent.name)))
}
