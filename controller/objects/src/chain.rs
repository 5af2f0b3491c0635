//! Chains: agents that work one after the other. A run pins the definition as it is when it starts.

use atlas_types::{Level, ObjectKey, level};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::kind::{Kind, Refusal, read};

/// Most steps of a stored chain.
const STEPS_MAX: usize = 256;
/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 255;

/// One step of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChainStep {
    /// The name of an agent, with `@` and a range of versions if it is not the highest one.
    pub agent: String,
    /// The name by which paths refer to the step.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Field of the input ← path, field of the output before, or value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_map: Option<Map<String, Value>>,
    /// Conditions, branches, retries and limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atlas: Option<Map<String, Value>>,
}

/// The document of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChainSpec {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The orchestrator that routes the steps.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub orchestrator: String,
    pub steps: Vec<ChainStep>,
}

impl ChainSpec {
    /// Reads the spec of a chain.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.steps.is_empty() {
            return Err(Refusal::new("spec.steps", "is empty: a chain has at least one step"));
        }
        if self.steps.len() > STEPS_MAX {
            return Err(Refusal::new("spec.steps", format!("has more than {STEPS_MAX} steps")));
        }
        let is_wrong = |step: &&ChainStep| step.agent.is_empty() || step.agent.len() > 2 * NAME_BYTES_MAX;
        if self.steps.iter().any(|step| is_wrong(&step)) {
            return Err(Refusal::new("spec.steps.agent", "is missing or too long"));
        }
        if self.steps.iter().any(|step| step.name.len() > NAME_BYTES_MAX) {
            return Err(Refusal::new("spec.steps.name", format!("has more than {NAME_BYTES_MAX} bytes")));
        }
        Ok(())
    }
}

/// When a step runs, and what its failure means.
fn flow_schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "description": "When the step runs, and what its failure means.",
        "properties": {
            "after": {
                "type": "array", "maxItems": 32, "items": {"type": "string", "maxLength": NAME_BYTES_MAX},
                "description": "The names of the steps that it comes after; without it, the step before. An empty list is the beginning."
            },
            "if": {
                "type": "string", "maxLength": 2048,
                "description": "It runs if this expression over `input`, `output` and `steps` is true."
            },
            "otherwise": {
                "enum": ["pass", "end"],
                "description": "If it does not run: the steps after it get the data that it would have got, or do not run either."
            },
            "on_failure": {
                "enum": ["fail", "pass", "end"],
                "description": "If it fails: the chain fails, or what `otherwise` says happens."
            },
            "retry": {
                "type": "object",
                "additionalProperties": false,
                "description": "How often it is tried again after a failure.",
                "properties": {
                    "max_retries": {
                        "type": "integer", "minimum": 0, "maximum": 10,
                        "description": "How often."
                    },
                    "backoff_base": {
                        "type": ["number", "string"], "exclusiveMinimum": 0, "maximum": 604_800, "maxLength": 32,
                        "description": "Seconds before the first retry; each later pause is twice as long."
                    }
                }
            },
            "timeout": {
                "type": ["number", "string"], "exclusiveMinimum": 0, "maximum": 604_800, "maxLength": 32,
                "description": "Most seconds of one try."
            }
        }
    })
}

pub(crate) struct ChainKind;

impl Kind for ChainKind {
    fn name(&self) -> &'static str {
        "chain"
    }

    fn about(&self) -> &'static str {
        "Agents that work one after the other, each on the output of the one before."
    }

    fn level(&self) -> Level {
        level::RUNS
    }

    fn right(&self) -> &'static str {
        "agents.publish"
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["steps"],
            "properties": {
                "description": {"type": "string", "maxLength": 4096, "description": "What the chain is for."},
                "orchestrator": {
                    "type": "string", "maxLength": 255,
                    "description": "The orchestrator that routes the steps; without one, the orchestrator of the cluster does."
                },
                "steps": {
                    "type": "array", "minItems": 1, "maxItems": STEPS_MAX,
                    "description": "The steps, in order.",
                    "items": {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["agent"],
                        "properties": {
                            "agent": {
                                "type": "string", "minLength": 1, "maxLength": 2 * NAME_BYTES_MAX,
                                "description": "The name of an agent; with @ and a range, such as hello@^1, the versions that may run."
                            },
                            "name": {
                                "type": "string", "maxLength": NAME_BYTES_MAX,
                                "description": "The name by which paths refer to the step; step_ and its number if it has none."
                            },
                            "input_map": {
                                "type": "object",
                                "description": "For fields of the input: a path, a field of the output before, or a value."
                            },
                            "atlas": flow_schema()
                        }
                    }
                }
            }
        })
    }

    fn admit(&self, _: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        ChainSpec::read(spec)?.check()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn documents() {
        check(
            "chain",
            &[
                "{}",
                r#"{"steps":[]}"#,
                r#"{"steps":[{"agent":"a"},{"agent":"b@^1","input_map":{"n":1,"text":"$.trigger.text"},"name":"second"}]}"#,
                r#"{"steps":[{}]}"#,
                r#"{"steps":[{"agent":"a","input_map":[]}]}"#,
                r#"{"steps":[{"agent":"a","name":1}]}"#,
                r#"{"description":"d","orchestrator":"o","steps":[{"agent":"a","more":1}]}"#,
            ],
            &expect![[r#"
                ! `spec.steps` is empty: a chain has at least one step
                ! `spec.steps` is empty: a chain has at least one step
                ok {"steps":[{"agent":"a"},{"agent":"b@^1","input_map":{"n":1,"text":"$.trigger.text"},"name":"second"}]}
                ! `spec.steps.agent` is missing or too long
                ! `spec` cannot be read: invalid type: sequence, expected a map at line 1 column 35
                ! `spec` cannot be read: invalid type: integer `1`, expected a string at line 1 column 31
                ok {"description":"d","orchestrator":"o","steps":[{"agent":"a","more":1}]}
            "#]],
        );
    }
}
