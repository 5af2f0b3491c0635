//! The description of a skill, `skill.yaml` (compatibility §18.1).

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::document::Wrapped;
use crate::schema::Validator;
use crate::violation::{Violation, joined};
use crate::yaml::{self, YamlError};

static RULES: LazyLock<Validator> = LazyLock::new(|| {
    let schema = json!({"type": "object", "properties": {"schema": {"type": "object"}}});
    let rules = json!({
        "type": "object",
        "properties": {
            "skill": {
                "type": "object",
                "required": ["name", "version"],
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "version": {"type": "string", "pattern": "^\\d+\\.\\d+\\.\\d+$"},
                    "description": {"type": "string"},
                    "input": schema,
                    "output": schema,
                },
            },
        },
        "required": ["skill"],
    });
    Validator::compile(&rules).expect("the rules are a constant of ours and a schema")
});

/// A skill as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// The unique name of the skill.
    pub name: String,
    pub version: String,
    /// One sentence.
    pub description: String,
    /// The JSON Schema of the input.
    pub input_schema: Value,
    /// The JSON Schema of the output.
    pub output_schema: Value,
    /// What runs it, as its file says it. Atlas for Python ignores this member.
    pub provider: Option<Value>,
}

/// Why a text does not describe a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    /// The text is not YAML.
    #[error("Invalid YAML: {0}")]
    Yaml(YamlError),
    /// The document is not a mapping.
    #[error("Skill must be a YAML mapping, got {got}")]
    NotAMapping {
        /// The Python name of its type.
        got: &'static str,
    },
    /// All violations of the rules.
    #[error("Skill validation failed: {}", joined(.violations))]
    Rules {
        /// The violations.
        violations: Vec<Violation>,
    },
}

impl Skill {
    /// Parses a description.
    pub fn parse(text: &[u8]) -> Result<Self, SkillError> {
        let document = yaml::load_document(text, yaml::Budget::default()).map_err(SkillError::Yaml)?;
        let document = Wrapped::new(document, "skill").map_err(|got| SkillError::NotAMapping { got })?;
        let value = &document.value;
        if let Err(mut violations) = RULES.validate(value) {
            violations.iter_mut().for_each(|violation| document.name_foreign(violation));
            return Err(SkillError::Rules { violations });
        }
        let text = |at: &str| value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let schema = |at: &str| match value.pointer(at) {
            Some(Value::Object(members)) if !members.is_empty() => Value::Object(members.clone()),
            _ => json!({"type": "object"}),
        };
        Ok(Self {
            name: text("/skill/name"),
            version: text("/skill/version"),
            description: text("/skill/description"),
            input_schema: schema("/skill/input/schema"),
            output_schema: schema("/skill/output/schema"),
            provider: value.pointer("/skill/provider").filter(|provider| !provider.is_null()).cloned(),
        })
    }

    /// The description as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Skill::parse(text.as_bytes()).expect_err("no skill").to_string()
    }

    #[test]
    fn a_date_is_no_text() {
        assert_eq!(
            refusal("name: s\nversion: 1.0.0\ndescription: 2020-01-01"),
            "Skill validation failed: the date 2020-01-01 (quote it to have text) is not of type 'string'"
        );
        assert_eq!(refusal("2020-01-01"), "Skill must be a YAML mapping, got date");
        assert_eq!(refusal("!!binary aGk="), "Skill must be a YAML mapping, got bytes");
        let kept = Skill::parse(b"name: s\nversion: 1.0.0\ninput: {schema: {default: 2020-01-01}}").expect("a skill");
        assert_eq!(kept.input_schema, json!({"default": "2020-01-01"}));
    }
}
