//! Orchestrators that are documents: rules that decide on jobs, or the address of a program that does. Orchestrators that are agents need
//! no object.

use std::net::IpAddr;

use atlas_types::{AgentName, Level, ObjectKey, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, View, read};
use crate::routing::{ROUTING, RoutingSpec};

/// Most rules of an orchestrator.
pub const RULES_MAX: usize = 128;
/// Most bytes of a condition.
const CONDITION_BYTES_MAX: usize = 2_048;
/// Most bytes of the name of a rule.
const NAME_BYTES_MAX: usize = 100;
/// Most bytes of an address.
const ADDRESS_BYTES_MAX: usize = 255;
/// Most bytes of the reason of a reject.
const REASON_BYTES_MAX: usize = 1_000;

/// A rule: what happens to the jobs for which its condition holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleSpec {
    /// The name under which jobs show the rule.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// It holds for jobs for which this expression is true; none holds for all.
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The job runs as it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<bool>,
    /// The job fails for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reject: Option<String>,
    /// The job runs this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// The job gets this priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
}

/// A program outside of the cluster that decides on jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExternalSpec {
    /// Host and port; every controller reaches its own.
    pub address: String,
}

/// The document of an orchestrator: either rules or a program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OrchestratorSpec {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The first rule whose condition holds decides. A job for which none holds runs as it was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleSpec>,
    /// The program that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc: Option<ExternalSpec>,
}

impl ExternalSpec {
    /// Calls carry the inputs of jobs and are not encrypted, so they do not leave the machine.
    fn check(&self) -> Result<(), Refusal> {
        let refused = |why: &str| Err(Refusal::new("spec.grpc.address", format!("is refused: {why}")));
        if self.address.len() > ADDRESS_BYTES_MAX {
            return refused("it is too long");
        }
        let Some((host, port)) = self.address.rsplit_once(':') else { return refused("it needs a host and a port") };
        if !port.parse::<u16>().is_ok_and(|port| port > 0) {
            return refused("its port is no number from 1 to 65535");
        }
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_loopback = host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback());
        if is_loopback { Ok(()) } else { refused("only 127.0.0.0/8 and [::1] are allowed, as calls are not encrypted") }
    }
}

impl OrchestratorSpec {
    /// Reads the spec of an orchestrator.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }

    fn check(&self) -> Result<(), Refusal> {
        if let Some(external) = &self.grpc {
            if !self.rules.is_empty() {
                return Err(Refusal::new("spec", "has either `rules` or `grpc`"));
            }
            return external.check();
        }
        if self.rules.is_empty() {
            return Err(Refusal::new("spec.rules", "is empty: an orchestrator has at least one rule"));
        }
        if self.rules.len() > RULES_MAX {
            return Err(Refusal::new("spec.rules", format!("has more than {RULES_MAX} rules")));
        }
        self.rules.iter().try_for_each(RuleSpec::check)
    }
}

impl RuleSpec {
    fn check(&self) -> Result<(), Refusal> {
        let long = |text: &Option<String>, most: usize| text.as_ref().is_some_and(|text| text.len() > most);
        if self.name.len() > NAME_BYTES_MAX {
            return Err(Refusal::new("spec.rules.name", format!("has more than {NAME_BYTES_MAX} bytes")));
        }
        if long(&self.condition, CONDITION_BYTES_MAX) {
            return Err(Refusal::new("spec.rules.if", format!("has more than {CONDITION_BYTES_MAX} bytes")));
        }
        if long(&self.reject, REASON_BYTES_MAX) {
            return Err(Refusal::new("spec.rules.reject", format!("has more than {REASON_BYTES_MAX} bytes")));
        }
        if self.allow == Some(false) {
            return Err(Refusal::new("spec.rules.allow", "is true or missing; use `reject` with a reason"));
        }
        if let Some(agent) = &self.redirect {
            AgentName::new(agent.as_str())
                .map_err(|error| Refusal::new("spec.rules.redirect", format!("is refused: {error}")))?;
        }
        let actions = [self.allow.is_some(), self.reject.is_some(), self.redirect.is_some()];
        let actions = actions.into_iter().filter(|is| *is).count();
        // A priority alone allows the job.
        if actions > 1 || (actions == 0 && self.priority.is_none()) {
            let text = "need exactly one of `allow`, `reject` and `redirect`, or `priority` alone";
            return Err(Refusal::new("spec.rules", text));
        }
        Ok(())
    }
}

fn rule_schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "name": {
                "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX,
                "description": "The name under which jobs show the rule; `rule` and its number if it has none."
            },
            "if": {
                "type": "string", "minLength": 1, "maxLength": CONDITION_BYTES_MAX,
                "description": "The rule holds if this expression over `job`, `agent`, `labels` and `metadata` is true; without it, for all jobs."
            },
            "allow": {"const": true, "description": "The job runs as it was asked for."},
            "reject": {
                "type": "string", "minLength": 1, "maxLength": REASON_BYTES_MAX,
                "description": "The job fails for this reason."
            },
            "redirect": {
                "type": "string", "minLength": 1, "maxLength": 255,
                "description": "The job runs this agent; its input is checked against that agent's schema."
            },
            "priority": {
                "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX,
                "description": "The priority that the job gets when it starts."
            }
        }
    })
}

pub(crate) struct OrchestratorKind;

impl Kind for OrchestratorKind {
    fn name(&self) -> &'static str {
        "orchestrator"
    }

    fn about(&self) -> &'static str {
        "Rules that decide on jobs before they run, or a program that does; the object `routing/default` selects them by name."
    }

    fn level(&self) -> Level {
        level::ORCHESTRATOR_RULES
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "description": {"type": "string", "maxLength": 4096, "description": "What the orchestrator is for."},
                "grpc": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["address"],
                    "description": "A program that decides, with the service `atlas.orchestrator.v1.OrchestratorService`; instead of rules.",
                    "properties": {
                        "address": {
                            "type": "string", "minLength": 1, "maxLength": ADDRESS_BYTES_MAX,
                            "description": "Its address, 127.0.0.1:PORT or [::1]:PORT: each controller calls the one on its own machine."
                        }
                    }
                },
                "rules": {
                    "type": "array", "minItems": 1, "maxItems": RULES_MAX, "items": rule_schema(),
                    "description": "The rules, in order: the first one that holds decides. A job for which none holds runs as it was asked for."
                }
            }
        })
    }

    fn admit(&self, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        AgentName::new(key.name.as_str())
            .map_err(|error| Refusal::new("metadata.name", format!("is refused: {error}")))?;
        OrchestratorSpec::read(spec)?.check()
    }

    fn used_by(&self, view: &dyn View, key: &ObjectKey) -> Option<&'static str> {
        let selection = ObjectKey {
            namespace: key.namespace.clone(),
            kind: atlas_types::ObjectKind::new("routing").ok()?,
            name: atlas_types::ObjectName::new(ROUTING).ok()?,
        };
        let selection = RoutingSpec::read(view.spec_of(&selection)?).ok()?;
        (selection.orchestrator.as_deref() == Some(key.name.as_str())).then_some("the selection of the namespace")
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::check;

    #[test]
    fn documents() {
        check(
            "orchestrator",
            &[
                "{}",
                r#"{"rules":[]}"#,
                r#"{"rules":[{"allow":true}]}"#,
                r#"{"rules":[{"if":"size(job.input_data) == 0","name":"empty","reject":"nothing to do"},{"priority":5}]}"#,
                r#"{"rules":[{"if":"true"}]}"#,
                r#"{"rules":[{"allow":true,"reject":"no"}]}"#,
                r#"{"rules":[{"allow":false}]}"#,
                r#"{"rules":[{"redirect":""}]}"#,
                r#"{"rules":[{"priority":"5"}]}"#,
                r#"{"later":1,"rules":[{"later":2,"redirect":"b"}]}"#,
                r#"{"grpc":{"address":"127.0.0.1:9000"}}"#,
                r#"{"grpc":{"address":"[::1]:9000"}}"#,
                r#"{"grpc":{"address":"127.0.0.1:9000"},"rules":[{"allow":true}]}"#,
                r#"{"grpc":{"address":"10.0.0.1:9000"}}"#,
                r#"{"grpc":{"address":"localhost:9000"}}"#,
                r#"{"grpc":{"address":"127.0.0.1"}}"#,
                r#"{"grpc":{"address":"127.0.0.1:0"}}"#,
                r#"{"grpc":{"address":"127.0.0.1:70000"}}"#,
                r#"{"grpc":{}}"#,
            ],
            &expect![[r#"
                ! `spec.rules` is empty: an orchestrator has at least one rule
                ! `spec.rules` is empty: an orchestrator has at least one rule
                ok {"rules":[{"allow":true}]}
                ok {"rules":[{"if":"size(job.input_data) == 0","name":"empty","reject":"nothing to do"},{"priority":5}]}
                ! `spec.rules` need exactly one of `allow`, `reject` and `redirect`, or `priority` alone
                ! `spec.rules` need exactly one of `allow`, `reject` and `redirect`, or `priority` alone
                ! `spec.rules.allow` is true or missing; use `reject` with a reason
                ! `spec.rules.redirect` is refused: an agent name has 1 to 255 bytes, this one has 0
                ! `spec` cannot be read: invalid type: string "5", expected i64 at line 1 column 25
                ok {"later":1,"rules":[{"later":2,"redirect":"b"}]}
                ok {"grpc":{"address":"127.0.0.1:9000"}}
                ok {"grpc":{"address":"[::1]:9000"}}
                ! `spec` has either `rules` or `grpc`
                ! `spec.grpc.address` is refused: only 127.0.0.0/8 and [::1] are allowed, as calls are not encrypted
                ! `spec.grpc.address` is refused: only 127.0.0.0/8 and [::1] are allowed, as calls are not encrypted
                ! `spec.grpc.address` is refused: it needs a host and a port
                ! `spec.grpc.address` is refused: its port is no number from 1 to 65535
                ! `spec.grpc.address` is refused: its port is no number from 1 to 65535
                ! `spec.grpc.address` is refused: it needs a host and a port
            "#]],
        );
        let long = |member: &str, bytes: usize| format!(r#"{{"rules":[{{"{member}":"{}"}}]}}"#, "x".repeat(bytes));
        let many = format!(r#"{{"rules":[{}]}}"#, vec![r#"{"allow":true}"#; RULES_MAX + 1].join(","));
        for document in [long("name", 101), long("if", 2_049), long("reject", 1_001), many] {
            let key = crate::tests::key("orchestrator", "a");
            assert!(crate::check(&OrchestratorKind, &key, document.as_bytes()).is_err());
        }
    }

    #[test]
    fn the_golden_document_reads_as_ever() {
        let spec = OrchestratorSpec::read(include_bytes!("../golden/orchestrator.json")).expect("a spec");
        assert_eq!(spec.rules.len(), 3);
        assert_eq!(spec.rules[0].reject.as_deref(), Some("nothing to do"));
        assert_eq!((spec.rules[1].redirect.as_deref(), spec.rules[1].priority), (Some("summarizer"), Some(-1)));
        assert_eq!(spec.rules[2].allow, Some(true));
    }
}
