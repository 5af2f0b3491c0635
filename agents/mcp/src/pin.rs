//! Pins: the hashes of the definitions of tools that a person has accepted. A server that changes a description later could make a model
//! do something else, so a changed definition of a pinned server is not offered until it is accepted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use atlas_model::SpecError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{RemoteTool, ServerSpec};

/// The accepted hashes by the names of tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pins(BTreeMap<String, String>);

/// What a pinned server's tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// As it was accepted.
    Accepted,
    /// Not seen before.
    New,
    /// Another one than the accepted one.
    Changed,
}

impl Pins {
    /// The pins of these tools.
    pub fn of<'a>(tools: impl IntoIterator<Item = &'a RemoteTool>) -> Self {
        Self(tools.into_iter().map(|tool| (tool.name.clone(), digest(tool))).collect())
    }

    /// True if nothing was accepted yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What a tool is.
    pub fn verdict(&self, tool: &RemoteTool) -> Verdict {
        match self.0.get(&tool.name) {
            None => Verdict::New,
            Some(accepted) if *accepted == digest(tool) => Verdict::Accepted,
            Some(_) => Verdict::Changed,
        }
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        let is_digest = |text: &String| {
            let hex = text.strip_prefix("sha256:").unwrap_or_default();
            hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        match self.0.iter().find(|(_, digest)| !is_digest(digest)) {
            None => Ok(()),
            Some((name, _)) => {
                Err(SpecError::new("spec.pins", format!("has a value of {name:?} that is not sha256: and 64 digits")))
            }
        }
    }
}

impl ServerSpec {
    /// The tools that agents may call, and those that are held back until a person has accepted them, with the reason of each.
    pub fn admit(&self, tools: Vec<RemoteTool>) -> (Vec<RemoteTool>, Vec<(RemoteTool, Verdict)>) {
        let (mut admitted, mut held) = (Vec::new(), Vec::new());
        for tool in tools.into_iter().filter(|tool| self.allows(&tool.name)) {
            match self.pins.verdict(&tool) {
                verdict @ (Verdict::New | Verdict::Changed) if self.pinned => held.push((tool, verdict)),
                _ => admitted.push(tool),
            }
        }
        (admitted, held)
    }
}

/// The hash of a definition: SHA-256 over its JSON with sorted members.
pub fn digest(tool: &RemoteTool) -> String {
    let mut text = String::new();
    write_sorted(&tool.definition(), &mut text);
    let mut shown = "sha256:".to_owned();
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a String cannot fail.
        let _ = write!(shown, "{byte:02x}");
    }
    shown
}

/// Writes a value with sorted members. Schemas come parsed, so their depth is that of the parser at most.
fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            text.push('{');
            for (place, (name, value)) in sorted.into_iter().enumerate() {
                text.push_str(if place == 0 { "" } else { "," });
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_sorted(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                text.push_str(if place == 0 { "" } else { "," });
                write_sorted(item, text);
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str) -> RemoteTool {
        RemoteTool {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: json!({"b": 1, "a": [2]}),
        }
    }

    #[test]
    fn the_order_of_members_does_not_count() {
        let other = RemoteTool { input_schema: json!({"a": [2], "b": 1}), ..tool("t", "d") };
        assert_eq!(digest(&tool("t", "d")), digest(&other));
        assert_ne!(digest(&tool("t", "d")), digest(&tool("t", "D")));
        assert_eq!(digest(&tool("t", "d")).len(), "sha256:".len() + 64);
    }

    #[test]
    fn only_accepted_definitions_are_admitted() {
        let mut spec = ServerSpec { tools: Some(vec!["a*".to_owned()]), ..ServerSpec::http("https://a.b") };
        let tools = || vec![tool("a1", "x"), tool("a2", "x"), tool("b", "x")];
        let names = |tools: &[RemoteTool]| tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&spec.admit(tools()).0), ["a1", "a2"]);
        spec.pinned = true;
        assert_eq!(spec.admit(tools()).1.len(), 2);
        spec.pins = Pins::of(&[tool("a1", "x"), tool("a2", "before")]);
        let (admitted, held) = spec.admit(tools());
        assert_eq!((names(&admitted), held), (vec!["a1".to_owned()], vec![(tool("a2", "x"), Verdict::Changed)]));
        assert!(spec.check().is_ok());
    }
}
