//! Knowledge: one object for each entry. Its name is the id of the entry.

use atlas_types::{Level, ObjectKey, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, read};

/// Most bytes of a domain.
const DOMAIN_BYTES_MAX: usize = 128;

/// The document of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KnowledgeSpec {
    pub content: String,
    pub domain: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// A JSON object as text, because documents of objects hold no fractions; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub metadata: String,
    /// When the entry was stored, in ISO 8601; the object may be older, because an entry can be stored again.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub created_at: String,
    /// The agent that wrote it; none if it was no job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The job that wrote it; none if it was no job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

impl KnowledgeSpec {
    /// Reads the spec of an entry.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }
}

pub(crate) struct KnowledgeKind;

impl Kind for KnowledgeKind {
    fn name(&self) -> &'static str {
        "knowledge"
    }

    fn about(&self) -> &'static str {
        "One piece of knowledge that agents find and read."
    }

    fn level(&self) -> Level {
        level::SHARED_KNOWLEDGE
    }

    fn is_for_agents(&self) -> bool {
        true
    }

    fn schema(&self) -> Value {
        let text = |says: &str| json!({"type": "string", "description": says});
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["content", "domain"],
            "properties": {
                "content": text("What is known."),
                "domain": {
                    "type": "string", "maxLength": DOMAIN_BYTES_MAX, "pattern": "^[a-zA-Z0-9][a-zA-Z0-9._-]*$",
                    "description": "What it is about; contracts of agents name the domains that they read and write."
                },
                "tags": {"type": "array", "items": {"type": "string"}, "description": "Words to find it by."},
                "metadata": text("A JSON object as text."),
                "created_at": text("When it was stored, in ISO 8601."),
                "agent": text("The agent that wrote it."),
                "job": text("The job that wrote it."),
            }
        })
    }

    fn admit(&self, _: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        let spec = KnowledgeSpec::read(spec)?;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let begins = spec.domain.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if !begins || spec.domain.len() > DOMAIN_BYTES_MAX || !spec.domain.bytes().all(is_word) {
            return Err(Refusal::new(
                "spec.domain",
                "is not a word of letters, digits, \".\", \"_\" and \"-\" that begins with a letter or a digit",
            ));
        }
        let is_object = |text: &str| matches!(serde_json::from_str(text), Ok(Value::Object(_)));
        if !spec.metadata.is_empty() && !is_object(&spec.metadata) {
            return Err(Refusal::new("spec.metadata", "is not a JSON object"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn documents() {
        check(
            "knowledge",
            &[
                r#"{"content":"a","domain":"general"}"#,
                r#"{"content":"a","domain":"../x"}"#,
                r#"{"content":"a","domain":""}"#,
                r#"{"content":"a","domain":"a","metadata":"{\"x\":0.5}"}"#,
                r#"{"content":"a","domain":"a","metadata":"[]"}"#,
            ],
            &expect![[r#"
                ok {"content":"a","domain":"general"}
                ! `spec.domain` is not a word of letters, digits, ".", "_" and "-" that begins with a letter or a digit
                ! `spec.domain` is not a word of letters, digits, ".", "_" and "-" that begins with a letter or a digit
                ok {"content":"a","domain":"a","metadata":"{\"x\":0.5}"}
                ! `spec.metadata` is not a JSON object
            "#]],
        );
    }
}
