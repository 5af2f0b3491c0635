//! Keys: what a call was asked, as a hash. A driver that replays recorded answers compares keys, so that an answer to
//! another question is noticed.

use std::fmt;

use serde::Serialize;
use sha2::{Digest, Sha256};

/// The hash of what a call is asked: the settings, and all messages before it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The hash of what is asked.
    pub fn of(asked: &impl Serialize) -> Self {
        // What is asked always has a JSON form.
        let hash: [u8; 32] = Sha256::digest(serde_json::to_vec(asked).unwrap_or_default()).into();
        Self::beginning(&hash)
    }

    fn beginning(hash: &[u8; 32]) -> Self {
        let mut key = [0; 16];
        key.copy_from_slice(&hash[..16]);
        Self(key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The hash of everything so far. Each addition costs its own length only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chain([u8; 32]);

impl Chain {
    pub(crate) fn new(settings: &impl Serialize) -> Self {
        let mut chain = Self([0; 32]);
        chain.add(settings);
        chain
    }

    pub(crate) fn add(&mut self, content: &impl Serialize) {
        // Serialization fails only for maps without text keys, which no message has.
        let bytes = serde_json::to_vec(content).unwrap_or_default();
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update(bytes);
        self.0 = hasher.finalize().into();
    }

    /// The key of a call of some kind at this point.
    pub(crate) fn key(&self, kind: &str, content: &impl Serialize) -> Key {
        let mut chain = *self;
        chain.add(&(kind, content));
        Key::beginning(&chain.0)
    }
}
