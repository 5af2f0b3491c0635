//! `atlas.registry.*`.

use serde_json::{Value, json};

use super::{Call, NoResult};
use crate::{AgentQuery, Consistency, Error, Service, ShownAgent, Versions};

impl Service {
    /// The highest versions of all agents, or of those of a type.
    pub(super) async fn tool_list(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let wanted = call.text("type");
        let agents = self.latest(call).await?;
        let agents = agents.iter().filter(|agent| wanted.is_empty() || agent.contract.text("/type") == wanted);
        // Clusters that export each other's agents would multiply their names.
        let agents = agents.filter(|agent| call.from.is_some() || agent.contract.text("/provider/agent").is_empty());
        let shown = agents.map(|agent| {
            json!({
                "name": agent.agent.name.as_str(),
                "version": agent.agent.version.to_string(),
                "type": agent.contract.text("/type"),
                "description": agent.contract.text("/description"),
            })
        });
        Ok(json!({"agents": shown.collect::<Vec<_>>()}))
    }

    pub(super) async fn tool_describe(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let name = call.text("name");
        let ShownAgent { agent, contract } = match self.agent(&call.caller, name, None, Consistency::Stale).await {
            Ok(agent) => agent,
            Err(Error::UnknownAgent { .. }) => return Ok(json!({"error": format!("Agent '{name}' not found")})),
            Err(error) => return Err(error.into()),
        };
        let member = |name: &str| contract.value.get(name).cloned().unwrap_or_default();
        Ok(json!({
            "name": agent.name.as_str(),
            "version": agent.version.to_string(),
            "type": contract.text("/type"),
            "description": contract.text("/description"),
            "capabilities": agent.capabilities,
            "input_schema": member("input_schema"),
            "output_schema": member("output_schema"),
            "execution_timeout": member("execution_timeout"),
        }))
    }

    /// The highest versions of the agents that have any of the capabilities.
    pub(super) async fn tool_search(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let wanted =
            call.arguments.get("capabilities").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let agents = self.latest(call).await?;
        let has = |agent: &&ShownAgent| {
            agent.agent.capabilities.iter().any(|capability| wanted.iter().any(|one| one == capability))
        };
        let shown = agents.iter().filter(has).map(|ShownAgent { agent, .. }| {
            json!({
                "name": agent.name.as_str(),
                "version": agent.version.to_string(),
                "capabilities": agent.capabilities,
            })
        });
        Ok(json!({"agents": shown.collect::<Vec<_>>()}))
    }

    async fn latest(&self, call: &Call<'_>) -> Result<Vec<ShownAgent>, Error> {
        let query = AgentQuery { versions: Versions::Latest, ..AgentQuery::default() };
        self.agents(&call.caller, &query, Consistency::Stale).await
    }
}
