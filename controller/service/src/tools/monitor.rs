//! `atlas.monitor.*`.

use serde_json::{Map, Value, json};

use super::{Call, NoResult};
use crate::{Consistency, Service};

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
}

/// No traces are kept.
pub(super) fn trace(call: &Call<'_>) -> Value {
    json!({"error": format!("Trace '{}' not found", call.text("trace_id"))})
}

/// No traces are kept.
pub(super) fn traces() -> Value {
    json!({"traces": []})
}
