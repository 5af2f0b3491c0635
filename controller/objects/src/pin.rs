//! Pins: agents that the MCP server of the platform offers as tools of their own. The name of the object is that of the agent.

use atlas_types::requirement::Requirement;
use atlas_types::{Level, ObjectKey, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, read};

/// Most bytes of a version requirement.
const VERSION_BYTES_MAX: usize = 64;

/// The document of a pin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PinSpec {
    /// The version requirement; none for the highest version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl PinSpec {
    /// Reads the spec of a pin.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }
}

pub(crate) struct PinKind;

impl Kind for PinKind {
    fn name(&self) -> &'static str {
        "pin"
    }

    fn about(&self) -> &'static str {
        "An agent that is a tool of its own at `/mcp`, under its name and with its schema."
    }

    fn level(&self) -> Level {
        level::PINS
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "version": {
                    "type": "string", "minLength": 1, "maxLength": VERSION_BYTES_MAX,
                    "description": "A version or a requirement such as ^1.2.0; the highest version by default."
                }
            }
        })
    }

    fn admit(&self, _: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        let Some(version) = PinSpec::read(spec)?.version else { return Ok(()) };
        // A requirement that cannot be read would refuse the list of tools to every client.
        match version.len() <= VERSION_BYTES_MAX && Requirement::parse(&version).is_ok() {
            true => Ok(()),
            false => {
                Err(Refusal::new("spec.version", "is no requirement; use 1.2.3, ^1.2.3, ~1.2.3, >=1.2.3, >1.2.3 or *"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::check;

    #[test]
    fn documents() {
        let long = format!(r#"{{"version":"{}"}}"#, "1".repeat(65));
        check(
            "pin",
            &["{}", r#"{"version":"^1.2.0"}"#, r#"{"version":"^1.2"}"#, r#"{"version":""}"#],
            &expect![[r#"
                ok {}
                ok {"version":"^1.2.0"}
                ! `spec.version` is no requirement; use 1.2.3, ^1.2.3, ~1.2.3, >=1.2.3, >1.2.3 or *
                ok {"version":""}
            "#]],
        );
        let key = crate::tests::key("pin", "a");
        assert!(PinKind.admit(&key, long.as_bytes()).is_err());
    }
}
