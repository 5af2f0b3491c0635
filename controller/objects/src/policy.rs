//! Policies: what agents may have, and rules on deploying and submitting ([ADR 43](../../../docs/adr/0043-policies.md)).

use std::collections::BTreeSet;

use atlas_types::{Bounds, Level, Namespace, ObjectKey, ObjectName, Principal, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, Scope, read};

/// The scopes of files, and the directions of the network.
const FILESYSTEM: [&str; 2] = ["read", "write"];
const NETWORK: [&str; 2] = ["inbound", "outbound"];
/// Most rules of a policy.
const RULES_MAX: usize = 64;
/// Most names in a list.
const NAMES_MAX: usize = 256;
/// Most principals that a rule asks.
const ASKED_MAX: usize = 64;
/// Most bytes of a name, a message, and an expression.
const NAME_BYTES_MAX: usize = 255;
const MESSAGE_BYTES_MAX: usize = 1_024;
const WHEN_BYTES_MAX: usize = 2_048;

/// The document of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PolicySpec {
    /// The namespaces in which it counts; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<BTreeSet<String>>,
    /// The secrets that agents may have; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_secrets: Option<BTreeSet<String>>,
    /// The scopes of files that agents may have; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<BTreeSet<String>>,
    /// The directions of the network that agents may use; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<BTreeSet<String>>,
    /// Upper bound of the memory of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_memory_mb: Option<i64>,
    /// Upper bound of the processor time of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cpu_seconds: Option<i64>,
    /// The first rule of an operation that holds decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PolicyRule>,
}

/// A rule of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRule {
    /// Its name in answers.
    pub name: String,
    /// The operations that it is about: `deploy` and `submit`.
    pub on: BTreeSet<String>,
    /// When it holds, in CEL.
    pub when: String,
    /// `allow`, `deny` or `ask`.
    pub effect: String,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whom a rule with the effect `ask` asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<PolicyAsk>,
}

/// Whom a rule asks, and for how long. Without principals and role, everybody with the right to answer questions is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyAsk {
    /// Those who may answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principals: Option<BTreeSet<String>>,
    /// Who has this role in the namespace of the job may answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// How long the job waits for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Whoever submitted the job may answer as well.
    #[serde(rename = "self", default, skip_serializing_if = "Option::is_none")]
    pub own: Option<bool>,
}

impl PolicyAsk {
    /// How long the job waits where the rule does not say so.
    pub const TIMEOUT_SECONDS: u64 = 24 * 3_600;
    /// The longest that it may wait.
    pub const TIMEOUT_SECONDS_MAX: u64 = 30 * 24 * 3_600;

    fn check(&self) -> Result<(), Refusal> {
        let refused = |why: String| Err(Refusal::new("spec.rules.ask", why));
        if self.principals.is_some() && self.role.is_some() {
            return refused("names principals and a role; it can have one of them".to_owned());
        }
        let principals = || self.principals.iter().flatten();
        if self.principals.as_ref().is_some_and(|names| names.is_empty() || names.len() > ASKED_MAX) {
            return refused(format!("has no principals, or more than {ASKED_MAX}"));
        }
        if let Some(name) = principals().find(|name| Principal::new(name).is_err()) {
            return refused(format!("has the principal \"{name}\", which is not a name"));
        }
        if let Some(role) = self.role.as_ref().filter(|role| ObjectName::new(role).is_err()) {
            return refused(format!("has the role \"{role}\", which is not a name"));
        }
        if self.timeout_seconds.is_some_and(|seconds| !(1..=Self::TIMEOUT_SECONDS_MAX).contains(&seconds)) {
            return refused(format!("has a timeout that is not between 1 and {} seconds", Self::TIMEOUT_SECONDS_MAX));
        }
        Ok(())
    }
}

impl PolicySpec {
    /// Reads the spec of a policy.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }

    /// What it leaves agents at most.
    pub fn bounds(&self) -> Bounds {
        let words = |words: &Option<BTreeSet<String>>| words.as_ref().map(|words| words.iter().cloned().collect());
        let amount =
            |amount: Option<i64>| amount.and_then(|amount| u64::try_from(amount).ok()).filter(|amount| *amount > 0);
        Bounds {
            filesystem: words(&self.filesystem),
            network: words(&self.network),
            memory_mb: amount(self.max_memory_mb),
            cpu_seconds: amount(self.max_cpu_seconds),
        }
    }

    /// Whether it counts in a namespace.
    pub fn is_in(&self, namespace: &Namespace) -> bool {
        self.namespaces.as_ref().is_none_or(|names| names.contains(namespace.as_str()))
    }
}

/// The schema of [`PolicyAsk`].
fn asked() -> Value {
    let name = json!({ "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX });
    json!({
        "type": ["object", "null"],
        "additionalProperties": false,
        "description": "Whom a rule with the effect ask asks; everybody with the right to answer questions by default.",
        "properties": {
            "principals": {
                "type": ["array", "null"], "minItems": 1, "maxItems": ASKED_MAX, "uniqueItems": true, "items": name,
                "description": "Those who may answer."
            },
            "role": {
                "type": ["string", "null"], "minLength": 1, "maxLength": NAME_BYTES_MAX,
                "description": "Who has this role in the namespace of the job may answer, instead of principals."
            },
            "timeout_seconds": {
                "type": ["integer", "null"], "minimum": 1, "maximum": PolicyAsk::TIMEOUT_SECONDS_MAX,
                "description": "How long the job waits for an answer; a day by default."
            },
            "self": {
                "type": ["boolean", "null"], "description": "Whoever submitted the job may answer as well; not by default."
            }
        }
    })
}

pub(crate) struct PolicyKind;

impl Kind for PolicyKind {
    fn name(&self) -> &'static str {
        "policy"
    }

    fn about(&self) -> &'static str {
        "What agents may have, and rules on deploying agents and submitting jobs."
    }

    fn scope(&self) -> Scope {
        Scope::Cluster
    }

    fn level(&self) -> Level {
        level::POLICIES
    }

    fn right(&self) -> &'static str {
        "access.manage"
    }

    fn schema(&self) -> Value {
        let name = json!({ "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX });
        let names = |text: &str| {
            json!({
                "type": ["array", "null"], "maxItems": NAMES_MAX, "uniqueItems": true, "items": name, "description": text
            })
        };
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "namespaces": names("The namespaces in which the policy counts; all by default."),
                "allowed_secrets": names("The secrets that agents may have; all by default, none with an empty list."),
                "filesystem": {
                    "type": ["array", "null"], "uniqueItems": true, "items": { "type": "string", "enum": FILESYSTEM },
                    "description": "The scopes of files that agents may have; all by default, their own folder with an empty list."
                },
                "network": {
                    "type": ["array", "null"], "uniqueItems": true, "items": { "type": "string", "enum": NETWORK },
                    "description": "The directions of the network that agents may use; all by default, no network with an empty list."
                },
                "max_memory_mb": {
                    "type": ["integer", "null"], "minimum": 1, "description": "Upper bound of max_memory_mb of a contract."
                },
                "max_cpu_seconds": {
                    "type": ["integer", "null"], "minimum": 1, "description": "Upper bound of max_cpu_seconds of a contract."
                },
                "rules": {
                    "type": "array", "maxItems": RULES_MAX,
                    "description": "Rules; the first one of an operation that holds decides, and what no rule decides is allowed.",
                    "items": {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["name", "on", "when", "effect"],
                        "properties": {
                            "name": { "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX },
                            "on": {
                                "type": "array", "minItems": 1, "uniqueItems": true,
                                "items": { "type": "string", "enum": ["deploy", "submit"] }
                            },
                            "when": { "type": "string", "minLength": 1, "maxLength": WHEN_BYTES_MAX },
                            "effect": { "type": "string", "enum": ["allow", "deny", "ask"] },
                            "message": { "type": ["string", "null"], "maxLength": MESSAGE_BYTES_MAX },
                            "ask": asked()
                        }
                    }
                }
            }
        })
    }

    fn admit(&self, _: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        let spec = PolicySpec::read(spec)?;
        for (field, names) in [("spec.namespaces", &spec.namespaces), ("spec.allowed_secrets", &spec.allowed_secrets)] {
            let Some(names) = names else { continue };
            if names.len() > NAMES_MAX || names.iter().any(|name| name.is_empty() || name.len() > NAME_BYTES_MAX) {
                return Err(Refusal::new(field, format!("has more than {NAMES_MAX} names, or one that is too long")));
            }
        }
        let lists = [("spec.filesystem", &spec.filesystem, FILESYSTEM), ("spec.network", &spec.network, NETWORK)];
        for (field, words, known) in lists {
            if let Some(word) = words.iter().flatten().find(|word| !known.contains(&word.as_str())) {
                return Err(Refusal::new(field, format!("has the word \"{word}\"; there are {}", known.join(" and "))));
            }
        }
        if [spec.max_memory_mb, spec.max_cpu_seconds].into_iter().flatten().any(|amount| amount < 1) {
            return Err(Refusal::new("spec", "has an upper bound below 1"));
        }
        if spec.rules.len() > RULES_MAX {
            return Err(Refusal::new("spec.rules", format!("has more than {RULES_MAX} rules")));
        }
        for rule in &spec.rules {
            let known = |word: &String| ["deploy", "submit"].contains(&word.as_str());
            if rule.on.is_empty()
                || !rule.on.iter().all(known)
                || !["allow", "deny", "ask"].contains(&rule.effect.as_str())
            {
                return Err(Refusal::new("spec.rules", "has an unknown operation or effect"));
            }
            if rule.effect == "ask" && rule.on.contains("deploy") {
                return Err(Refusal::new("spec.rules", "asks about a deployment, which cannot wait for an answer"));
            }
            match &rule.ask {
                Some(_) if rule.effect != "ask" => {
                    return Err(Refusal::new("spec.rules", "says whom to ask, and its effect is not ask"));
                }
                ask => ask.as_ref().map_or(Ok(()), PolicyAsk::check)?,
            }
            let long = rule.name.len() > NAME_BYTES_MAX
                || rule.when.len() > WHEN_BYTES_MAX
                || rule.message.as_ref().is_some_and(|text| text.len() > MESSAGE_BYTES_MAX);
            if long || rule.name.is_empty() {
                return Err(Refusal::new("spec.rules", "has a rule without a name, or a text that is too long"));
            }
        }
        Ok(())
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
            "policy",
            &[
                "{}",
                r#"{"allowed_secrets":[],"max_memory_mb":1024,"namespaces":["a"]}"#,
                r#"{"rules":[{"effect":"deny","name":"r","on":["deploy"],"when":"true"}]}"#,
                r#"{"filesystem":["read"],"network":[]}"#,
                r#"{"network":["outbond"]}"#,
                r#"{"max_cpu_seconds":0}"#,
                r#"{"allowed_secrets":[""]}"#,
                r#"{"rules":[{"effect":"ask","name":"r","on":["deploy"],"when":"true"}]}"#,
                r#"{"rules":[{"effect":"deny","name":"r","on":[],"when":"true"}]}"#,
                r#"{"rules":[{"ask":{"principals":["bob"],"self":true,"timeout_seconds":60},"effect":"ask","name":"r","on":["submit"],"when":"true"}]}"#,
                r#"{"rules":[{"effect":"ask","name":"r","on":["submit"],"when":"true"}]}"#,
                r#"{"rules":[{"ask":{},"effect":"allow","name":"r","on":["submit"],"when":"true"}]}"#,
                r#"{"rules":[{"ask":{"principals":["bob"],"role":"approver"},"effect":"ask","name":"r","on":["submit"],"when":"true"}]}"#,
                r#"{"rules":[{"ask":{"principals":[]},"effect":"ask","name":"r","on":["submit"],"when":"true"}]}"#,
                r#"{"rules":[{"ask":{"principals":[" "]},"effect":"ask","name":"r","on":["submit"],"when":"true"}]}"#,
                r#"{"rules":[{"ask":{"role":"a b"},"effect":"ask","name":"r","on":["submit"],"when":"true"}]}"#,
                r#"{"rules":[{"ask":{"timeout_seconds":0},"effect":"ask","name":"r","on":["submit"],"when":"true"}]}"#,
                r#"{"rules":[{"ask":{"later":1},"effect":"ask","name":"r","on":["submit"],"when":"true"}]}"#,
                r#"{"rules":[{"effect":"warn","name":"r","on":["submit"],"when":"true"}]}"#,
                r#"{"rules":[{"effect":"deny","name":"","on":["submit"],"when":"true"}]}"#,
                r#"{"rules":[{"effect":"deny"}]}"#,
            ],
            &expect![[r#"
                ok {}
                ok {"allowed_secrets":[],"max_memory_mb":1024,"namespaces":["a"]}
                ok {"rules":[{"effect":"deny","name":"r","on":["deploy"],"when":"true"}]}
                ok {"filesystem":["read"],"network":[]}
                ! `spec.network` has the word "outbond"; there are inbound and outbound
                ! `spec` has an upper bound below 1
                ! `spec.allowed_secrets` has more than 256 names, or one that is too long
                ! `spec.rules` asks about a deployment, which cannot wait for an answer
                ! `spec.rules` has an unknown operation or effect
                ok {"rules":[{"ask":{"principals":["bob"],"self":true,"timeout_seconds":60},"effect":"ask","name":"r","on":["submit"],"when":"true"}]}
                ok {"rules":[{"effect":"ask","name":"r","on":["submit"],"when":"true"}]}
                ! `spec.rules` says whom to ask, and its effect is not ask
                ! `spec.rules.ask` names principals and a role; it can have one of them
                ! `spec.rules.ask` has no principals, or more than 64
                ok {"rules":[{"ask":{"principals":[" "]},"effect":"ask","name":"r","on":["submit"],"when":"true"}]}
                ok {"rules":[{"ask":{"role":"a b"},"effect":"ask","name":"r","on":["submit"],"when":"true"}]}
                ! `spec.rules.ask` has a timeout that is not between 1 and 2592000 seconds
                ! `spec` cannot be read: unknown field `later`, expected one of `principals`, `role`, `timeout_seconds`, `self` at line 1 column 25
                ! `spec.rules` has an unknown operation or effect
                ! `spec.rules` has a rule without a name, or a text that is too long
                ! `spec` cannot be read: missing field `name` at line 1 column 27
            "#]],
        );
    }

    #[test]
    fn the_golden_document_reads_as_ever() {
        let spec = PolicySpec::read(include_bytes!("../golden/policy.json")).expect("a spec");
        let rule = PolicyRule {
            name: "no network".into(),
            on: ["deploy".to_owned(), "submit".to_owned()].into(),
            when: "'outbound' in agent.permissions.network".into(),
            effect: "deny".into(),
            message: Some("ask the platform team".into()),
            ask: None,
        };
        let expected = PolicySpec {
            namespaces: Some(["team-a".to_owned()].into()),
            allowed_secrets: Some(["db".to_owned()].into()),
            filesystem: None,
            network: None,
            max_memory_mb: Some(1_024),
            max_cpu_seconds: Some(300),
            rules: vec![rule],
        };
        assert_eq!(spec, expected);
        let namespace = |name: &str| Namespace::new(name).expect("a name");
        assert!(spec.is_in(&namespace("team-a")) && !spec.is_in(&namespace("team-b")));
        assert!(PolicySpec::default().is_in(&namespace("team-b")));
    }
}
