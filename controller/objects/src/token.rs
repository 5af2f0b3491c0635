//! Tokens: by what a person or a program shows who it is. Only the hash of a token is stored.

use atlas_types::{Level, ObjectKey, Principal, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, Scope, read};

/// Hexadecimal digits of a SHA-256.
const HASH_DIGITS: usize = 64;
/// Most bytes of a description.
const DESCRIPTION_BYTES_MAX: usize = 1_024;

/// The document of a token.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TokenSpec {
    /// Who shows it.
    pub principal: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When it expires, in milliseconds since 1970; none for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// The SHA-256 of its secret part, in hexadecimal digits.
    #[serde(default)]
    pub sha256: String,
}

impl TokenSpec {
    /// Reads the spec of a token.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }
}

pub(crate) struct TokenKind;

impl Kind for TokenKind {
    fn name(&self) -> &'static str {
        "token"
    }

    fn about(&self) -> &'static str {
        "A token of a person or a program; `atlasctl auth token create` makes one, because only its hash is stored."
    }

    fn scope(&self) -> Scope {
        Scope::Cluster
    }

    fn level(&self) -> Level {
        level::ACCESS
    }

    fn right(&self) -> &'static str {
        "access.manage"
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["principal"],
            "properties": {
                "principal": {
                    "type": "string", "minLength": 1, "maxLength": 255,
                    "description": "Who shows the token; bindings say what this principal may do."
                },
                "description": {
                    "type": ["string", "null"], "maxLength": DESCRIPTION_BYTES_MAX, "description": "What the token is for."
                },
                "expires_ms": {
                    "type": ["integer", "null"], "minimum": 0,
                    "description": "When the token expires, in milliseconds since 1970; never by default."
                },
                "sha256": { "type": "string", "description": "Written by the cluster: the hash of the token; never shown." }
            }
        })
    }

    fn admit(&self, _: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        let spec = TokenSpec::read(spec)?;
        Principal::new(&spec.principal)
            .map_err(|error| Refusal::new("spec.principal", format!("is refused: {error}")))?;
        if spec.description.is_some_and(|text| text.len() > DESCRIPTION_BYTES_MAX) {
            return Err(Refusal::new("spec.description", format!("is longer than {DESCRIPTION_BYTES_MAX} bytes")));
        }
        let is_hash = spec.sha256.len() == HASH_DIGITS && spec.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash { Ok(()) } else { Err(Refusal::new("spec.sha256", "is missing: only the cluster makes tokens")) }
    }

    fn kept(&self) -> &'static [&'static str] {
        &["sha256"]
    }

    fn shown(&self, spec: &mut Value) {
        if let Some(members) = spec.as_object_mut() {
            members.shift_remove("sha256");
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
            "token",
            &[
                &format!(r#"{{"expires_ms":5,"principal":"ci","sha256":"{hash}"}}"#),
                r#"{"principal":"ci"}"#,
                r#"{"principal":"ci","sha256":"00"}"#,
                &format!(r#"{{"principal":"../x","sha256":"{hash}"}}"#),
                &format!(r#"{{"sha256":"{hash}"}}"#),
            ],
            &expect![[r#"
                ok {"expires_ms":5,"principal":"ci","sha256":"0000000000000000000000000000000000000000000000000000000000000000"}
                ! `spec.sha256` is missing: only the cluster makes tokens
                ! `spec.sha256` is missing: only the cluster makes tokens
                ! `spec.principal` is refused: a principal must not contain "/"
                ! `spec` cannot be read: missing field `principal` at line 1 column 77
            "#]],
        );
    }

    #[test]
    fn the_hash_is_never_shown() {
        let mut spec = json!({"principal": "ci", "sha256": "00"});
        TokenKind.shown(&mut spec);
        assert_eq!(spec, json!({"principal": "ci"}));
    }

    #[test]
    fn the_golden_document_reads_as_ever() {
        let spec = TokenSpec::read(include_bytes!("../golden/token.json")).expect("a spec");
        let expected = TokenSpec {
            principal: "ci".into(),
            description: Some("deploys".into()),
            expires_ms: Some(1_800_000_000_000),
            sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".into(),
        };
        assert_eq!(spec, expected);
    }
}
