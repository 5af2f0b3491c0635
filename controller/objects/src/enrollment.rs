//! Enrollments: which nodes belong to the cluster, and by which key each is recognised ([ADR 41](../../../docs/adr/0041-tls.md)).

use atlas_types::{Level, NodeId, ObjectKey, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, Scope, read};

/// Hexadecimal digits of a SHA-256.
const HASH_DIGITS: usize = 64;

/// The document of an enrollment. Its name is that of the node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EnrollmentSpec {
    /// The SHA-256 of the node's public key, in hexadecimal digits; none before it joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_sha256: Option<String>,
    /// The SHA-256 of the latest join token, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_sha256: Option<String>,
    /// When that token expires, in milliseconds since 1970; none once it was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_expires_ms: Option<u64>,
}

impl EnrollmentSpec {
    /// Reads the spec of an enrollment.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }
}

pub(crate) struct EnrollmentKind;

impl Kind for EnrollmentKind {
    fn name(&self) -> &'static str {
        "enrollment"
    }

    fn about(&self) -> &'static str {
        "A node that belongs to a cluster with TLS; `atlasctl node token` makes one, and deleting it revokes the node's certificate."
    }

    fn scope(&self) -> Scope {
        Scope::Cluster
    }

    fn level(&self) -> Level {
        level::ENROLLMENTS
    }

    fn right(&self) -> &'static str {
        "cluster.operate"
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "key_sha256": { "type": "string", "description": "Written by the cluster: the hash of the node's key." },
                "token_sha256": {
                    "type": "string", "description": "Written by the cluster: the hash of the join token; never shown."
                },
                "token_expires_ms": {
                    "type": "integer", "minimum": 0,
                    "description": "Written by the cluster: when the join token expires; none once it was used."
                }
            }
        })
    }

    fn admit(&self, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        let spec = EnrollmentSpec::read(spec)?;
        NodeId::new(key.name.as_str())
            .map_err(|error| Refusal::new("metadata.name", format!("is no name of a node: {error}")))?;
        let is_hash = |text: &String| text.len() == HASH_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let hashes = [("spec.key_sha256", &spec.key_sha256), ("spec.token_sha256", &spec.token_sha256)];
        for (field, hash) in hashes {
            if hash.as_ref().is_some_and(|hash| !is_hash(hash)) {
                return Err(Refusal::new(field, "is no SHA-256"));
            }
        }
        if spec.token_sha256.is_none() {
            return Err(Refusal::new("spec.token_sha256", "is missing: only the cluster makes join tokens"));
        }
        Ok(())
    }

    fn kept(&self) -> &'static [&'static str] {
        &["key_sha256", "token_sha256", "token_expires_ms"]
    }

    fn shown(&self, spec: &mut Value) {
        if let Some(members) = spec.as_object_mut() {
            members.shift_remove("token_sha256");
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
        let hash = "0".repeat(64);
        check(
            "enrollment",
            &[
                &format!(r#"{{"token_expires_ms":5,"token_sha256":"{hash}"}}"#),
                &format!(r#"{{"key_sha256":"{hash}","token_sha256":"{hash}"}}"#),
                "{}",
                &format!(r#"{{"key_sha256":"00","token_sha256":"{hash}"}}"#),
                r#"{"token_sha256":5}"#,
            ],
            &expect![[r#"
                ok {"token_expires_ms":5,"token_sha256":"0000000000000000000000000000000000000000000000000000000000000000"}
                ok {"key_sha256":"0000000000000000000000000000000000000000000000000000000000000000","token_sha256":"0000000000000000000000000000000000000000000000000000000000000000"}
                ! `spec.token_sha256` is missing: only the cluster makes join tokens
                ! `spec.key_sha256` is no SHA-256
                ! `spec` cannot be read: invalid type: integer `5`, expected a string at line 1 column 17
            "#]],
        );
    }

    #[test]
    fn the_hash_of_the_token_is_never_shown() {
        let mut spec = json!({"key_sha256": "00", "token_sha256": "00"});
        EnrollmentKind.shown(&mut spec);
        assert_eq!(spec, json!({"key_sha256": "00"}));
    }

    #[test]
    fn the_golden_document_reads_as_ever() {
        let spec = EnrollmentSpec::read(include_bytes!("../golden/enrollment.json")).expect("a spec");
        let hash = || "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".to_owned();
        let expected = EnrollmentSpec {
            key_sha256: Some(hash()),
            token_sha256: Some(hash()),
            token_expires_ms: Some(1_800_000_000_000),
        };
        assert_eq!(spec, expected);
    }
}
