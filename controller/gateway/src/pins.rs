//! Pinned agents as tools: the agent's name, description and input schema.

use std::borrow::Cow;
use std::sync::Arc;

use atlas_service::{Caller, Error, Pinned, Service};
use rmcp::model::{Tool, ToolAnnotations};

use crate::names;
use crate::schema::Offered;
use crate::tools::ToolName;

/// The pinned agent of a tool, or of its own name.
pub(crate) async fn find(service: &Service, caller: &Caller, name: &str) -> Result<Option<Pinned>, Error> {
    let mut pinned = service.pinned_agents(caller).await?;
    let agent = |pinned: &Pinned| pinned.agent.agent.name.to_string();
    let at = pinned.iter().position(|pinned| tool_name(&agent(pinned)) == name);
    let at = at.or_else(|| pinned.iter().position(|pinned| agent(pinned) == name));
    Ok(at.map(|at| pinned.swap_remove(at)))
}

/// The tools of the pinned agents.
pub(crate) async fn tools(service: &Service, caller: &Caller) -> Result<Vec<Tool>, Error> {
    Ok(service.pinned_agents(caller).await?.iter().map(tool).collect())
}

/// The name of the tool of an agent. One with the name of a tool of the platform gets another.
fn tool_name(agent: &str) -> Cow<'_, str> {
    match ToolName::of(agent) {
        Some(_) => Cow::Owned(names::changed(agent)),
        None => names::of_tool(agent),
    }
}

/// The input schema of an agent as it is offered.
pub(crate) fn offered(pinned: &Pinned) -> Offered {
    Offered::new(pinned.agent.contract.value.get("input_schema"))
}

fn tool(pinned: &Pinned) -> Tool {
    let (agent, contract) = (&pinned.agent.agent, &pinned.agent.contract);
    let name = agent.name.as_str();
    let about = contract.text("/description").to_owned();
    let tool = Tool::new(tool_name(name).into_owned(), about, Arc::new(offered(pinned).schema))
        .with_annotations(ToolAnnotations::new().read_only(false).open_world(true));
    match tool.name == name {
        true => tool,
        false => tool.with_title(name),
    }
}
