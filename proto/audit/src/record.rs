//! One record.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Most bytes of each text of a record. What is longer is cut.
const TEXT_BYTES_MAX: usize = 512;

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The change was permitted and is being made. If it comes to nothing, a record `failed` follows.
    Allow,
    /// A change that was permitted came to nothing.
    Failed,
    /// It was denied, and nothing changed.
    Deny,
    /// Denials that were not recorded one by one, because there were too many.
    Dropped,
}

impl Decision {
    /// All decisions.
    pub const ALL: [Self; 4] = [Self::Allow, Self::Failed, Self::Deny, Self::Dropped];

    /// The decision with this word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.as_str() == word)
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Failed => "failed",
            Self::Deny => "deny",
            Self::Dropped => "dropped",
        }
    }
}

/// Who did what, or was denied it. Members that do not apply are empty and left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    pub principal: String,
    /// The job on whose behalf the principal acts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub on_behalf_of: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The interface: `http`, `mcp`, `worker`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub door: String,
    /// The operation, such as `submitJob`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verb: String,
    /// What it is done to, such as `agent/mail`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub object: String,
    pub decision: Decision,
    /// The error code of a denial or a failure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// The caller's idempotency key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// How many were dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Record {
    /// Cuts texts that are too long: a denial must not cost more than its place.
    pub fn cut(&self) -> Cow<'_, Self> {
        let Self { principal, on_behalf_of, namespace, door, verb, object, code, request_id, .. } = self;
        let texts = [principal, on_behalf_of, namespace, door, verb, object, code, request_id];
        if texts.into_iter().all(|text| text.len() <= TEXT_BYTES_MAX) {
            return Cow::Borrowed(self);
        }
        let mut record = self.clone();
        let Self { principal, on_behalf_of, namespace, door, verb, object, code, request_id, .. } = &mut record;
        for text in [principal, on_behalf_of, namespace, door, verb, object, code, request_id] {
            if text.len() > TEXT_BYTES_MAX {
                let end = (0..=TEXT_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
                text.truncate(end);
            }
        }
        Cow::Owned(record)
    }
}
