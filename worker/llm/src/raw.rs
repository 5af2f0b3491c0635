//! What an answer says that has no place in [`Answer`](atlas_model::Answer), within a bound.

use atlas_model::CallError;
use serde_json::{Map, Value};

use crate::bounds::ANSWER_BYTES_MAX;
use crate::failure;

/// Members of an answer by name.
#[derive(Debug, Default)]
pub(crate) struct Raw {
    members: Map<String, Value>,
    bytes: usize,
}

impl Raw {
    /// Keeps a member. A later value replaces an earlier one. Null is nothing.
    pub(crate) fn member(&mut self, name: &str, value: Value) -> Result<(), CallError> {
        // Streams repeat members in every piece.
        if !value.is_null() && self.members.get(name) != Some(&value) {
            self.charge(name, &value)?;
            if let Some(replaced) = self.members.insert(name.to_owned(), value) {
                self.bytes = self.bytes.saturating_sub(name.len()).saturating_sub(replaced.to_string().len());
            }
        }
        Ok(())
    }

    /// Keeps all members of an object that are not in `known`.
    pub(crate) fn unknown(&mut self, object: &Value, known: &[&str]) -> Result<(), CallError> {
        crate::json::unknown(object, known).into_iter().try_for_each(|(name, value)| self.member(&name, value))
    }

    /// Keeps a value at the end of a list.
    pub(crate) fn push(&mut self, list: &str, value: Value) -> Result<(), CallError> {
        self.charge(list, &value)?;
        match self.members.entry(list).or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(values) => values.push(value),
            other => *other = Value::Array(vec![value]),
        }
        Ok(())
    }

    /// All members, for [`Answer::raw`](atlas_model::Answer::raw).
    pub(crate) fn take(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.members)
    }

    /// Counts a member that is kept elsewhere.
    pub(crate) fn charge(&mut self, name: &str, value: &Value) -> Result<(), CallError> {
        self.bytes = self.bytes.saturating_add(name.len()).saturating_add(value.to_string().len());
        if self.bytes > ANSWER_BYTES_MAX {
            return Err(failure::answer(format!("the answer is larger than {ANSWER_BYTES_MAX} bytes")));
        }
        Ok(())
    }
}
