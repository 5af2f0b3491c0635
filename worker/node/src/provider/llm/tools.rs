//! The tools of one attempt. The table is part of what the job is fixed to: later attempts do not read it again.
//!
//! A tool comes from a source. Another source is one more variant of [`ToolSource`], with an arm where names are looked up
//! and one where the calls of a round are made.

pub(in crate::provider) mod call;
pub(in crate::provider) mod help;
mod remote;

use std::collections::BTreeMap;

use atlas_contract::{Contract, Expose, ProviderKind, RequiredServer};
use atlas_mcp::{McpErrorKind, Meta, RemoteTool};
use atlas_model::Tool;
use atlas_turn::OfferedTool;
use serde_json::Value;

use super::fault::Fault;
use crate::journal::JournalError;
use crate::provider::library;
use crate::provider::mcp::servers::Admitted;
use crate::provider::mcp::{Servers, servers};
use crate::provider::platform::{Found, Missing, Platform, Stopped, ToolSource};

/// Most tools of an agent.
const TOOLS_MAX: usize = 128;

/// The sources of all offered tools, by the tools' own names.
pub(in crate::provider) type Sources = BTreeMap<String, ToolSource>;

/// The table of a job.
pub(super) struct Table {
    pub(super) offered: Vec<OfferedTool>,
    pub(super) sources: Sources,
    /// What the job's log says about tools that are not in it.
    pub(super) warnings: Vec<String>,
}

/// The table while it is filled.
#[derive(Default)]
struct Filling {
    tools: Vec<(String, Tool)>,
    sources: Sources,
    warnings: Vec<String>,
}

/// The table of a new job: the tools in `requires.skills`, in their order, those of memory and knowledge, then those of `requires.mcp_servers`. Platform tools
/// that only `requires.platform_tools` asks for are not offered to the model, as in Atlas for Python.
pub(super) async fn resolve(
    contract: &Contract,
    platform: &Platform,
    servers: &Servers,
    input: &[u8],
) -> Result<Table, Fault> {
    let mut found = Filling::default();
    for entry in &contract.requires.skills {
        if !found.sources.contains_key(entry) {
            let Found { name, source, description, input_schema } = find(entry, platform, servers).await?;
            match &source {
                ToolSource::Server { server, tool } => {
                    let (server, tool) = (server.clone(), tool.clone());
                    found.remote(name, (server, tool), description, &input_schema)?;
                }
                _ => found.add(name, source, description, input_schema)?,
            }
        }
    }
    if matches!(contract.provider.kind, ProviderKind::Llm | ProviderKind::LokiAgent) {
        for (name, description, schema) in library::offered(&contract.requires) {
            if !found.sources.contains_key(name) {
                found.add(name.to_owned(), ToolSource::Library, description.to_owned(), schema)?;
            }
        }
    }
    for required in &contract.requires.mcp_servers {
        found.server(required, servers, input).await?;
    }
    let Filling { tools, sources, warnings } = found;
    let legal = atlas_llm::names::legal(tools.iter().map(|(name, _)| name.as_str()));
    let offered = tools
        .into_iter()
        .zip(legal)
        .map(|((name, tool), legal)| OfferedTool { name, tool: Tool { name: legal, ..tool } });
    Ok(Table { offered: offered.collect(), sources, warnings })
}

impl Filling {
    fn add(&mut self, name: String, source: ToolSource, description: String, input_schema: Value) -> Result<(), Fault> {
        if self.sources.len() >= TOOLS_MAX {
            return Err(Fault::Tools(format!("Skill resolution failed: the agent has more than {TOOLS_MAX} tools")));
        }
        let description = if description.is_empty() { format!("Tool: {name}") } else { description };
        if self.sources.insert(name.clone(), source).is_none() {
            self.tools.push((name, Tool { name: String::new(), description, input_schema }));
        }
        Ok(())
    }

    /// A tool of an MCP server, with a schema that every provider takes. If there is none, the tool is left out, and the job's log says so.
    fn remote(
        &mut self,
        name: String,
        (server, tool): (String, String),
        description: String,
        schema: &Value,
    ) -> Result<(), Fault> {
        match atlas_mcp::for_models(schema) {
            Ok(schema) => self.add(name, ToolSource::Server { server, tool }, description, schema),
            Err(why) => {
                self.warnings.push(format!("the MCP server {server}: {}", servers::unoffered(&tool, &why)));
                Ok(())
            }
        }
    }

    /// The tools of an MCP server. A server that does not work is left out, and the job's log says so; one that does not exist, or
    /// whose definition cannot be used, fails the job.
    async fn server(&mut self, required: &RequiredServer, servers: &Servers, input: &[u8]) -> Result<(), Fault> {
        let server = servers::named(&required.name, input);
        let target = servers.get(&server).map_err(|error| Fault::Tools(error.text))?;
        if required.expose == Expose::Search {
            for meta in Meta::ALL {
                let source = ToolSource::Meta { server: server.clone(), meta, tools: required.tools.clone() };
                self.add(meta.name(&server), source, meta.description(&server), meta.schema())?;
            }
            return Ok(());
        }
        let Admitted { tools: admitted, held, left_out } = match servers.admitted(target).await {
            Ok(tools) => tools,
            Err(error) if error.kind == McpErrorKind::Configuration => return Err(Fault::Tools(error.text)),
            Err(error) => {
                self.warnings.push(format!("{}; the job goes on without its tools", error.text));
                return Ok(());
            }
        };
        for why in left_out {
            self.warnings.push(format!("the MCP server {server}: {why}; the job goes on without it"));
        }
        for (tool, verdict) in held {
            self.warnings.push(format!(
                "the tool {} of the MCP server {server} is held back because it is {}; accept it: atlasctl mcp accept-changes {server}",
                tool.name,
                servers::word(verdict),
            ));
        }
        for tool in admitted.into_iter().filter(|tool| wanted(required.tools.as_deref(), &tool.name)) {
            let name = format!("{server}.{}", tool.name);
            if !self.sources.contains_key(&name) {
                self.remote(name, (server.clone(), tool.name), tool.description, &tool.input_schema)?;
            }
        }
        Ok(())
    }
}

/// Whether an agent uses a tool.
pub(in crate::provider) fn wanted(wanted: Option<&[String]>, tool: &str) -> bool {
    let matches = |pattern: &String| match pattern.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => pattern == tool,
    };
    wanted.is_none_or(|wanted| wanted.iter().any(matches))
}

/// What an entry of `requires.skills` names: a tool of a server as `server.tool`, or what the registry knows.
async fn find(entry: &str, platform: &Platform, servers: &Servers) -> Result<Found, Fault> {
    if let Some((server, tool)) = entry.split_once('.').filter(|(server, _)| servers.has(server)) {
        let RemoteTool { description, input_schema, .. } = skill_of(server, tool, servers).await?;
        let description = if description.is_empty() { format!("Remote tool: {tool}") } else { description };
        let source = ToolSource::Server { server: server.to_owned(), tool: tool.to_owned() };
        return Ok(Found { name: entry.to_owned(), source, description, input_schema });
    }
    let found = platform.find(entry).await.map_err(stopped)?;
    found.map_err(|Missing { why, .. }| Fault::Tools(format!("Skill resolution failed: {why}")))
}

/// A tool of a server that `requires.skills` names as `server.tool`.
async fn skill_of(server: &str, tool: &str, servers: &Servers) -> Result<RemoteTool, Fault> {
    let failed = |why: String| Fault::Tools(format!("Skill resolution failed: {why}"));
    let target = servers.get(server).map_err(|error| failed(error.text))?;
    let admitted = servers.admitted(target).await.map_err(|error| failed(error.text))?;
    let found = admitted.tools.into_iter().find(|admitted| admitted.name == tool);
    found.ok_or_else(|| failed(format!("Skill '{server}.{tool}' not found in registry")))
}

/// The attempt has been stopped while it waited.
fn stopped(_: Stopped) -> Fault {
    Fault::Journal(JournalError::Stopped)
}
