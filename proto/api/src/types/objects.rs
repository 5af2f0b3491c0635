//! Objects of configuration.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A kind of object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ObjectKind {
    /// its word
    pub kind: String,
    /// what its objects are for
    pub description: String,
    /// where its objects are; those of the cluster are in the namespace `default`
    #[schemars(extend("enum" = ["cluster", "namespace"]))]
    pub scope: String,
    /// the right that a change needs
    pub right: String,
    /// the version of its format
    pub spec_version: u64,
    /// JSON Schema of the spec
    #[schemars(with = "Map<String, Value>")]
    pub schema: Value,
}

/// What an object should be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectRequest {
    /// its labels; all of them, so a missing one is removed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, String>", extend("maxProperties" = 64))]
    pub labels: Option<BTreeMap<String, String>>,
    /// the document, as its kind describes it; fractions become text
    pub spec: Map<String, Value>,
}

/// The value of a secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretRequest {
    /// the value
    #[schemars(length(max = 16_384))]
    pub value: String,
    /// refuse to make a secret that does not exist
    #[serde(default)]
    pub rotate: bool,
}

/// An object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Object {
    /// its kind
    pub kind: String,
    /// name, namespace, labels, uid, revision, created_at, updated_at, updated_by
    pub metadata: ObjectMetadata,
    /// what its author wants
    #[schemars(with = "Map<String, Value>")]
    pub spec: Value,
    /// what the cluster says about it
    pub status: Option<Map<String, Value>>,
}

/// What the cluster knows about an object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct ObjectMetadata {
    pub name: String,
    pub namespace: String,
    pub labels: BTreeMap<String, String>,
    pub uid: u64,
    pub revision: u64,
    pub created_at: f64,
    pub updated_at: f64,
    pub updated_by: String,
}

/// A page of objects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Objects")]
pub struct ObjectPage {
    /// by name
    pub objects: Vec<Object>,
    /// `after` for the next page; null on the last one
    pub next: Option<String>,
}
