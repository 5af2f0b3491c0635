//! What an issuer publishes: its metadata (OpenID Connect Discovery 1.0, section 4) and its keys (RFC 7517).

use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use serde::Deserialize;
use serde_json::Value;

/// Most keys of an issuer that are used.
const KEYS_MAX: usize = 64;

/// Why a document of an issuer is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is no JSON, or lacks a member.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It names another issuer than the one that was asked for.
    #[error("it is that of the issuer \"{0}\"")]
    OtherIssuer(String),
    /// Its keys would be read without encryption from another machine.
    #[error("its keys are at \"{0}\", which is not an https address")]
    OpenKeys(String),
    /// None of its keys can be used.
    #[error("it has no key for signatures")]
    NoKeys,
}

/// Where an issuer publishes its metadata.
pub fn metadata_address(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}

/// The address of an issuer's keys, from its metadata.
pub fn key_address(issuer: &str, metadata: &[u8]) -> Result<String, DocumentError> {
    #[derive(Deserialize)]
    struct Metadata {
        issuer: String,
        jwks_uri: String,
    }
    let metadata: Metadata =
        serde_json::from_slice(metadata).map_err(|error| DocumentError::Unreadable(error.to_string()))?;
    if metadata.issuer != issuer {
        return Err(DocumentError::OtherIssuer(metadata.issuer));
    }
    // An issuer on this machine may be without TLS, and then so are its keys.
    if issuer.starts_with("https://") && !metadata.jwks_uri.starts_with("https://") {
        return Err(DocumentError::OpenKeys(metadata.jwks_uri));
    }
    Ok(metadata.jwks_uri)
}

/// The keys with which an issuer signs.
pub struct Keys(Vec<Key>);

struct Key {
    id: Option<String>,
    key: DecodingKey,
}

impl Keys {
    /// Reads a set of keys. Those that cannot be used here, such as keys for encryption, are left out.
    pub fn read(document: &[u8]) -> Result<Self, DocumentError> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let set: Set =
            serde_json::from_slice(document).map_err(|error| DocumentError::Unreadable(error.to_string()))?;
        let keys: Vec<Key> = set.keys.into_iter().filter_map(usable).take(KEYS_MAX).collect();
        if keys.is_empty() { Err(DocumentError::NoKeys) } else { Ok(Self(keys)) }
    }

    /// The key of a token: the one of its id, or the only one. A key without an id is that of tokens without one.
    pub(crate) fn of(&self, id: Option<&str>) -> Option<&DecodingKey> {
        let found = match (id, &self.0[..]) {
            (None, [only]) => Some(only),
            (id, keys) => keys.iter().find(|key| key.id.as_deref() == id),
        };
        found.map(|found| &found.key)
    }
}

fn usable(value: Value) -> Option<Key> {
    let key: Jwk = serde_json::from_value(value).ok()?;
    if key.common.public_key_use.as_ref().is_some_and(|usage| *usage != PublicKeyUse::Signature) {
        return None;
    }
    let decoding = DecodingKey::from_jwk(&key).ok()?;
    Some(Key { id: key.common.key_id, key: decoding })
}
