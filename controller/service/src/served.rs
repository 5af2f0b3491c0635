//! The agents that MCP clients find in the registry document, with the models that are declared for them.

use atlas_objects::models_of_tier;
use atlas_registry::calls_models;
use atlas_state::State;
use atlas_types::{AgentKind, Namespace, ObjectKey, ObjectKind, ObjectName};
use serde_json::{Value, json};

use crate::{AgentQuery, Caller, Consistency, Error, Service, ShownAgent, Versions};

/// The context window of a model that declares none, in tokens.
const CONTEXT_WINDOW: u64 = 131_072;
/// The longest answer of a model that declares none, in tokens.
const OUTPUT_TOKENS_MAX: u64 = 16_384;

/// An agent, and what is declared of its model.
#[derive(Debug, Clone)]
pub struct ServedAgent {
    pub agent: ShownAgent,
    /// `model`, `vision`, `context_window` and `max_output_tokens`; none without a model of the namespace.
    pub capabilities: Option<Value>,
}

impl Service {
    /// The highest version of each agent.
    pub async fn served_agents(&self, caller: &Caller) -> Result<Vec<ServedAgent>, Error> {
        let query = AgentQuery { versions: Versions::Latest, ..AgentQuery::default() };
        let agents = self.agents(caller, &query, Consistency::Linearizable).await?;
        let state = self.state(Consistency::Stale).await?;
        let served = agents.into_iter().filter(|agent| agent.agent.kind == AgentKind::Agent).map(|agent| {
            let capabilities = capabilities(&state, &caller.namespace, &agent.contract.value);
            ServedAgent { agent, capabilities }
        });
        Ok(served.collect())
    }
}

/// What is declared of the model of an agent.
fn capabilities(state: &State, namespace: &Namespace, contract: &Value) -> Option<Value> {
    if !calls_models(contract) {
        return None;
    }
    let key = match contract.pointer("/model/name").and_then(Value::as_str) {
        Some(name) => ObjectKey {
            namespace: namespace.clone(),
            kind: ObjectKind::new("model").ok()?,
            name: ObjectName::new(name).ok()?,
        },
        None => {
            let tier = contract.pointer("/model/preference").and_then(Value::as_str)?;
            models_of_tier(state, namespace, tier).into_iter().next()?
        }
    };
    let spec: Value = serde_json::from_slice(&state.object(&key)?.spec).ok()?;
    let vision = spec["capabilities"].as_array().is_some_and(|all| all.iter().any(|one| one == "vision"));
    Some(json!({
        "model": spec["name"],
        "vision": vision,
        "context_window": spec["context_window"].as_u64().unwrap_or(CONTEXT_WINDOW),
        "max_output_tokens": spec["output_tokens_max"].as_u64().unwrap_or(OUTPUT_TOKENS_MAX),
    }))
}
