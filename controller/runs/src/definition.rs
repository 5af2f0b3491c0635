//! Definitions of chains (compatibility §12.1).

use serde_json::{Map, Value, json};

use crate::flow::{Flow, FlowError};

/// Why a document is not the definition of a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// A required member is missing. The text is that of Atlas for Python.
    #[error("'{0}'")]
    Missing(&'static str),
    #[error("'{member}' must be {wanted}")]
    Type { member: &'static str, wanted: &'static str },
    #[error("step {step}: {error}")]
    Flow { step: usize, error: FlowError },
    /// Branches are told apart by the names of their steps.
    #[error("two steps have the name '{0}'")]
    Twice(String),
}

/// A chain: agents that work one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    pub name: String,
    pub description: String,
    /// The orchestrator that routes the steps; empty for that of the cluster.
    pub orchestrator: String,
    pub steps: Vec<Step>,
}

/// A step of a chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The name of the agent.
    pub agent: String,
    /// The versions that may run; none for the highest.
    pub range: Option<String>,
    /// The name by which paths refer to it.
    pub name: String,
    /// Field of the input ← path, field or value.
    pub input_map: Option<Map<String, Value>>,
    /// The members of its key `atlas`.
    pub extension: Option<Map<String, Value>>,
}

impl Chain {
    /// Reads a definition, bare or under the key `chain`. Members that it does not know are ignored.
    pub fn read(document: &Value) -> Result<Self, DefinitionError> {
        let document = document.get("chain").unwrap_or(document);
        let members = document.as_object().ok_or(DefinitionError::Type { member: "chain", wanted: "an object" })?;
        let name = text(members, "name")?.ok_or(DefinitionError::Missing("name"))?;
        Self::with_name(name, members)
    }

    /// Reads a definition that is stored under a name.
    pub fn stored(name: &str, document: &Value) -> Result<Self, DefinitionError> {
        let members = document.as_object().ok_or(DefinitionError::Type { member: "chain", wanted: "an object" })?;
        Self::with_name(name.to_owned(), members)
    }

    fn with_name(name: String, members: &Map<String, Value>) -> Result<Self, DefinitionError> {
        let steps = match members.get("steps") {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(steps)) => steps,
            Some(_) => return Err(DefinitionError::Type { member: "steps", wanted: "a list" }),
        };
        let chain = Self {
            name,
            description: text(members, "description")?.unwrap_or_default(),
            orchestrator: text(members, "orchestrator")?.unwrap_or_default(),
            steps: steps.iter().enumerate().map(|(index, step)| Step::read(index, step)).collect::<Result<_, _>>()?,
        };
        chain.flows()?;
        Ok(chain)
    }

    /// When each step runs; none if no step has the extension, so that they run one after the other.
    pub fn flows(&self) -> Result<Option<Vec<Flow>>, DefinitionError> {
        if self.steps.iter().all(|step| step.extension.is_none()) {
            return Ok(None);
        }
        let names: Vec<String> = self.steps.iter().map(|step| step.name.clone()).collect();
        if let Some((_, name)) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
            return Err(DefinitionError::Twice(name.clone()));
        }
        let flow = |(index, step): (usize, &Step)| match &step.extension {
            None => Ok(Flow::of_next(index)),
            Some(members) => Flow::read(index, members, &names[..index])
                .map_err(|error| DefinitionError::Flow { step: index, error }),
        };
        self.steps.iter().enumerate().map(flow).collect::<Result<_, _>>().map(Some)
    }

    /// The definition as a document.
    pub fn to_json(&self) -> Value {
        let steps: Vec<Value> = self.steps.iter().map(Step::to_json).collect();
        json!({
            "name": self.name, "description": self.description, "orchestrator": self.orchestrator, "steps": steps,
        })
    }
}

impl Step {
    fn read(index: usize, step: &Value) -> Result<Self, DefinitionError> {
        let members = step.as_object().ok_or(DefinitionError::Type { member: "steps", wanted: "a list of objects" })?;
        let agent = text(members, "agent")?.ok_or(DefinitionError::Missing("agent"))?;
        let (agent, range) = match agent.rsplit_once('@') {
            Some((name, range)) if !name.is_empty() && !range.is_empty() => (name.to_owned(), Some(range.to_owned())),
            _ => (agent, None),
        };
        let name = text(members, "name")?.filter(|name| !name.is_empty());
        let input_map = match members.get("input_map") {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(map.clone()),
            Some(_) => return Err(DefinitionError::Type { member: "input_map", wanted: "an object" }),
        };
        let extension = match members.get("atlas") {
            None | Some(Value::Null) => None,
            Some(Value::Object(members)) => Some(members.clone()),
            Some(_) => return Err(DefinitionError::Type { member: "atlas", wanted: "an object" }),
        };
        Ok(Self { agent, range, name: name.unwrap_or_else(|| format!("step_{index}")), input_map, extension })
    }

    fn to_json(&self) -> Value {
        let agent = match &self.range {
            Some(range) => format!("{}@{range}", self.agent),
            None => self.agent.clone(),
        };
        let mut step = json!({"agent": agent, "name": self.name, "input_map": self.input_map});
        if let Some(extension) = &self.extension {
            step["atlas"] = json!(extension);
        }
        step
    }
}

fn text(members: &Map<String, Value>, member: &'static str) -> Result<Option<String>, DefinitionError> {
    match members.get(member) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(DefinitionError::Type { member, wanted: "a text" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
    fn read(document: Value) -> String {
        match Chain::read(&document) {
            Ok(chain) => chain.to_json().to_string(),
            Err(error) => format!("! {error}"),
        }
    }

    #[test]
    fn definitions_are_bare_or_under_a_key() {
        let bare = json!({"name": "c", "steps": [{"agent": "a"}, {"agent": "b@^1.2", "name": "second", "if": "x"}], "on_failure": 1});
        let shown = r#"{"name":"c","description":"","orchestrator":"","steps":[{"agent":"a","name":"step_0","input_map":null},{"agent":"b@^1.2","name":"second","input_map":null}]}"#;
        let sorted = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        assert_eq!(sorted(&read(bare.clone())), sorted(shown));
        assert_eq!(read(json!({ "chain": bare })), read(bare));
        let chain = Chain::read(&json!({"name": "x", "steps": null})).expect("a chain");
        assert_eq!((chain.steps.len(), chain.description.as_str()), (0, ""));
        let step = &Chain::read(&bare_step("a@")).expect("a chain").steps[0];
        assert_eq!((step.agent.as_str(), step.range.as_deref()), ("a@", None));
    }

    fn bare_step(agent: &str) -> Value {
        json!({"name": "c", "steps": [{ "agent": agent }]})
    }

    #[test]
    fn what_is_no_chain_is_refused() {
        for (document, error) in [
            (json!({"chain": {"steps": [{"agent": "a"}]}}), "! 'name'"),
            (json!({"name": "c", "steps": [{"name": "x"}]}), "! 'agent'"),
            (json!({"name": "c", "steps": {}}), "! 'steps' must be a list"),
            (json!({"name": "c", "steps": ["a"]}), "! 'steps' must be a list of objects"),
            (json!({"name": "c", "steps": [{"agent": 1}]}), "! 'agent' must be a text"),
            (json!({"name": "c", "steps": [{"agent": "a", "input_map": []}]}), "! 'input_map' must be an object"),
            (json!({"name": 1}), "! 'name' must be a text"),
            (json!([]), "! 'chain' must be an object"),
        ] {
            assert_eq!(read(document), error);
        }
    }
}
