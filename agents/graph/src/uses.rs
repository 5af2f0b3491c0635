//! Which templates a node has, and which state keys it reads and writes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::graph::{INITIAL_PROMPT, Kind, Node};
use crate::template;

impl Node {
    /// The node that a map runs for each item.
    pub fn branch(&self) -> Option<&str> {
        match &self.kind {
            Kind::Map(map) => Some(&map.branch),
            _ => None,
        }
    }

    /// The templates whose paths must exist, with their fields.
    pub fn strict_templates(&self) -> Vec<(&'static str, &str)> {
        match &self.kind {
            Kind::Llm(llm) => {
                let instructions = llm.instructions.as_deref().map(|text| ("instructions", text));
                [("prompt", llm.prompt.as_str())].into_iter().chain(instructions).collect()
            }
            Kind::Approval(approval) => vec![("question", &approval.question)],
            Kind::Input(input) => vec![("question", &input.question)],
            Kind::Rag(rag) => rag.query.as_deref().map(|query| ("query", query)).into_iter().collect(),
            Kind::Map(map) => vec![("over", &map.over)],
            Kind::Agent(agent) => vec![("prompt", &agent.prompt)],
            Kind::Script(_) | Kind::End { .. } => Vec::new(),
        }
    }

    /// All its templates, with the paths of their fields.
    pub fn templates(&self) -> Vec<(String, &str)> {
        let lenient = match &self.kind {
            Kind::Input(input) => input.default.as_deref().map(|text| ("default", text)),
            Kind::End { output } => Some(("output", output.as_str())),
            _ => None,
        };
        let own = self.strict_templates().into_iter().chain(lenient);
        let updates = self.updates.iter().flatten();
        let updates = updates.map(|(key, text)| (format!("state_updates/{key}"), text.as_str()));
        own.map(|(field, text)| (field.to_owned(), text)).chain(updates).collect()
    }

    /// The state keys that it declares to write: `state_updates`, and the properties of its schema.
    pub fn writes(&self) -> BTreeSet<&str> {
        let updates = self.updates.iter().flatten().map(|(key, _)| key.as_str());
        let properties = self.output_schema().and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        updates.chain(properties.into_iter().flatten().map(|(name, _)| name.as_str())).collect()
    }

    /// The state keys that its templates read.
    pub fn reads(&self) -> BTreeSet<&str> {
        let mut keys: BTreeSet<&str> = BTreeSet::new();
        if matches!(&self.kind, Kind::Rag(rag) if rag.query.is_none()) {
            keys.insert(INITIAL_PROMPT);
        }
        for (field, text) in self.templates() {
            let own = self.result_name().filter(|_| field.starts_with("state_updates/"));
            keys.extend(template::root_keys(text).into_iter().filter(|key| Some(*key) != own));
        }
        keys
    }
}
