//! `atlasctl import`: takes over agents from other systems.

mod loki;

use std::path::PathBuf;

use atlas_package::Package;
use serde_json::{Value, json};

use crate::client::Client;
use crate::command::deploy::label;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::pallas::Deployment;
use crate::program::{Checker, Has, RunsOn};
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
    let checker = Checker::new(RunsOn::Workers { tested: false });
    let lines = register(context, client.as_ref(), &deployment, options.replace, &checker).await?;
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

/// Registers the agents of a deployment, each after those on which it depends; without a client they are only packed and checked.
pub(crate) async fn register(
    context: &Context,
    client: Option<&Client>,
    deployment: &Deployment,
    replace: bool,
    checker: &Checker,
) -> Result<Vec<(String, String)>, Failure> {
    // Everything is packed and checked first, so that a mistake changes nothing.
    let packages: Vec<_> = deployment.agents.iter().map(|entry| deployment.package(entry)).collect::<Result<_, _>>()?;
    for (folder, package) in &packages {
        let (agent, findings) = (label(package), checker.check(folder, package).await);
        if let Some(failure) = findings.refusal(&agent) {
            return Err(failure);
        }
        findings.warnings.iter().for_each(|warning| context.note(&format!("{agent}   warning    {warning}")));
    }
    if let Some(client) = client {
        let along = packages.iter().map(|(_, package)| package.contract.name.to_string());
        let has = Has::ask(client, along).await.ok();
        for (folder, package) in &packages {
            client.register(package.bytes.clone(), replace).await?;
            for warning in has.iter().flat_map(|has| has.lacks(folder, &package.contract)) {
                context.note(&format!("{}   warning    {warning}", label(package)));
            }
        }
    }
    let named = |package: &Package| (package.contract.name.to_string(), package.contract.version.to_string());
    Ok(packages.iter().map(|(_, package)| named(package)).collect())
}
