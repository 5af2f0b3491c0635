//! Who may do what, and who did what.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::objects::Object;

/// Records of the audit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AuditPage {
    /// the records, by time
    pub records: Vec<AuditRecord>,
    /// where the next page begins, with a position for each controller
    pub cursor: String,
    /// whether there is a next page
    pub more: bool,
    /// the controllers that answered
    pub members: Vec<AuditMember>,
    /// the controllers that did not answer: their records are not here, and the next page with this cursor has them once they answer
    pub missing: Vec<MissingMember>,
}

/// One record of the audit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct AuditRecord {
    /// the controller that has it
    pub member: String,
    /// the record as it is written: JSON with `number`, `controller`, `previous`, `at_ms`, `principal`, `decision` (`allow`, `failed`, `deny`,
    /// `dropped`) and, where there is something to say, `on_behalf_of`, `namespace`, `door`, `verb`, `object`, `code`, `request_id`, `count`; and as
    /// the last member the SHA-256 of the record without it, `hash`
    pub line: String,
}

/// A controller that answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct AuditMember {
    /// the controller
    pub member: String,
    /// the number of its newest record
    pub end: u64,
}

/// A controller that did not answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct MissingMember {
    /// the controller
    pub member: String,
    /// why
    pub reason: String,
}

/// Who sends the request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Whoami {
    /// the principal
    pub principal: String,
    /// `false` while authentication is off: everybody may do everything
    pub authenticated: bool,
    /// what it is granted
    pub grants: Vec<Grant>,
    /// what else is known of it: texts by the names of attributes, which rules of document bases compare
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Vec<String>>,
}

/// What a principal is granted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Grant {
    /// where; absent for the whole cluster
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// the rights
    pub rights: Vec<String>,
}

/// Request for a token.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessTokenRequest {
    /// letters, digits and hyphens
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// who shows it; defaults to the name
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub principal: Option<String>,
    /// what it is for
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_024))]
    pub description: Option<String>,
    /// validity in seconds; null for ever; defaults to 7776000, 90 days
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 316_224_000))]
    pub valid_for_s: Option<u64>,
}

/// A new token.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AccessToken {
    /// its text, which is shown this once
    pub token: String,
    pub object: Object,
}
