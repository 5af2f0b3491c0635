//! `atlas.monitor.*`.

use atlas_types::AgentName;
use serde_json::{Map, Value, json};

use super::{Call, NoResult};
use crate::{Consistency, Error, Service, TraceQuery};

impl Service {
    pub(super) async fn tool_health(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let mut health = self.health(&call.caller, Consistency::Stale).await?;
        let names = ["pending", "running", "capacity_remaining"];
        let members = names.map(|name| (name.to_owned(), health.get_mut(name).map(Value::take).unwrap_or_default()));
        Ok(Value::Object(Map::from_iter(members)))
    }

    /// The statistics of one agent or of all.
    pub(super) fn tool_metrics(&self, call: &Call<'_>) -> Value {
        match call.text("agent") {
            "" => self.figures(&call.caller),
            agent => {
                let found = self.figures_of(&call.caller, agent);
                found.unwrap_or_else(|error| json!({"error": error.to_string()}))
            }
        }
    }

    pub(super) async fn tool_trace(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let id = call.text("trace_id");
        match self.trace(&call.caller, id, Consistency::Linearizable).await {
            Err(Error::UnknownTrace) => Ok(json!({"error": format!("Trace '{id}' not found")})),
            found => Ok(found?),
        }
    }

    /// The latest traces, of one agent or of all.
    pub(super) async fn tool_traces(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let agent = match call.text("agent") {
            "" => None,
            name => match AgentName::new(name) {
                Ok(name) => Some(name),
                Err(_) => return Ok(json!({"traces": []})),
            },
        };
        let query = TraceQuery { agent, limit: call.limit() };
        let traces = self.traces(&call.caller, &query, Consistency::Linearizable).await?;
        Ok(json!({"traces": traces}))
    }
}
