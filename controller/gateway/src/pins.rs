//! Pinned agents as tools: the agent's name, description and input schema.

use std::sync::Arc;

use atlas_service::{Caller, Error, Pinned, Service};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};

use crate::tools::ToolName;

/// The pinned agent of a name.
pub(crate) async fn find(service: &Service, caller: &Caller, name: &str) -> Result<Option<Pinned>, Error> {
    let pinned = service.pinned_agents(caller).await?;
    Ok(pinned.into_iter().find(|pinned| pinned.agent.agent.name.as_str() == name))
}

/// The tools of the pinned agents. An agent with the name of a tool of the platform is not one of them.
pub(crate) async fn tools(service: &Service, caller: &Caller) -> Result<Vec<Tool>, Error> {
    let pinned = service.pinned_agents(caller).await?;
    Ok(pinned.iter().filter(|pinned| ToolName::of(pinned.agent.agent.name.as_str()).is_none()).map(tool).collect())
}

fn tool(pinned: &Pinned) -> Tool {
    let (agent, contract) = (&pinned.agent.agent, &pinned.agent.contract);
    let schema = contract.value.get("input_schema").and_then(serde_json::Value::as_object).cloned();
    let mut schema: JsonObject = schema.unwrap_or_default();
    // The protocol asks for an object at the root.
    schema.entry("type").or_insert_with(|| "object".into());
    let about = contract.text("/description").to_owned();
    Tool::new(agent.name.to_string(), about, Arc::new(schema))
        .with_annotations(ToolAnnotations::new().read_only(false).open_world(true))
}
