//! Skills.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One skill.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Skill {
    /// its name
    pub name: String,
    /// its version
    pub version: String,
    /// what it does
    pub description: String,
    /// input schema, a JSON Schema
    #[schemars(with = "Map<String, Value>")]
    pub input_schema: Value,
    /// output schema, a JSON Schema
    #[schemars(with = "Map<String, Value>")]
    pub output_schema: Value,
}

impl Skill {
    /// The schema of a value that may be any object.
    pub fn any_object() -> Value {
        json!({ "type": "object" })
    }
}

/// A call of a skill.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillTest {
    /// its input; defaults to an empty object
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub input: Option<Map<String, Value>>,
}

/// How a call of a skill ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SkillTested {
    /// what it returned; null if it failed
    pub output: Value,
    /// why it failed, or empty
    pub error: String,
    /// true if the input does not fit the schema, and the skill was not called
    pub refused: bool,
}
