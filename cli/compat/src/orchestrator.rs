//! `atlas orchestrator list|inspect`.

use std::path::PathBuf;

use atlas_package::DiscoveredAgent;
use atlas_types::AgentKind;
use serde_json::{Value, json};

use super::{Answer, Refusal, folder, render};

/// The subcommand.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Lists the orchestrators of a folder.
    List(List),
    /// Shows an orchestrator.
    Inspect(Inspect),
}

/// Options.
#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Folder of agents.
    #[arg(long, alias = "agents", default_value = "./agents", value_name = "DIR")]
    agents_path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Options.
#[derive(Debug, clap::Args)]
pub(super) struct Inspect {
    /// Name of the orchestrator.
    name: String,
    #[command(flatten)]
    list: List,
}

pub(super) fn run(verb: &Verb) -> Answer {
    match verb {
        Verb::List(options) => Ok(list(options)),
        Verb::Inspect(options) => inspect(options),
    }
}

fn list(options: &List) -> String {
    let found = orchestrators(options);
    if options.json {
        return render::json(&Value::Array(found.iter().map(as_json).collect()));
    }
    if found.is_empty() {
        return "No orchestrators found.\n".to_owned();
    }
    let mut text = format!("Found {} orchestrator(s):\n\n", found.len());
    for DiscoveredAgent { contract, .. } in &found {
        text += &format!("{}\n    {}\n", folder::line(contract), contract.description);
    }
    text
}

fn inspect(options: &Inspect) -> Answer {
    let found = orchestrators(&options.list);
    let found = folder::latest(&found, &options.name);
    let found = found.ok_or_else(|| Refusal::new(format!("Orchestrator not found: {}", options.name)))?;
    if options.list.json {
        return Ok(render::json(&as_json(found)));
    }
    let contract = &found.contract;
    Ok(format!(
        "Orchestrator: {}\nVersion: {}\nDescription: {}\nCapabilities: {}\nImplementation: {}\n",
        contract.name,
        contract.version,
        contract.description,
        contract.capabilities.join(", "),
        if implemented(found) { "yes" } else { "no" },
    ))
}

fn orchestrators(options: &List) -> Vec<DiscoveredAgent> {
    let mut found = folder::agents(&options.agents_path);
    found.retain(|agent| agent.contract.kind == AgentKind::Orchestrator);
    found
}

fn as_json(found: &DiscoveredAgent) -> Value {
    json!({
        "name": found.contract.name.as_str(),
        "version": found.contract.version.to_string(),
        "description": found.contract.description,
        "capabilities": found.contract.capabilities,
        "type": "orchestrator",
        "has_implementation": implemented(found),
    })
}

/// Whether the folder contains a program besides the contract.
fn implemented(found: &DiscoveredAgent) -> bool {
    found.dir.join("agent.py").is_file()
}
