//! The vault file of Loki: a YAML map of names to envelopes, each sealed with a password.
//!
//! An envelope is `$VAULT;v1;argon2id;m=KIB,t=PASSES,p=LANES;salt=BASE64;nonce=BASE64;ct=BASE64`. Argon2id makes the key, and
//! XChaCha20-Poly1305 opens the value with `$VAULT;v1` as associated data. Nothing tells a wrong password from damage.

use std::collections::BTreeMap;

use argon2::{Algorithm, Argon2, Params, Version};
use atlas_contract::yaml;
use atlas_types::SECRET_BYTES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use serde_json::Value;
use zeroize::Zeroizing;

const HEADER: &str = "$VAULT";
const VERSION: &str = "v1";
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
/// What the cipher adds to a value.
const TAG_BYTES: usize = 16;
const SALT_BYTES_MAX: usize = 64;
/// Bounds on the work that a file can ask for.
const MEMORY_KIB_MAX: u32 = 1 << 20;
const PASSES_MAX: u32 = 64;
const LANES_MAX: u32 = 16;
/// The most secrets of a vault.
const SECRETS_MAX: usize = 1000;

/// Why a vault cannot be read. No text shows a value or a part of the password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VaultError {
    #[error("the file is not YAML")]
    NotYaml,
    #[error("the file is not a vault: a vault is a map of names and envelopes")]
    NotAMap,
    #[error("the vault has {0} secrets, more than {SECRETS_MAX}")]
    TooMany(usize),
    #[error("\"{name}\" is not an envelope: {error}")]
    Envelope { name: String, error: EnvelopeError },
}

/// Why an envelope cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvelopeError {
    #[error("it does not begin with {HEADER};")]
    Header,
    #[error("its version is not {VERSION}")]
    Version,
    #[error("it does not consist of seven parts")]
    Parts,
    #[error("its key derivation is not argon2id")]
    Kdf,
    #[error("its parameters are not m, t and p within m={MEMORY_KIB_MAX}, t={PASSES_MAX}, p={LANES_MAX}")]
    Parameters,
    #[error("its part {0} is missing, is not base64 or has a wrong length")]
    Part(&'static str),
    #[error("the password is wrong, or the envelope is damaged")]
    Sealed,
    #[error("the value is not a text of at most {SECRET_BYTES_MAX} bytes")]
    Value,
}

/// A sealed value with everything but the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Envelope {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: Vec<u8>,
    nonce: [u8; NONCE_BYTES],
    sealed: Vec<u8>,
}

/// The envelopes of a vault file by name. An empty file is an empty vault.
pub(crate) fn read(text: &[u8]) -> Result<BTreeMap<String, Envelope>, VaultError> {
    let members = match yaml::load(text, yaml::Budget::default()).map_err(|_| VaultError::NotYaml)? {
        Value::Object(members) => members,
        Value::Null => return Ok(BTreeMap::new()),
        _ => return Err(VaultError::NotAMap),
    };
    if members.len() > SECRETS_MAX {
        return Err(VaultError::TooMany(members.len()));
    }
    let envelope = |(name, value): (&String, &Value)| match Envelope::read(value.as_str().unwrap_or_default()) {
        Ok(envelope) => Ok((name.clone(), envelope)),
        Err(error) => Err(VaultError::Envelope { name: name.clone(), error }),
    };
    members.iter().map(envelope).collect()
}

impl Envelope {
    fn read(text: &str) -> Result<Self, EnvelopeError> {
        let text = text.trim().strip_prefix(HEADER).and_then(|rest| rest.strip_prefix(';'));
        let parts: Vec<&str> = text.ok_or(EnvelopeError::Header)?.split(';').collect();
        if parts.first() != Some(&VERSION) {
            return Err(EnvelopeError::Version);
        }
        let [_, kdf, parameters, salt, nonce, sealed] = parts[..] else { return Err(EnvelopeError::Parts) };
        if kdf != "argon2id" {
            return Err(EnvelopeError::Kdf);
        }
        let (memory_kib, passes, lanes) = self::parameters(parameters).ok_or(EnvelopeError::Parameters)?;
        let salt = part("salt", salt, argon2::MIN_SALT_LEN..=SALT_BYTES_MAX)?;
        let nonce = part("nonce", nonce, NONCE_BYTES..=NONCE_BYTES)?;
        let nonce = nonce.try_into().map_err(|_| EnvelopeError::Part("nonce"))?;
        let sealed = part("ct", sealed, TAG_BYTES..=SECRET_BYTES_MAX + TAG_BYTES)?;
        Ok(Self { memory_kib, passes, lanes, salt, nonce, sealed })
    }

    /// The value.
    pub(crate) fn open(&self, password: &str) -> Result<Zeroizing<String>, EnvelopeError> {
        let parameters = Params::new(self.memory_kib, self.passes, self.lanes, Some(KEY_BYTES));
        let argon =
            Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters.map_err(|_| EnvelopeError::Parameters)?);
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        let derived = argon.hash_password_into(password.as_bytes(), &self.salt, &mut *key);
        derived.map_err(|_| EnvelopeError::Parameters)?;
        let cipher = XChaCha20Poly1305::new_from_slice(&*key).map_err(|_| EnvelopeError::Sealed)?;
        let bound = format!("{HEADER};{VERSION}");
        let payload = Payload { msg: &self.sealed, aad: bound.as_bytes() };
        let opened = cipher.decrypt(XNonce::from_slice(&self.nonce), payload).map_err(|_| EnvelopeError::Sealed)?;
        let opened = Zeroizing::new(opened);
        let text = std::str::from_utf8(&opened).map_err(|_| EnvelopeError::Value)?;
        Ok(Zeroizing::new(text.to_owned()))
    }
}

/// `m=KIB,t=PASSES,p=LANES` in any order.
fn parameters(text: &str) -> Option<(u32, u32, u32)> {
    let (mut memory, mut passes, mut lanes) = (None, None, None);
    for pair in text.split(',') {
        let (name, number) = pair.split_once('=')?;
        let place = match name {
            "m" => &mut memory,
            "t" => &mut passes,
            "p" => &mut lanes,
            _ => return None,
        };
        if place.replace(number.parse::<u32>().ok()?).is_some() {
            return None;
        }
    }
    let (memory, passes, lanes) = (memory?, passes?, lanes?);
    let is_bounded = memory <= MEMORY_KIB_MAX && (1..=PASSES_MAX).contains(&passes) && (1..=LANES_MAX).contains(&lanes);
    (is_bounded && Params::new(memory, passes, lanes, Some(KEY_BYTES)).is_ok()).then_some((memory, passes, lanes))
}

/// `NAME=BASE64`, with a length in bytes.
fn part(name: &'static str, text: &str, length: std::ops::RangeInclusive<usize>) -> Result<Vec<u8>, EnvelopeError> {
    let bytes = text.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
    let bytes = bytes.and_then(|text| STANDARD.decode(text).ok());
    bytes.filter(|bytes| length.contains(&bytes.len())).ok_or(EnvelopeError::Part(name))
}

#[cfg(test)]
mod tests;
