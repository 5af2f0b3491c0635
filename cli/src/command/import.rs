//! `atlasctl import`: takes over agents from other systems.

mod loki;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::pallas::Deployment;
use crate::words;

/// Systems from which agents are taken over.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Registers the agents of a deployment of Pallas.
    Pallas(Options),
    /// Registers the agents of a configuration folder of Loki, and lists what it could not take over.
    Loki(loki::Options),
}

/// Options of `atlasctl import pallas`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The deployment file, agents.yaml.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Check and pack, without registering.
    #[arg(long)]
    dry_run: bool,
    /// Replace the packages of versions that are registered with other files.
    #[arg(long)]
    replace: bool,
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    let options = match verb {
        Verb::Pallas(options) => options,
        Verb::Loki(options) => return loki::run(context, options).await,
    };
    let deployment = Deployment::open(&options.file)?;
    let client = if options.dry_run { None } else { Some(context.client()?) };
    let lines = register(client.as_ref(), &deployment, options.replace).await?;
    let text: String = lines.iter().map(|(name, version)| format!("{name} {version}  /agents/{name}/mcp\n")).collect();
    let value = Value::Array(lines.iter().map(|(name, version)| json!({ "name": name, "version": version })).collect());
    let names = lines.iter().map(|(name, _)| format!("agent/{name}")).collect();
    context.show(&Shown { text, value, names })?;
    context.note(&format!("{}: {}", deployment.name, words::count(lines.len() as u64, "agent")));
    let address = deployment.address();
    let listeners = deployment.listeners(&address);
    if !listeners.is_empty() {
        context.note(&format!("ports of agents, the option mcp.agent-listen of the controllers: {listeners}"));
    }
    if let Some(port) = deployment.registry_port {
        context.note(&format!(
            "port of the registry document, the option mcp.registry-listen of the controllers: {address}:{port}"
        ));
    }
    if let Some(namespace) = &deployment.namespace {
        context.note(&format!("names in the registry document, the option mcp.registry-namespace: {namespace}"));
    }
    Ok(Exit::Done)
}

/// Registers the agents of a deployment, each after those on which it depends; without a client they are only packed.
pub(crate) async fn register(
    client: Option<&Client>,
    deployment: &Deployment,
    replace: bool,
) -> Result<Vec<(String, String)>, Failure> {
    // Everything is packed first, so that a mistake changes nothing.
    let packages: Vec<_> = deployment.agents.iter().map(|entry| deployment.package(entry)).collect::<Result<_, _>>()?;
    let mut registered = Vec::new();
    for package in packages {
        let contract = &package.contract;
        registered.push((contract.name.to_string(), contract.version.to_string()));
        if let Some(client) = client {
            client.register(package.bytes, replace).await?;
        }
    }
    Ok(registered)
}
