//! Shared memory: one object for each text that was appended, so that two appends never disturb each other. Its name is `SCOPE@KEY`; the key
//! follows from the step that appends, so that a repeat finds it.

use atlas_types::{Level, ObjectKey, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, read};

/// What stands between the scope and the key in the name.
const SEPARATOR: char = '@';

/// The document of one entry of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MemorySpec {
    pub text: String,
    /// It replaces all that was there before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replaces: bool,
    /// Of a summary: the event that made the last entry for which it stands. Entries after that one stay behind it, and so does what was
    /// appended while it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<u64>,
    /// The agent that wrote it; none if it was no job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The job that wrote it; none if it was no job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

impl MemorySpec {
    /// Reads the spec of an entry.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }

    /// The name of an entry of a scope.
    pub fn name(scope: &str, key: &str) -> String {
        format!("{scope}{SEPARATOR}{key}")
    }

    /// The scope and the key in a name. A scope may contain the separator, a key does not.
    pub fn parts(name: &str) -> Option<(&str, &str)> {
        name.rsplit_once(SEPARATOR).filter(|(scope, key)| !scope.is_empty() && !key.is_empty())
    }
}

pub(crate) struct MemoryKind;

impl Kind for MemoryKind {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn about(&self) -> &'static str {
        "One text in a memory that agents share. The memory is all of them, the oldest first."
    }

    fn level(&self) -> Level {
        level::SHARED_KNOWLEDGE
    }

    fn is_for_agents(&self) -> bool {
        true
    }

    fn schema(&self) -> Value {
        let by = |what: &str| json!({"type": "string", "description": format!("The {what} that wrote it.")});
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["text"],
            "properties": {
                "text": {"type": "string", "description": "What was appended."},
                "replaces": {"type": "boolean", "description": "Whether it replaces all that was there before."},
                "through": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Of a summary: the event that made the last entry for which it stands.",
                },
                "agent": by("agent"),
                "job": by("job"),
            }
        })
    }

    fn admit(&self, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        let MemorySpec { replaces, through, .. } = MemorySpec::read(spec)?;
        if through.is_some() && !replaces {
            return Err(Refusal::new("through", "is for entries that replace others"));
        }
        match MemorySpec::parts(key.name.as_str()) {
            Some(_) => Ok(()),
            None => Err(Refusal::new("metadata.name", "is not SCOPE@KEY, such as namespace@1")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_may_contain_the_separator() {
        let name = MemorySpec::name("user:ada@example.com", "0f");
        assert_eq!(MemorySpec::parts(&name), Some(("user:ada@example.com", "0f")));
        for name in ["namespace", "@1", "namespace@"] {
            assert_eq!(MemorySpec::parts(name), None, "{name}");
        }
    }
}
