//! Why a request was refused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a request was refused, in the form of Atlas for Python. The header `Atlas-Error-Code` contains the code.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Error {
    /// one line, for people
    pub error: String,
}

/// The same as a problem document (RFC 9457): for clients that accept `application/problem+json`, and always on paths that Atlas for Python does not
/// have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Problem {
    /// path of the code's page: `/errors/` and the code
    #[serde(rename = "type")]
    pub kind: String,
    /// the title of the code's page
    pub title: String,
    /// the HTTP status
    pub status: u64,
    /// `E` and four digits
    #[schemars(regex(pattern = r"^E[0-9]{4}$"))]
    pub code: String,
    /// one line, for people
    pub detail: String,
    /// violations of an input or a contract
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Violation>,
    /// what to try
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// seconds until a repeat may succeed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
}

/// One violation in an input or a contract.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Violation {
    /// location, a JSON pointer
    pub pointer: String,
    /// violated keyword of JSON Schema
    pub rule: String,
    /// description, possibly with a suggestion
    pub message: String,
}
