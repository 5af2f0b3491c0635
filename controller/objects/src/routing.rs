//! Routing: which orchestrator decides on the jobs of a namespace before they run. A namespace without the object has the default
//! orchestrator, which allows everything and costs nothing.

use atlas_types::{AgentName, Level, Micros, ObjectKey, level};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, read};

/// The name of the object: a namespace has one.
pub const ROUTING: &str = "default";

const DEADLINE_MS_MAX: u64 = 600_000;

/// What happens to a job whose orchestrator fails or does not answer in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fallback {
    /// It runs as it was asked for.
    #[default]
    Allow,
    /// It fails.
    Reject,
    /// It waits until the orchestrator answers.
    Wait,
}

impl Fallback {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Reject => "reject",
            Self::Wait => "wait",
        }
    }
}

/// The selection of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RoutingSpec {
    /// The orchestrator: an agent of the type `orchestrator`. None is the default one.
    #[serde(default)]
    pub orchestrator: Option<String>,
    /// The one that was selected before.
    #[serde(default)]
    pub previous: Option<String>,
    /// A candidate that is asked about the same jobs, without effect.
    #[serde(default)]
    pub shadow: Option<String>,
    /// How long the orchestrator may take to decide on a job.
    #[serde(default = "deadline_default")]
    pub deadline_ms: u64,
    /// What happens to a job otherwise.
    #[serde(default)]
    pub fallback: Fallback,
}

fn deadline_default() -> u64 {
    10_000
}

impl Default for RoutingSpec {
    fn default() -> Self {
        Self {
            orchestrator: None,
            previous: None,
            shadow: None,
            deadline_ms: deadline_default(),
            fallback: Fallback::Allow,
        }
    }
}

impl RoutingSpec {
    /// Reads the spec of a selection.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }

    /// How long the orchestrator may take; none if jobs wait for it.
    pub fn deadline(&self) -> Option<Micros> {
        (self.fallback != Fallback::Wait).then_some(Micros(self.deadline_ms.saturating_mul(1_000)))
    }

    fn check(&self) -> Result<(), Refusal> {
        let names = [
            ("spec.orchestrator", &self.orchestrator),
            ("spec.previous", &self.previous),
            ("spec.shadow", &self.shadow),
        ];
        for (field, name) in names {
            let Some(name) = name else { continue };
            AgentName::new(name.as_str()).map_err(|error| Refusal::new(field, format!("is refused: {error}")))?;
        }
        if !(1..=DEADLINE_MS_MAX).contains(&self.deadline_ms) {
            return Err(Refusal::new("spec.deadline_ms", format!("is between 1 and {DEADLINE_MS_MAX}")));
        }
        Ok(())
    }
}

pub(crate) struct RoutingKind;

impl Kind for RoutingKind {
    fn name(&self) -> &'static str {
        "routing"
    }

    fn about(&self) -> &'static str {
        "The orchestrator that decides on the jobs of a namespace before they run; the object is named `default`."
    }

    fn level(&self) -> Level {
        level::ORCHESTRATORS
    }

    fn schema(&self) -> Value {
        let name = |description: &str| json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 255, "description": description });
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "orchestrator": name(
                    "The orchestrator: an agent of the type `orchestrator`. Without it, all jobs are allowed."
                ),
                "previous": name("The orchestrator that was selected before, to which a rollback returns."),
                "shadow": name("A candidate that is asked about the same jobs, without effect."),
                "deadline_ms": {
                    "type": "integer", "minimum": 1, "maximum": DEADLINE_MS_MAX, "default": deadline_default(),
                    "description": "How long the orchestrator may take to decide on a job, in milliseconds."
                },
                "fallback": {
                    "enum": ["allow", "reject", "wait"], "default": "allow",
                    "description": "What happens to a job if the orchestrator fails or does not decide in time."
                }
            }
        })
    }

    fn admit(&self, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        // `fast` is the name under which the tests of all kinds read their golden documents.
        if key.name.as_str() != ROUTING && !(cfg!(test) && key.name.as_str() == "fast") {
            return Err(Refusal::new("metadata.name", format!("is `{ROUTING}`: a namespace has one selection")));
        }
        RoutingSpec::read(spec)?.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents() {
        let key = crate::tests::key("routing", ROUTING);
        let admitted =
            |document: &str| crate::check(&RoutingKind, &key, document.as_bytes()).map_err(|refusal| refusal.field);
        assert_eq!(admitted("{}"), Ok(()));
        assert_eq!(admitted(r#"{"later":1,"orchestrator":"priority-router"}"#), Ok(()));
        assert_eq!(admitted(r#"{"orchestrator":""}"#), Err("spec.orchestrator"));
        assert_eq!(admitted(r#"{"deadline_ms":0}"#), Err("spec.deadline_ms"));
        assert_eq!(admitted(r#"{"deadline_ms":600001}"#), Err("spec.deadline_ms"));
        assert_eq!(admitted(r#"{"fallback":"maybe"}"#), Err("spec"));
        let other = crate::tests::key("routing", "other");
        assert_eq!(crate::check(&RoutingKind, &other, b"{}").map_err(|refusal| refusal.field), Err("metadata.name"));
    }

    #[test]
    fn the_golden_document_reads_as_ever() {
        let spec = RoutingSpec::read(include_bytes!("../golden/routing.json")).expect("a spec");
        let expected = RoutingSpec {
            orchestrator: Some("priority-router".into()),
            previous: Some("rules".into()),
            shadow: Some("candidate".into()),
            deadline_ms: 2_000,
            fallback: Fallback::Reject,
        };
        assert_eq!(spec, expected);
        assert_eq!(spec.deadline(), Some(Micros(2_000_000)));
        assert_eq!(RoutingSpec { fallback: Fallback::Wait, ..spec }.deadline(), None);
    }
}
