//! The policy file: one YAML mapping, in which everything is optional.

use std::collections::BTreeSet;

use atlas_contract::yaml::{self, Budget, YamlError};
use atlas_contract::{Permissions, Violation, python};
use serde_json::{Map, Value, json};

/// Where agents get the values of secrets from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretSource {
    /// The environment, by a prefix.
    Environment,
    /// A file.
    File,
}

/// A security policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The permissions of agents whose contract has no block `permissions`.
    pub default_permissions: Permissions,
    /// The image of agents that run in a container and name none.
    pub container_image: String,
    /// The network of containers.
    pub container_network: String,
    pub secret_source: SecretSource,
    /// The file of secrets; empty if there is none.
    pub secret_file: String,
    /// What precedes the name of a secret in its environment variable.
    pub secret_prefix: String,
    /// The secrets that agents may have. None means that the policy does not restrict them, an empty set that no secret is allowed.
    pub allowed_secrets: Option<BTreeSet<String>>,
    /// Upper bound of the memory of an agent.
    pub max_memory_mb: i64,
    /// Upper bound of the processor time of an agent.
    pub max_cpu_seconds: i64,
}

/// Why a text is not a policy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PolicyError {
    #[error("the policy is not YAML")]
    Yaml(#[source] YamlError),
    /// The document is a list or a scalar.
    #[error("a security policy is a mapping, not {got}")]
    NotAMapping {
        /// The Python name of its type.
        got: &'static str,
    },
    /// Values of a wrong type or with an unknown word; all of them.
    #[error("{}", listed(violations))]
    Rules {
        /// In the order of the policy's members.
        violations: Vec<Violation>,
    },
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            default_permissions: Permissions::default(),
            container_image: "python:3.12-slim".to_owned(),
            container_network: "none".to_owned(),
            secret_source: SecretSource::Environment,
            secret_file: String::new(),
            secret_prefix: "ATLAS_SECRET_".to_owned(),
            allowed_secrets: None,
            max_memory_mb: 1024,
            max_cpu_seconds: 300,
        }
    }
}

impl Policy {
    /// Reads a policy file. An empty file is the default policy; unknown keys are ignored.
    ///
    /// ```
    /// let policy = atlas_policy::Policy::parse(b"max_memory_mb: 2_048").expect("a policy");
    /// assert_eq!((policy.max_memory_mb, policy.max_cpu_seconds), (2048, 300));
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, PolicyError> {
        Self::read(&yaml::load_strictly(text, Budget::default()).map_err(PolicyError::Yaml)?)
    }

    /// Reads a policy from a loaded document; null is the default policy.
    pub fn read(document: &Value) -> Result<Self, PolicyError> {
        let empty = Map::new();
        let members = match document {
            Value::Null => &empty,
            Value::Object(members) => members,
            other => return Err(PolicyError::NotAMapping { got: python::type_name(other) }),
        };
        let defaults = Self::default();
        let mut reader = Reader { members, violations: Vec::new() };
        let policy = Self {
            default_permissions: reader.permissions("default_permissions"),
            container_image: reader.text("container_image", defaults.container_image),
            container_network: reader.text("container_network", defaults.container_network),
            secret_source: reader.source("secret_provider"),
            secret_file: reader.text("secret_file_path", defaults.secret_file),
            secret_prefix: reader.text("secret_env_prefix", defaults.secret_prefix),
            allowed_secrets: reader.names("allowed_secrets"),
            max_memory_mb: reader.amount("max_memory_mb", defaults.max_memory_mb),
            max_cpu_seconds: reader.amount("max_cpu_seconds", defaults.max_cpu_seconds),
        };
        let violations = reader.violations;
        if violations.is_empty() { Ok(policy) } else { Err(PolicyError::Rules { violations }) }
    }

    /// The policy as JSON, in one fixed order of members. Names of allowed secrets are sorted.
    pub fn to_json(&self) -> Value {
        let allowed: Vec<&String> = self.allowed_secrets.iter().flatten().collect();
        json!({
            "default_permissions": self.default_permissions.to_json(),
            "container_image": self.container_image,
            "container_network": self.container_network,
            "secret_provider": self.secret_source.as_str(),
            "secret_file_path": self.secret_file,
            "secret_env_prefix": self.secret_prefix,
            "allowed_secrets": allowed,
            "max_memory_mb": self.max_memory_mb,
            "max_cpu_seconds": self.max_cpu_seconds,
        })
    }
}

impl SecretSource {
    /// The word in policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Environment => "env",
            Self::File => "file",
        }
    }
}

/// The messages with the places of what they are about.
fn listed(violations: &[Violation]) -> String {
    let one = |violation: &Violation| format!("{}: {}", violation.pointer, violation.message);
    violations.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Reads members and collects what is wrong with them. Null counts as absent.
struct Reader<'v> {
    members: &'v Map<String, Value>,
    violations: Vec<Violation>,
}

impl<'v> Reader<'v> {
    fn get(&self, name: &str) -> Option<&'v Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    fn wrong(&mut self, name: &str, rule: &str, message: String) {
        let (pointer, rule) = (format!("/{name}"), rule.to_owned());
        self.violations.push(Violation { pointer, rule, message, suggestion: None });
    }

    fn take<T>(&mut self, name: &str, default: T, what: &str, convert: impl Fn(&Value) -> Option<T>) -> T {
        let Some(value) = self.get(name) else { return default };
        convert(value).unwrap_or_else(|| {
            self.wrong(name, "conversion", format!("{} is not {what}", python::repr(value)));
            default
        })
    }

    fn text(&mut self, name: &str, default: String) -> String {
        self.take(name, default, "text", |value| value.as_str().map(str::to_owned))
    }

    fn amount(&mut self, name: &str, default: i64) -> i64 {
        self.take(name, default, "a whole number", python::int)
    }

    fn names(&mut self, name: &str) -> Option<BTreeSet<String>> {
        let text = |item: &Value| item.as_str().map(str::to_owned);
        self.take(name, None, "a list of names", |value| {
            Some(Some(value.as_array()?.iter().map(text).collect::<Option<_>>()?))
        })
    }

    fn source(&mut self, name: &str) -> SecretSource {
        match self.get(name) {
            None => SecretSource::Environment,
            Some(value) if value == "env" => SecretSource::Environment,
            Some(value) if value == "file" => SecretSource::File,
            Some(value) => {
                self.wrong(name, "value", format!("{} is not one of: ['env', 'file']", python::repr(value)));
                SecretSource::Environment
            }
        }
    }

    fn permissions(&mut self, name: &str) -> Permissions {
        let Some(value) = self.get(name) else { return Permissions::default() };
        Permissions::read(value, &format!("/{name}")).unwrap_or_else(|violations| {
            self.violations.extend(violations);
            Permissions::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: &Expect) {
        let shown = match Policy::parse(text.as_bytes()) {
            Ok(policy) => {
                let (default, policy) = (Policy::default().to_json(), policy.to_json());
                let changed =
                    policy.as_object().expect("an object").iter().filter(|(name, value)| default[*name] != **value);
                changed.map(|(name, value)| format!("{name}={value}\n")).collect()
            }
            Err(error) => {
                let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
                format!("error: {error}{}", source.unwrap_or_default())
            }
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn everything_is_optional() {
        for text in ["", "---\n", "{}", "other: 1", "max_memory_mb: null\nallowed_secrets:\ndefault_permissions:"] {
            assert_eq!(Policy::parse(text.as_bytes()), Ok(Policy::default()), "{text:?}");
        }
    }

    #[test]
    fn members_are_read() {
        check(
            "container_image: img\ncontainer_network: bridge\nsecret_provider: file\nsecret_file_path: /s.yaml\nsecret_env_prefix: ''\n\
             allowed_secrets: [B, A, B]\nmax_memory_mb: '2048'\nmax_cpu_seconds: 1:30\n\
             default_permissions: {filesystem: [], max_memory_mb: 64}\n",
            &expect![[r#"
                default_permissions={"filesystem":[],"network":["outbound"],"spawn":false,"max_memory_mb":64,"max_cpu_seconds":60,"secrets":[],"isolation":"process","container_image":""}
                container_image="img"
                container_network="bridge"
                secret_provider="file"
                secret_file_path="/s.yaml"
                secret_env_prefix=""
                allowed_secrets=["A","B"]
                max_memory_mb=2048
                max_cpu_seconds=90
            "#]],
        );
    }

    #[test]
    fn an_empty_list_of_secrets_is_not_an_absent_one() {
        let allowed = |text: &str| Policy::parse(text.as_bytes()).expect("a policy").allowed_secrets;
        assert_eq!(allowed(""), None);
        assert_eq!(allowed("allowed_secrets: []"), Some(BTreeSet::new()));
    }

    #[test]
    fn all_wrong_values_are_reported() {
        check(
            "max_memory_mb: much\nallowed_secrets: [1]\nsecret_provider: vault\ncontainer_image: [a]",
            &expect![
                "error: /container_image: ['a'] is not text; /secret_provider: 'vault' is not one of: ['env', 'file']; /allowed_secrets: [1] is not a list of names; /max_memory_mb: 'much' is not a whole number"
            ],
        );
        check(
            "default_permissions: {isolation: vm, max_cpu_seconds: []}",
            &expect![
                "error: /default_permissions/isolation: Invalid isolation mode 'vm', must be one of: ['container', 'process']; /default_permissions/max_cpu_seconds: [] is not a whole number"
            ],
        );
        check("default_permissions: all", &expect!["error: /default_permissions: 'all' is not a mapping"]);
    }

    #[test]
    fn other_documents_are_refused() {
        check("[1]", &expect!["error: a security policy is a mapping, not list"]);
        check("text", &expect!["error: a security policy is a mapping, not str"]);
        check("a: [", &expect!["error: the policy is not YAML: line 1, column 4: unclosed bracket '['"]);
        check(
            &format!("a: {}", "x".repeat(1 << 20)),
            &expect!["error: the policy is not YAML: the document has more than 1048576 bytes"],
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(max_memory_mb|allowed_secrets|default_permissions|[a-z]{1,3}): ?[a-z0-9\\[\\]{}:,' .]{0,20}\n?") {
            if let Ok(policy) = Policy::parse(text.as_bytes()) {
                let again = Policy::read(&policy.to_json()).expect("what is written can be read");
                proptest::prop_assert_eq!(again.to_json(), policy.to_json());
            }
        }
    }
}
