//! The parts of the document of a base.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::is_zero;

/// Documents in one artifact.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BaseSegment {
    /// The artifact.
    pub digest: String,
    pub documents: u64,
    /// Its size.
    pub bytes: u64,
}

/// A rule on who finds which documents: a document is found by whom any rule with it names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadRule {
    /// Names of principals, in which `*` is any text. None for everyone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub principals: Vec<String>,
    /// Documents whose sources begin with it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Documents with these members in their metadata. The text `caller.NAME` stands for what is known of the caller under that name.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// The vectors of the chunks of a base, by the digests of their texts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BaseVectors {
    /// The name of the model that they were asked of; empty if that is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub embedding: String,
    /// The revision of the base from which on all of them were to be made anew; 0 if nobody asked for that. Answers for an older one do not count.
    #[serde(skip_serializing_if = "is_zero")]
    pub anew_at: u64,
    /// What is known of the model that made them. Vectors of another one do not fit.
    pub model: String,
    /// Numbers of a vector.
    pub dimension: u64,
    /// What the figures below are about: a digest of the documents and settings.
    pub of: String,
    /// Chunks of the base.
    pub chunks: u64,
    /// Chunks without a vector.
    pub missing: u64,
    /// Why there are no more of them; empty if nothing failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<VectorSegment>,
}

impl BaseVectors {
    /// What remains of them when the model is to make all: no vector.
    pub fn emptied(&self) -> Self {
        Self { anew_at: self.anew_at, ..Self::default() }
    }
}

/// Vectors in one artifact.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct VectorSegment {
    /// The artifact.
    pub digest: String,
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
}

/// How the sources of a base were last read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BaseCollection {
    /// When it ended, Unix time in seconds.
    pub at: i64,
    /// The job that read them.
    pub job: String,
    /// Documents that they have.
    pub documents: u64,
    /// Why some are missing, the first few; empty if nothing failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// A digest of the sources that were read: others are read at once.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub of: String,
    /// How often in a row no job got to its end.
    #[serde(skip_serializing_if = "is_zero")]
    pub failures: u64,
}
