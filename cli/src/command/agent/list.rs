//! `atlasctl agent list` and `atlasctl agent versions`.

use atlas_api::types::Agent;
use serde_json::Value;

use crate::command::agent::named;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{self, Column, List, Look, column, members, wide};
use crate::watch::{Watching, poll};
use crate::words;

/// Options of `atlasctl agent list`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// List every version, including retired ones.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) list: output::ListOptions,
    #[command(flatten)]
    pub(crate) watching: Watching,
}

/// Options of `atlasctl agent versions`.
#[derive(Debug, clap::Args)]
pub(crate) struct VersionsOptions {
    /// The agent's name.
    #[arg(value_parser = names::agent)]
    name: String,
    #[command(flatten)]
    list: output::ListOptions,
}

const COLUMNS: [Column<Agent>; 8] = [
    column("AGENT", "name", |agent, _| agent.name.clone()),
    column("VERSION", "version", version),
    column("PROGRAM", "provider", |agent, _| agent.provider.clone()),
    column("DESCRIPTION", "description", |agent, _| words::short(&agent.description, 50)),
    wide("CAPABILITIES", "capabilities", |agent, _| agent.capabilities.join(" ")),
    wide("PACKAGE", "digest", |agent, _| agent.digest.get(..15).unwrap_or(&agent.digest).to_owned()),
    wide("AGE", "registered_at", |agent, look| look.when(agent.registered_at)),
    wide("LABELS", "labels", |agent, _| words::labels(&agent.labels)),
];

const LIST: List<'static, Agent> =
    List { columns: &COLUMNS, members: members::AGENT, name: |agent| format!("agent/{}", agent.name) };

const VERSIONS: [Column<Agent>; 5] = [
    column("AGENT", "name", |agent, _| agent.name.clone()),
    column("VERSION", "version", version),
    column("AGE", "registered_at", |agent, look| look.when(agent.registered_at)),
    column("PACKAGE", "digest", |agent, _| agent.digest.get(..15).unwrap_or(&agent.digest).to_owned()),
    wide("SIZE", "package_bytes", |agent, _| words::bytes(agent.package_bytes)),
];

fn version_name(agent: &Agent) -> String {
    format!("agent/{}@{}", agent.name, agent.version)
}

fn version(agent: &Agent, _: &Look) -> String {
    match (agent.retired, agent.deprecated.is_none()) {
        (true, _) => format!("{} (retired)", agent.version),
        (false, false) => format!("{} (deprecated)", agent.version),
        (false, true) if agent.circuit.since.is_some() => format!("{} (failing)", agent.version),
        (false, true) => agent.version.clone(),
    }
}

pub(crate) async fn list(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let all = if options.all { "true" } else { "false" };
    let fetch = async || client.get(&["api", "agents"], &[("all", all), ("view", "full")]).await;
    if options.watching.watch {
        // Without --all the list has one version per agent, and that version can change; so the key is then the
        // agent's name without the version.
        let key = if options.all { version_key } else { key };
        return poll(context, &LIST, &options.list, key, fetch).await;
    }
    let list = if options.all { List { name: version_name, ..LIST } } else { LIST };
    if context.list(fetch().await?, &options.list, &list)? == 0 {
        context.note("no agents");
        context.next("next: atlasctl init hello");
    }
    Ok(Exit::Done)
}

/// Lists one agent, and lists it again after each change.
pub(crate) async fn watch(
    context: &Context,
    name: &str,
    requirement: Option<&str>,
    options: &output::ListOptions,
) -> Result<Exit, Failure> {
    let client = context.client()?;
    let query: Vec<(&str, &str)> = requirement.iter().map(|text| ("version", *text)).collect();
    client.get(&["api", "agents", name], &query).await?;
    let fetch = async || match client.get(&["api", "agents", name], &query).await {
        Err(failure) if failure.exit == Exit::NotFound => Ok(Value::Array(Vec::new())),
        agent => Ok(Value::Array(vec![agent?])),
    };
    poll(context, &LIST, options, key, fetch).await
}

fn key(agent: &Value) -> String {
    format!("agent/{}", agent["name"].as_str().unwrap_or_default())
}

fn version_key(agent: &Value) -> String {
    format!("{}@{}", key(agent), agent["version"].as_str().unwrap_or_default())
}

/// Prints a list of agents; returns how many there are.
pub(super) fn shown(context: &Context, value: Value, options: &output::ListOptions) -> Result<usize, Failure> {
    context.list(value, options, &LIST)
}

pub(super) async fn versions(context: &Context, options: &VersionsOptions) -> Result<Exit, Failure> {
    let client = context.client()?;
    let (name, _) = named(&options.name);
    let mut value = client.get(&["api", "agents"], &[("all", "true"), ("name", name), ("view", "full")]).await?;
    if let Some(agents) = value.as_array_mut() {
        agents.retain(|agent| agent["name"] == name);
        if agents.is_empty() {
            // The server's refusal suggests a similar name.
            client.get(&["api", "agents", name], &[]).await?;
        }
    }
    context.list(value, &options.list, &List { columns: &VERSIONS, members: members::AGENT, name: version_name })?;
    Ok(Exit::Done)
}
