//! The conversation that a job continues: what was said before, and what the agent keeps for the next turn.

use std::collections::BTreeMap;

use atlas_model::Message;
use atlas_turn::{TodoList, messages};
use atlas_types::CONVERSATION_METADATA;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::provider::llm::fault::Fault;

/// Most bytes of what is kept: it is part of the metadata of the job.
const KEPT_BYTES_MAX: usize = 32 << 10;

/// What a turn of a conversation begins with.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The messages before the one of this turn, and that one.
    pub(super) said: Vec<Message>,
    pub(super) kept: Kept,
}

/// What is kept from turn to turn.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kept {
    pub(super) variables: BTreeMap<String, String>,
    /// The text of the function `_instructions`, before placeholders are filled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) todo: Option<TodoList>,
}

impl Session {
    /// The conversation of a job, which its input has if its metadata says so. Clients set the input, only controllers set the metadata.
    pub(super) fn read(metadata: &[u8], input: &Value) -> Result<Option<Self>, Fault> {
        let metadata: Map<String, Value> = serde_json::from_slice(metadata).unwrap_or_default();
        if !metadata.contains_key(CONVERSATION_METADATA) {
            return Ok(None);
        }
        let said = messages::continued(input).map_err(Fault::Input)?;
        let kept = input.pointer("/conversation/kept").map(Kept::deserialize).transpose();
        let kept = kept.map_err(|error| Fault::Input(format!("'conversation/kept' cannot be read: {error}")))?;
        Ok(Some(Self { said, kept: kept.unwrap_or_default() }))
    }
}

impl Kept {
    /// As a value, and the names of the members that it has no room for.
    pub(super) fn bounded(mut self) -> (Value, Vec<&'static str>) {
        let mut left_out = Vec::new();
        loop {
            let text = serde_json::to_string(&self).unwrap_or_default();
            if text.len() <= KEPT_BYTES_MAX {
                return (serde_json::from_str(&text).unwrap_or_default(), left_out);
            }
            if self.todo.take().is_some() {
                left_out.push("todo list");
            } else if self.instructions.take().is_some() {
                left_out.push("instructions");
            } else {
                self.variables.clear();
                left_out.push("variables");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const METADATA: &[u8] = br#"{"_conversation":"session:coder:work"}"#;

    fn input() -> Value {
        json!({"message": "b", "conversation": {
            "messages": [
                {"role": "user", "content": "a"}, {"role": "assistant", "content": "A"}, {"role": "user", "content": "b"},
            ],
            "kept": {"variables": {"x": "1"}, "instructions": "i", "todo": {"goal": "g", "todos": []}},
        }})
    }

    #[test]
    fn only_controllers_make_a_job_a_turn() {
        assert!(Session::read(b"{}", &input()).expect("readable").is_none());
        let session = Session::read(METADATA, &input()).expect("readable").expect("a turn");
        assert_eq!((session.said.len(), session.kept.instructions.as_deref()), (3, Some("i")));
        assert_eq!(session.kept.variables["x"], "1");
        let first = Session::read(METADATA, &json!({"message": "a"})).expect("readable").expect("a turn");
        assert_eq!((first.said.len(), first.kept), (0, Kept::default()));
        let wrong = json!({"conversation": {"messages": [], "kept": 5}});
        assert!(Session::read(METADATA, &wrong).is_err());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let long = "x".repeat(KEPT_BYTES_MAX);
        let todo = TodoList { goal: long.clone(), items: Vec::new() };
        let variables: BTreeMap<_, _> = [("v".to_owned(), "1".to_owned())].into();
        let kept = Kept { variables: variables.clone(), instructions: Some("i".to_owned()), todo: Some(todo) };
        assert_eq!(kept.bounded(), (json!({"variables": {"v": "1"}, "instructions": "i"}), vec!["todo list"]));
        let kept = Kept { variables, instructions: Some(long.clone()), todo: None };
        assert_eq!(kept.bounded(), (json!({"variables": {"v": "1"}}), vec!["instructions"]));
        let kept = Kept { variables: [("v".to_owned(), long)].into(), ..Kept::default() };
        assert_eq!(kept.bounded(), (json!({"variables": {}}), vec!["variables"]));
    }
}
