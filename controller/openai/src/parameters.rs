//! Which parameters each operation takes, and what happens to them: one table, which `read` of each operation follows and from which the
//! reference page is made. A parameter that has no row is refused, so that no client believes in an effect that there is not.

mod tables;

use serde_json::{Map, Value};

use crate::WireError;

pub use tables::{CHAT, COMPLETIONS, EMBEDDINGS, RESPONSES};

/// What happens to a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It has its effect.
    Used,
    /// The provider of the model gets it as it is. A provider that does not know it refuses the call.
    PassedOn,
    /// It has no effect, and none is missed.
    Ignored,
    /// The request is refused.
    Refused,
}

/// A parameter of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    pub name: &'static str,
    pub treatment: Treatment,
    /// What its effect is, or why it has none.
    pub note: &'static str,
    /// Values, as JSON, that mean the same as its absence. They are neither passed on nor refused.
    pub neutral: &'static [&'static str],
}

/// Compares the members of a request with the table of its operation. Returns those that the provider gets.
pub(crate) fn admit(members: &Map<String, Value>, table: &[Parameter]) -> Result<Map<String, Value>, WireError> {
    let mut passed = Map::new();
    for (name, value) in members {
        let parameter = table.iter().find(|parameter| parameter.name == name);
        let parameter = parameter.ok_or_else(|| WireError::unknown_parameter(name))?;
        if value.is_null() || parameter.is_neutral(value) {
            continue;
        }
        match parameter.treatment {
            Treatment::Used | Treatment::Ignored => {}
            Treatment::PassedOn => drop(passed.insert(name.clone(), value.clone())),
            Treatment::Refused => return Err(WireError::unsupported(name, parameter.note)),
        }
    }
    Ok(passed)
}

impl Parameter {
    fn is_neutral(&self, value: &Value) -> bool {
        // A list or object that is no neutral value may be long, and need not be written to see that.
        let is_short = match value {
            Value::Array(list) => list.len() <= 1,
            Value::Object(members) => members.is_empty(),
            Value::String(text) => text.len() < 64,
            _ => true,
        };
        is_short && !self.neutral.is_empty() && self.neutral.contains(&value.to_string().as_str())
    }
}

impl Treatment {
    /// Its word in the reference.
    pub fn word(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::PassedOn => "passed on",
            Self::Ignored => "ignored",
            Self::Refused => "refused",
        }
    }
}

/// The rows of a table in Markdown.
#[cfg(test)]
pub(crate) fn rows(table: &[Parameter]) -> String {
    let row = |parameter: &Parameter| {
        let neutral: Vec<String> = parameter.neutral.iter().map(|value| format!("`{value}`")).collect();
        let accepted = match (parameter.treatment, neutral.as_slice()) {
            (Treatment::Refused, [_, ..]) => format!(" Accepted: {}.", neutral.join(", ")),
            _ => String::new(),
        };
        let note = parameter.note;
        let dot = if note.ends_with('.') { "" } else { "." };
        let note = note
            .chars()
            .next()
            .map_or_else(String::new, |first| first.to_uppercase().chain(note.chars().skip(1)).collect::<String>());
        format!("| `{}` | {} | {note}{dot}{accepted} |\n", parameter.name, parameter.treatment.word())
    };
    format!("| parameter | what happens | |\n|---|---|---|\n{}", table.iter().map(row).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn tables_are_in_order_and_their_values_are_json() {
        for table in [CHAT, COMPLETIONS, EMBEDDINGS, RESPONSES] {
            let names: Vec<&str> = table.iter().map(|parameter| parameter.name).collect();
            let sorted: BTreeSet<&str> = names.iter().copied().collect();
            assert_eq!(names, sorted.into_iter().collect::<Vec<_>>());
            for parameter in table {
                assert!(!parameter.note.is_empty(), "{}", parameter.name);
                for value in parameter.neutral {
                    let parsed: Value = serde_json::from_str(value).expect("JSON");
                    assert!(parameter.is_neutral(&parsed), "{} {value}", parameter.name);
                }
            }
        }
    }

    #[test]
    fn each_treatment_is_followed() {
        let members = |value: Value| value.as_object().expect("an object").clone();
        let admitted = |value| admit(&members(value), CHAT);
        let passed = admitted(json!({
            "seed": 7, "presence_penalty": 0, "frequency_penalty": 0.5, "user": "u", "n": 1, "logprobs": false, "functions": null,
        }));
        assert_eq!(passed.map(Value::Object), Ok(json!({"seed": 7, "frequency_penalty": 0.5})));
        let refused = admitted(json!({"n": 2})).expect_err("refused");
        assert_eq!((refused.status, refused.param.as_deref()), (400, Some("n")));
        assert_eq!(refused.code.as_deref(), Some("unsupported_parameter"));
        let unknown = admitted(json!({"temprature": 1})).expect_err("refused");
        assert_eq!(
            (unknown.code.as_deref(), unknown.param.as_deref()),
            (Some("unknown_parameter"), Some("temprature"))
        );
    }
}
