//! The tools of one attempt. The table is part of what the job is fixed to: later attempts do not read it again.
//!
//! A tool comes from a source. Another source is one more variant of [`ToolSource`], with an arm in [`Resolver::find`]
//! and one where the calls of a round are made.

mod call;
mod remote;

use std::collections::BTreeMap;

use atlas_contract::{Contract, Expose, RequiredServer, platform};
use atlas_mcp::{McpErrorKind, Meta, RemoteTool};
use atlas_model::Tool;
use atlas_turn::Offered;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub(super) use self::call::Platform;
use super::fault::Fault;
use crate::journal::{JournalError, hashed};
use crate::mailbox::Answer;
use crate::provider::mcp::{Servers, servers};

/// Most tools of an agent.
const TOOLS_MAX: usize = 128;

/// What answers the calls of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolSource {
    /// The platform.
    Platform,
    /// An agent of that name: a call is a job that the agent's own job spawns.
    Agent,
    /// A tool of an MCP server.
    Server { server: String, tool: String },
    /// One of the three tools with which a model uses those of an MCP server.
    Meta {
        server: String,
        meta: Meta,
        /// The tools of the server that the agent may call; none for all.
        tools: Option<Vec<String>>,
    },
}

/// The sources of all offered tools, by the tools' own names.
pub(super) type Sources = BTreeMap<String, ToolSource>;

/// The table of a job.
pub(super) struct Table {
    pub(super) offered: Vec<Offered>,
    pub(super) sources: Sources,
    /// What the job's log says about tools that are not in it.
    pub(super) warnings: Vec<String>,
}

/// The table while it is filled.
#[derive(Default)]
struct Found {
    tools: Vec<(String, Tool)>,
    sources: Sources,
    warnings: Vec<String>,
}

/// The table of a new job: the tools in `requires.skills`, in their order, then those of `requires.mcp_servers`. Platform tools
/// that only `requires.platform_tools` asks for are not offered to the model, as in Atlas for Python.
pub(super) async fn resolve(
    contract: &Contract,
    platform: &Platform,
    servers: &Servers,
    input: &[u8],
) -> Result<Table, Fault> {
    let mut found = Found::default();
    for name in &contract.requires.skills {
        if !found.sources.contains_key(name) {
            let (source, description, input_schema) = find(name, platform, servers).await?;
            found.add(name.clone(), source, description, input_schema)?;
        }
    }
    for required in &contract.requires.mcp_servers {
        found.server(required, servers, input).await?;
    }
    let Found { tools, sources, warnings } = found;
    let legal = atlas_llm::names::legal(tools.iter().map(|(name, _)| name.as_str()));
    let offered =
        tools.into_iter().zip(legal).map(|((name, tool), legal)| Offered { name, tool: Tool { name: legal, ..tool } });
    Ok(Table { offered: offered.collect(), sources, warnings })
}

impl Found {
    fn add(&mut self, name: String, source: ToolSource, description: String, input_schema: Value) -> Result<(), Fault> {
        if self.sources.len() >= TOOLS_MAX {
            return Err(Fault::Tools(format!("Skill resolution failed: the agent has more than {TOOLS_MAX} tools")));
        }
        let description = if description.is_empty() { format!("Tool: {name}") } else { description };
        self.tools.push((name.clone(), Tool { name: String::new(), description, input_schema }));
        self.sources.insert(name, source);
        Ok(())
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
        let (admitted, held) = match servers.admitted(target).await {
            Ok(tools) => tools,
            Err(error) if error.kind == McpErrorKind::Configuration => return Err(Fault::Tools(error.text)),
            Err(error) => {
                self.warnings.push(format!("{}; the job goes on without its tools", error.text));
                return Ok(());
            }
        };
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
                let source = ToolSource::Server { server: server.clone(), tool: tool.name };
                self.add(name, source, tool.description, tool.input_schema)?;
            }
        }
        Ok(())
    }
}

/// Whether an agent uses a tool.
fn wanted(wanted: Option<&[String]>, tool: &str) -> bool {
    let matches = |pattern: &String| match pattern.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => pattern == tool,
    };
    wanted.is_none_or(|wanted| wanted.iter().any(matches))
}

async fn find(name: &str, platform: &Platform, servers: &Servers) -> Result<(ToolSource, String, Value), Fault> {
    if let Some(tool) = platform::find(name) {
        return Ok((ToolSource::Platform, tool.description.to_owned(), tool.input_schema()));
    }
    if let Some((server, tool)) = name.split_once('.').filter(|(server, _)| servers.has(server)) {
        let RemoteTool { description, input_schema, .. } = skill_of(server, tool, servers).await?;
        let description = if description.is_empty() { format!("Remote tool: {tool}") } else { description };
        let source = ToolSource::Server { server: server.to_owned(), tool: tool.to_owned() };
        return Ok((source, description, input_schema));
    }
    let arguments = json!({"name": name});
    let key = hashed(&("resolve", name));
    let answer = platform.ask("atlas.registry.describe", &arguments, key).await?;
    let unknown = || Fault::Tools(format!("Skill resolution failed: Skill '{name}' not found in registry"));
    let described: Map<String, Value> = match answer {
        Answer::Completed(result) => serde_json::from_slice(&result).map_err(|_| unknown())?,
        Answer::Failed(why) | Answer::Refused(why) => {
            return Err(Fault::Tools(format!("Skill resolution failed: {why}")));
        }
    };
    if described.contains_key("error") {
        return Err(unknown());
    }
    let description = described.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let schema = described.get("input_schema").filter(|schema| schema.is_object());
    Ok((ToolSource::Agent, description, schema.cloned().unwrap_or_else(|| json!({"type": "object"}))))
}

/// A tool of a server that `requires.skills` names as `server.tool`.
async fn skill_of(server: &str, tool: &str, servers: &Servers) -> Result<RemoteTool, Fault> {
    let failed = |why: String| Fault::Tools(format!("Skill resolution failed: {why}"));
    let target = servers.get(server).map_err(|error| failed(error.text))?;
    let (admitted, _) = servers.admitted(target).await.map_err(|error| failed(error.text))?;
    let found = admitted.into_iter().find(|admitted| admitted.name == tool);
    found.ok_or_else(|| failed(format!("Skill '{server}.{tool}' not found in registry")))
}

/// The attempt has been stopped while it waited.
fn stopped() -> Fault {
    Fault::Journal(JournalError::Stopped)
}
