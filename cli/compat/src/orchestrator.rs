//! `atlas orchestrator list|inspect|set|reset`. The last two use a running cluster.

use std::path::PathBuf;

use atlas_cli::{Client, Exit, Failure};
use atlas_package::DiscoveredAgent;
use atlas_types::AgentKind;
use serde_json::{Value, json};

use super::answer::{Answer, Refusal};
use super::{folder, render};

/// The subcommand.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Lists the orchestrators of a folder.
    List(List),
    /// Shows an orchestrator.
    Inspect(Inspect),
    /// Selects the orchestrator of a running cluster.
    Set(Set),
    /// Selects the default orchestrator of a running cluster.
    Reset(Server),
}

/// The address of a controller.
#[derive(Debug, clap::Args)]
pub(super) struct Server {
    /// Host of a controller.
    #[arg(long, default_value = "localhost")]
    host: String,
    /// Port of a controller.
    #[arg(long, default_value_t = 8080)]
    port: u16,
}

/// Options of `atlas orchestrator set`.
#[derive(Debug, clap::Args)]
pub(super) struct Set {
    /// Name of the orchestrator.
    name: String,
    #[command(flatten)]
    server: Server,
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
        Verb::Set(options) => Ok(format!("Orchestrator set to: {}\n", select(&options.server, Some(&options.name))?)),
        Verb::Reset(server) => Ok(format!("Orchestrator reset to: {}\n", select(server, None)?)),
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

/// Selects an orchestrator, and returns the name of the one that is selected then.
fn select(server: &Server, name: Option<&str>) -> Result<String, Refusal> {
    let address = format!("{}:{}", server.host, server.port);
    let told = |failure: Failure| match failure.exit {
        Exit::Unreachable => Refusal::new(format!("Could not connect to Atlas server at {address}")),
        _ => Refusal::new(format!("Error: {}", failure.message)),
    };
    let runtime = atlas_dev::runtime().map_err(|error| Refusal::new(format!("Error: {error}")))?;
    runtime.block_on(select_at(&format!("http://{address}"), name)).map_err(told)
}

/// Selects an orchestrator at the server of an address, and returns the name of the one that is selected then.
pub(super) async fn select_at(server: &str, name: Option<&str>) -> Result<String, Failure> {
    let client = Client::new(server)?;
    let answer = client.post(&["api", "orchestrator"], &[], &json!({"name": name})).await?;
    Ok(answer["orchestrator"].as_str().unwrap_or_default().to_owned())
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
