//! What a name in `requires.skills` is: a skill, or an agent that is a tool.

use atlas_contract::RequiredSkill;
use atlas_types::ObjectKind;
use serde_json::{Value, json};

use super::{Call, NoResult};
use crate::{Consistency, Error, Service, ShownAgent, skill_run};

impl Service {
    /// Describes an entry of `requires.skills` to the worker. Skills come before agents of the same name. Without either, it tells whether
    /// the namespace has any skill, because Atlas for Python has another error for that.
    pub(super) async fn tool_lookup(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let entry = call.text("name");
        let state = self.state(Consistency::Linearizable).await?;
        let namespace = &call.caller.namespace;
        let required = RequiredSkill::of(entry);
        let why = match skill_run::find(&state, namespace, required)? {
            Ok(spec) => {
                let schema: Value = serde_json::from_str(&spec.input_schema).unwrap_or_default();
                return Ok(json!({
                    "source": "skill",
                    "name": required.name,
                    "version": spec.version,
                    "description": spec.description,
                    "input_schema": schema,
                }));
            }
            Err(why) => why,
        };
        match self.agent(&call.caller, entry, None, Consistency::Stale).await {
            Ok(ShownAgent { contract, .. }) => Ok(json!({
                "source": "agent",
                "name": entry,
                "description": contract.text("/description"),
                "input_schema": contract.value.get("input_schema"),
            })),
            Err(Error::UnknownAgent { .. }) => {
                let kind = ObjectKind::new("skill").map_err(Error::from)?;
                let any = state.objects_of_kind(&kind).any(|object| object.key.namespace == *namespace);
                Ok(json!({"error": why, "registry": any}))
            }
            Err(error) => Err(error.into()),
        }
    }
}
