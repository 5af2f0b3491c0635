//! Issuers of OpenID Connect: whose tokens let people and programs in, and what they are granted.

use std::collections::BTreeMap;

use atlas_types::{Level, ObjectKey, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::attributes::{attributes_schema, check_attributes};
use crate::binding::{GrantSpec, check_grants, grants_schema, references_of};
use crate::kind::{Kind, Reference, Refusal, Scope, read};

/// Most bytes of an address.
const URL_BYTES_MAX: usize = 512;
/// Most bytes of the name of a claim, of a value, and of an audience.
const TEXT_BYTES_MAX: usize = 256;
/// Most audiences, claims that are asked for, and values of one.
const ITEMS_MAX: usize = 16;
/// Most bytes of the name of an issuer, which is part of the names of principals.
const NAME_BYTES_MAX: usize = 63;

/// The document of an issuer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuerSpec {
    /// Its address, which is the claim `iss` of its tokens.
    pub url: String,
    /// A token is for one of them.
    pub audiences: Vec<String>,
    /// The claim that names who shows a token.
    #[serde(default = "subject")]
    pub principal_claim: String,
    /// Claims that a token has, each with one of these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<String, Vec<String>>,
    /// The public client of `atlasctl login` at the issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_client: Option<String>,
    /// What all principals of this issuer are granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<GrantSpec>,
    /// What is known of all principals of this issuer, such as their team.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Vec<String>>,
}

fn subject() -> String {
    "sub".to_owned()
}

impl IssuerSpec {
    /// Reads the spec of an issuer.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }
}

pub(crate) struct IssuerKind;

impl Kind for IssuerKind {
    fn name(&self) -> &'static str {
        "issuer"
    }

    fn about(&self) -> &'static str {
        "An issuer of OpenID Connect whose tokens are accepted. The principal of one is NAME:CLAIM."
    }

    fn scope(&self) -> Scope {
        Scope::Cluster
    }

    fn level(&self) -> Level {
        level::ISSUERS
    }

    fn right(&self) -> &'static str {
        "access.manage"
    }

    fn schema(&self) -> Value {
        let texts = |least: usize, description: &str| {
            let text = json!({ "type": "string", "minLength": 1, "maxLength": TEXT_BYTES_MAX });
            json!({ "type": "array", "minItems": least, "maxItems": ITEMS_MAX, "items": text, "description": description })
        };
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["url", "audiences"],
            "properties": {
                "url": {
                    "type": "string", "minLength": 1, "maxLength": URL_BYTES_MAX,
                    "description": "The address of the issuer as its tokens name it, with https://; http:// only on this machine."
                },
                "audiences": texts(1, "A token is for one of them, usually the id of this cluster at the issuer."),
                "principal_claim": {
                    "type": "string", "minLength": 1, "maxLength": TEXT_BYTES_MAX,
                    "description": "The claim that names who shows a token, such as `email`; `sub` by default. Nobody but the issuer may be able to choose its value."
                },
                "claims": {
                    "type": "object", "maxProperties": ITEMS_MAX, "additionalProperties": texts(1, "The values."),
                    "description": "Claims that a token must have, each with one of the values, such as `groups: [ops]`."
                },
                "login_client": {
                    "type": "string", "minLength": 1, "maxLength": TEXT_BYTES_MAX,
                    "description": "The id of the client, without a secret, by which `atlasctl login` logs people in at the issuer. Everybody can read it."
                },
                "grants": grants_schema("What everybody with a token of this issuer is granted, beside the binding of the principal."),
                "attributes": attributes_schema("What is known of everybody with a token of this issuer, beside the binding of the principal, such as `team: [people]`.")
            }
        })
    }

    fn admit(&self, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        let name = key.name.as_str();
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !plain || name.len() > NAME_BYTES_MAX {
            let text = format!("has characters other than letters, digits and hyphens, or more than {NAME_BYTES_MAX}");
            return Err(Refusal::new("metadata.name", text));
        }
        let spec = IssuerSpec::read(spec)?;
        check_url(&spec.url).map_err(|why| Refusal::new("spec.url", why))?;
        let fits = |texts: &[String]| {
            let count = (1..=ITEMS_MAX).contains(&texts.len());
            count && texts.iter().all(|text| (1..=TEXT_BYTES_MAX).contains(&text.len()))
        };
        let many =
            |field| Refusal::new(field, format!("has no text, too many, or one of more than {TEXT_BYTES_MAX} bytes"));
        if !fits(&spec.audiences) {
            return Err(many("spec.audiences"));
        }
        if !fits(std::slice::from_ref(&spec.principal_claim)) {
            return Err(many("spec.principal_claim"));
        }
        if !spec.login_client.as_ref().is_none_or(|client| fits(std::slice::from_ref(client))) {
            return Err(many("spec.login_client"));
        }
        let claims = || spec.claims.iter().all(|(claim, values)| fits(values) && claim.len() <= TEXT_BYTES_MAX);
        if spec.claims.len() > ITEMS_MAX || !claims() {
            return Err(many("spec.claims"));
        }
        check_attributes(&spec.attributes)?;
        check_grants(&spec.grants)
    }

    fn references(&self, _: &ObjectKey, spec: &[u8]) -> Vec<Reference> {
        IssuerSpec::read(spec).map(|spec| references_of(&spec.grants)).unwrap_or_default()
    }
}

/// Keys come from this address, so nobody between may change them.
fn check_url(url: &str) -> Result<(), String> {
    if url.len() > URL_BYTES_MAX {
        return Err(format!("has more than {URL_BYTES_MAX} bytes"));
    }
    let plain = url.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'@' | b'\\'));
    if !plain {
        return Err("is no address without user, query and fragment".to_owned());
    }
    if let Some(rest) = url.strip_prefix("https://") {
        return if rest.is_empty() || rest.starts_with('/') { Err("has no host".to_owned()) } else { Ok(()) };
    }
    let local = url.strip_prefix("http://").is_some_and(|rest| {
        let host = rest.split('/').next().unwrap_or_default();
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        matches!(host, "127.0.0.1" | "[::1]" | "localhost")
    });
    if local { Ok(()) } else { Err("does not begin with https://, and is not on this machine".to_owned()) }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::{check, key};

    #[test]
    fn documents() {
        let with = |url: &str| format!(r#"{{"audiences":["atlas"],"url":"{url}"}}"#);
        check(
            "issuer",
            &[
                r#"{"audiences":["atlas"],"claims":{"groups":["ops"]},"grants":[{"role":"viewer"}],"principal_claim":"email","url":"https://id.example/realms/x"}"#,
                &with("http://127.0.0.1:9000"),
                &with("http://[::1]:9000/x"),
                &with("http://id.example"),
                &with("http://127.0.0.1.example"),
                &with("http://localhost@id.example"),
                &with("https://"),
                &with("ftp://id.example"),
                r#"{"audiences":[],"url":"https://id.example"}"#,
                r#"{"audiences":["a"],"login_client":"","url":"https://id.example"}"#,
                r#"{"audiences":["a"],"principal_claim":"","url":"https://id.example"}"#,
                r#"{"audiences":["a"],"claims":{"groups":[]},"url":"https://id.example"}"#,
                r#"{"audiences":["a"],"grants":[{"role":""}],"url":"https://id.example"}"#,
                r#"{"url":"https://id.example"}"#,
            ],
            &expect![[r#"
                ok {"audiences":["atlas"],"claims":{"groups":["ops"]},"grants":[{"role":"viewer"}],"principal_claim":"email","url":"https://id.example/realms/x"}
                ok {"audiences":["atlas"],"url":"http://127.0.0.1:9000"}
                ok {"audiences":["atlas"],"url":"http://[::1]:9000/x"}
                ! `spec.url` does not begin with https://, and is not on this machine
                ! `spec.url` does not begin with https://, and is not on this machine
                ! `spec.url` is no address without user, query and fragment
                ! `spec.url` has no host
                ! `spec.url` does not begin with https://, and is not on this machine
                ! `spec.audiences` has no text, too many, or one of more than 256 bytes
                ! `spec.login_client` has no text, too many, or one of more than 256 bytes
                ! `spec.principal_claim` has no text, too many, or one of more than 256 bytes
                ! `spec.claims` has no text, too many, or one of more than 256 bytes
                ! `spec.grants` is refused: an object name has 1 to 253 bytes, this one has 0
                ! `spec` cannot be read: missing field `audiences` at line 1 column 28
            "#]],
        );
    }

    #[test]
    fn names_are_parts_of_names_of_principals() {
        let spec = br#"{"audiences":["atlas"],"url":"https://id.example"}"#;
        for (name, fits) in [("corp", true), ("a:b", false), ("a.b", false), (&"x".repeat(64), false)] {
            assert_eq!(IssuerKind.admit(&key("issuer", name), spec).is_ok(), fits, "{name}");
        }
    }

    #[test]
    fn the_golden_document_reads_as_ever() {
        let spec = IssuerSpec::read(include_bytes!("../golden/issuer.json")).expect("a spec");
        let expected = IssuerSpec {
            url: "https://id.example/realms/ops".to_owned(),
            audiences: vec!["atlas".to_owned()],
            principal_claim: "email".to_owned(),
            claims: [("groups".to_owned(), vec!["ops".to_owned()])].into(),
            login_client: Some("atlasctl".to_owned()),
            grants: vec![GrantSpec { namespace: None, role: "viewer".to_owned() }],
            attributes: BTreeMap::new(),
        };
        assert_eq!(spec, expected);
    }
}
