//! Secrets: who may read one, and where its value is. A value in the store is sealed; its key is not in the cluster's data.

use atlas_types::{Level, ObjectKey, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, read};

/// Versions of a value that are kept, the newest included.
pub const VERSIONS_MAX: usize = 3;

const READERS_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 255;
const PATH_BYTES_MAX: usize = 512;
/// What the name of a variable starts with: a secret cannot show other variables of a worker.
const VARIABLE_PREFIX: &str = "ATLAS_SECRET_";

/// Where the value of a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretProvider {
    /// In the object, sealed.
    #[default]
    Store,
    /// In an environment variable of each worker.
    Environment,
    /// In a file in the directory of secrets of each worker.
    File,
}

/// One sealed version of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedVersion {
    /// Counts from 1.
    pub version: u64,
    /// Which key sealed it.
    pub key: String,
    /// Base64.
    pub nonce: String,
    /// Base64.
    pub sealed: String,
    /// When it was set, seconds since the Unix epoch.
    pub created: u64,
}

/// The document of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretSpec {
    pub provider: SecretProvider,
    /// The agents that may have it; none allows all agents of the namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readers: Option<Vec<String>>,
    /// The variable, for the provider `environment`; by default `ATLAS_SECRET_` and the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// The file, for the provider `file`; by default the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The member of the document in the file; none if the whole file is the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// When the renewal counts as lost that a controller has begun, seconds since the Unix epoch. Only the cluster writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal: Option<u64>,
    /// Sealed values, the newest last. Only the cluster writes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<SealedVersion>,
}

impl SecretSpec {
    /// Reads the spec of a secret.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }

    /// Whether an agent may have it.
    pub fn permits(&self, agent: &str) -> bool {
        self.readers.as_ref().is_none_or(|readers| readers.iter().any(|reader| reader == agent))
    }

    fn check(&self, key: &ObjectKey) -> Result<(), Refusal> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if key.name.as_str().len() > 128 || !key.name.as_str().bytes().all(is_allowed) {
            return Err(Refusal::new("metadata.name", "consists of at most 128 letters, digits, -, _ and ."));
        }
        let readers = self.readers.as_deref().unwrap_or_default();
        if readers.len() > READERS_MAX
            || readers.iter().any(|reader| reader.is_empty() || reader.len() > NAME_BYTES_MAX)
        {
            return Err(Refusal::new("spec.readers", format!("has at most {READERS_MAX} names of agents")));
        }
        if let Some(variable) = &self.variable {
            let rest = variable.strip_prefix(VARIABLE_PREFIX).unwrap_or_default();
            if rest.is_empty() || variable.len() > NAME_BYTES_MAX || !rest.bytes().all(is_allowed) {
                return Err(Refusal::new("spec.variable", format!("starts with {VARIABLE_PREFIX} and has no blanks")));
            }
        }
        if let Some(path) = &self.path {
            let leads_out = path.starts_with('/') || path.split('/').any(|part| part == "..");
            if path.is_empty() || path.len() > PATH_BYTES_MAX || leads_out {
                return Err(Refusal::new("spec.path", "is a path in the directory of secrets of the workers"));
            }
        }
        if self.member.as_ref().is_some_and(|member| member.is_empty() || member.len() > NAME_BYTES_MAX) {
            return Err(Refusal::new("spec.member", format!("has 1 to {NAME_BYTES_MAX} bytes")));
        }
        if self.versions.len() > VERSIONS_MAX || !self.versions.is_sorted_by(|a, b| a.version < b.version) {
            return Err(Refusal::new("spec.versions", format!("has at most {VERSIONS_MAX} items, the newest last")));
        }
        Ok(())
    }
}

pub(crate) struct SecretKind;

impl Kind for SecretKind {
    fn name(&self) -> &'static str {
        "secret"
    }

    fn about(&self) -> &'static str {
        "A secret of agents and models: where its value is and which agents may have it. No answer contains a value."
    }

    fn level(&self) -> Level {
        level::SECRETS
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "provider": {
                    "enum": ["store", "environment", "file"], "default": "store",
                    "description": "Where the value is: `store` keeps it sealed in the cluster, `environment` and `file` leave it with the workers."
                },
                "readers": {
                    "type": ["array", "null"], "maxItems": READERS_MAX, "items": { "type": "string" },
                    "description": "The agents that may have it. Null allows all agents of the namespace that declare it, an empty list none."
                },
                "variable": {
                    "type": ["string", "null"],
                    "description": "The variable of the workers, for the provider `environment`. It starts with `ATLAS_SECRET_`."
                },
                "path": {
                    "type": ["string", "null"], "maxLength": PATH_BYTES_MAX,
                    "description": "The file in the directory of secrets of the workers, for the provider `file`."
                },
                "member": {
                    "type": ["string", "null"],
                    "description": "The member of the JSON or YAML object in the file. Without it, the whole file is the value."
                }
            }
        })
    }

    fn admit(&self, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        SecretSpec::read(spec)?.check(key)
    }

    fn kept(&self) -> &'static [&'static str] {
        &["versions", "renewal"]
    }

    fn shown(&self, spec: &mut Value) {
        spec.as_object_mut().map(|members| members.remove("renewal"));
        let versions = spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten();
        for version in versions.filter_map(Value::as_object_mut) {
            version.retain(|member, _| matches!(member.as_str(), "version" | "key" | "created"));
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
        let readers = format!(r#"{{"readers":[{}]}}"#, vec![r#""a""#; 65].join(","));
        let version = r#"{"created":1,"key":"k","nonce":"","sealed":"","version":1}"#;
        let versions = format!(r#"{{"versions":[{}]}}"#, [version; 2].join(","));
        check(
            "secret",
            &[
                "{}",
                r#"{"later":1}"#,
                r#"{"provider":"vault"}"#,
                r#"{"provider":"environment","variable":"ATLAS_SECRET_A"}"#,
                r#"{"provider":"environment","variable":"PATH"}"#,
                r#"{"member":"K","path":"a/b.yaml","provider":"file"}"#,
                r#"{"path":"../b","provider":"file"}"#,
                r#"{"path":"/b","provider":"file"}"#,
                r#"{"member":""}"#,
                r#"{"readers":[""]}"#,
                &readers,
                &versions,
            ],
            &expect![[r#"
                ok {}
                ok {"later":1}
                ! `spec` cannot be read: unknown variant `vault`, expected one of `store`, `environment`, `file` at line 1 column 19
                ok {"provider":"environment","variable":"ATLAS_SECRET_A"}
                ! `spec.variable` starts with ATLAS_SECRET_ and has no blanks
                ok {"member":"K","path":"a/b.yaml","provider":"file"}
                ! `spec.path` is a path in the directory of secrets of the workers
                ! `spec.path` is a path in the directory of secrets of the workers
                ! `spec.member` has 1 to 255 bytes
                ! `spec.readers` has at most 64 names of agents
                ! `spec.readers` has at most 64 names of agents
                ! `spec.versions` has at most 3 items, the newest last
            "#]],
        );
    }

    #[test]
    fn readers_are_agents_by_name() {
        let spec = |text: &str| SecretSpec::read(text.as_bytes()).expect("a spec");
        assert!(spec("{}").permits("a"));
        assert!(!spec(r#"{"readers":[]}"#).permits("a"));
        assert!(spec(r#"{"readers":["a"]}"#).permits("a") && !spec(r#"{"readers":["a"]}"#).permits("b"));
    }

    #[test]
    fn the_golden_document_reads_as_ever_and_shows_no_sealed_bytes() {
        let golden = include_bytes!("../golden/secret.json");
        let spec = SecretSpec::read(golden).expect("a spec");
        assert_eq!((spec.versions[0].version, spec.versions[0].sealed.as_str()), (1, "c2VhbGVk"));
        let mut shown: Value = serde_json::from_slice(golden).expect("JSON");
        SecretKind.shown(&mut shown);
        assert_eq!(shown["versions"], json!([{"created": 1_700_000_000, "key": "0123456789abcdef", "version": 1}]));
    }
}
