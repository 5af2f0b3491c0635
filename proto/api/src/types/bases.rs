//! Document bases: documents that the cluster keeps, and that people and agents search.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A document base.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct Base {
    /// Unique in its namespace.
    pub name: String,
    /// What the documents are about.
    pub description: String,
    /// Most bytes of a chunk.
    #[schemars(range(min = 0))]
    pub chunk_size: u64,
    /// How much of the chunk before a chunk repeats, in percent of its size.
    #[schemars(range(min = 0))]
    pub chunk_overlap: u64,
    /// Chunks that a search finds if it does not say how many.
    #[schemars(range(min = 0))]
    pub top_k: u64,
    /// The model that makes vectors of its chunks; null if they are found by words alone.
    pub embedding: Option<String>,
    /// The model that ranks what was found; null without one.
    pub reranker: Option<String>,
    /// What the cluster fills it from, besides what is added.
    pub sources: Vec<String>,
    /// How often the sources are read again, in minutes; 0 is only when somebody asks for it.
    #[schemars(range(min = 0))]
    pub refresh_minutes: u64,
    /// Who finds which documents; all find all if it is empty.
    pub readers: Vec<DocumentReaders>,
    /// The vectors; null without a model for them.
    pub vectors: Option<BaseVectors>,
    /// How the sources were last read; null before the first time.
    pub collected: Option<BaseCollection>,
    /// Documents in it.
    #[schemars(range(min = 0))]
    pub documents: u64,
    /// Size of its segments.
    #[schemars(range(min = 0))]
    pub bytes: u64,
    /// Artifacts that hold its documents.
    #[schemars(range(min = 0))]
    pub segments: u64,
    /// The principal that changed it last.
    pub author: String,
    /// When it was changed, Unix time in seconds.
    pub updated_at: i64,
}

/// A rule on who finds which documents: a document is found by whom any rule with it names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DocumentReaders {
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

/// The vectors of the chunks of a base.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct BaseVectors {
    /// `ready` if each chunk has one, `building`, or `failed`.
    pub state: String,
    /// Chunks of the base, when they were last counted.
    #[schemars(range(min = 0))]
    pub chunks: u64,
    /// Chunks of them that have no vector yet. They are found by words alone.
    #[schemars(range(min = 0))]
    pub missing: u64,
    /// Numbers of a vector; 0 before the first one is made.
    #[schemars(range(min = 0))]
    pub dimension: u64,
    /// Why there are no more of them; null if nothing failed. It is tried again.
    pub error: Option<String>,
}

/// The job that reads the sources of a base.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct BaseCollecting {
    /// The job. Its output says what was added, replaced and removed.
    pub job: String,
}

/// How the sources of a base were last read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct BaseCollection {
    /// When it ended, Unix time in seconds.
    pub at: i64,
    /// The job that read them.
    pub job: String,
    /// Documents that they have.
    #[schemars(range(min = 0))]
    pub documents: u64,
    /// Why some are missing, the first few.
    pub errors: Vec<String>,
}

/// A base that is to be made. What is not named has its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaseDraft {
    pub name: String,
    /// What the documents are about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Most bytes of a chunk, 64 to 65536; 2000 if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub chunk_size: Option<u64>,
    /// How much of the chunk before a chunk repeats, 0 to 50 percent of its size; 5 if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub chunk_overlap: Option<u64>,
    /// Chunks that a search finds if it does not say how many, 1 to 100; 5 if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub top_k: Option<u64>,
    /// The model that makes vectors of chunks; by words alone without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding: Option<String>,
    /// The model that ranks what was found; none without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reranker: Option<String>,
    /// Pages, websites and repositories that the cluster fills the base from, up to 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<String>>,
    /// How often the sources are read again, in minutes, at least 5; 0 is only when somebody asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub refresh_minutes: Option<u64>,
    /// Who finds which documents, up to 64 rules; all find all without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readers: Option<Vec<DocumentReaders>>,
}

/// What changes of a base; what is not named stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaseChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub chunk_size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub chunk_overlap: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub top_k: Option<u64>,
    /// The model that makes vectors of chunks, empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding: Option<String>,
    /// The model that ranks what was found, empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reranker: Option<String>,
    /// Pages, websites and repositories that the cluster fills the base from, up to 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<String>>,
    /// How often the sources are read again, in minutes, at least 5; 0 is only when somebody asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub refresh_minutes: Option<u64>,
    /// Who finds which documents, up to 64 rules; all find all without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readers: Option<Vec<DocumentReaders>>,
}

/// A document that is to be added.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentDraft {
    /// Its name in the base, such as the path of its file. The document of the same source is replaced.
    pub source: String,
    /// Up to 4 MiB.
    pub text: String,
    /// Searches can ask for members of it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Documents that are to be added.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentDrafts {
    /// Up to 1000.
    pub documents: Vec<DocumentDraft>,
}

/// What happened to a document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct AddedDocument {
    pub source: String,
    /// `added`, `replaced`, `unchanged` or `refused`.
    pub status: String,
    /// What it is known by; null if it was refused.
    pub id: Option<String>,
    /// Why it was refused; null if it was not.
    pub reason: Option<String>,
}

/// What happened to documents, in the order of the request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct AddedDocuments {
    pub documents: Vec<AddedDocument>,
}

/// A document of a base.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct BaseDocument {
    /// What it is known by: the same source, metadata and text have the same id.
    pub id: String,
    pub source: String,
    /// Size of its text.
    #[schemars(range(min = 0))]
    pub bytes: u64,
    pub metadata: Map<String, Value>,
    /// Null if it was not asked for.
    pub text: Option<String>,
}

/// A page of the documents of a base.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct DocumentPage {
    pub documents: Vec<BaseDocument>,
    /// The source after which the next page begins; null on the last one.
    pub next: Option<String>,
    /// What the page lacks.
    pub unreadable: Vec<UnreadableSegment>,
}

/// Documents that no controller can read. They are missing in an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct UnreadableSegment {
    /// The digest of the artifact.
    pub segment: String,
    /// How many documents it had; 0 for a caller that may not read all of the base.
    #[schemars(range(min = 0))]
    pub documents: u64,
    pub reason: String,
}

/// How many documents were removed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct RemovedDocuments {
    #[schemars(range(min = 0))]
    pub removed: u64,
}

/// How a base is written anew.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaseRebuild {
    /// Whether documents that no controller can read are left out; otherwise they are an error.
    #[serde(default)]
    pub drop_unreadable: bool,
    /// Whether all vectors are made anew, for example because the model is another one.
    #[serde(default)]
    pub vectors: bool,
}

/// A base that was written anew.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct RebuiltBase {
    /// Documents in it.
    #[schemars(range(min = 0))]
    pub documents: u64,
    #[schemars(range(min = 0))]
    pub segments: u64,
    /// Documents that could not be read, and are no longer in it.
    #[schemars(range(min = 0))]
    pub lost: u64,
}

/// A question to a base.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentQuery {
    /// Without a model for vectors, chunks that share no word with it are not found.
    pub query: String,
    /// Most chunks, 1 to 100; as the base says if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub top_k: Option<u64>,
    /// Only documents whose sources begin with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Only documents whose metadata have these members with these values.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Whether the answer says why each chunk came.
    #[serde(default)]
    pub explain: bool,
    /// Whether words alone count, so that no model is asked.
    #[serde(default)]
    pub words_only: bool,
    /// Whether the model that ranks what was found is not asked.
    #[serde(default)]
    pub unranked: bool,
}

/// A chunk that fits a question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct DocumentHit {
    pub source: String,
    pub text: String,
    /// More is better. It compares the hits of one answer.
    pub score: f64,
    /// The id of the document.
    pub document: String,
    /// Which chunk of the document it is, from 1.
    #[schemars(range(min = 0))]
    pub chunk: u64,
    /// How many chunks the document has.
    #[schemars(range(min = 0))]
    pub chunks: u64,
    pub metadata: Map<String, Value>,
    /// Its place by the words of the question; null if it has none, or if the question did not ask to explain.
    pub by_words: Option<HitRank>,
    /// Its place by its vector, likewise. The score is the cosine.
    pub by_vector: Option<HitRank>,
    /// Its place by the model that ranks, likewise.
    pub by_model: Option<HitRank>,
}

/// The place of a chunk in an order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct HitRank {
    /// From 1.
    #[schemars(range(min = 0))]
    pub place: u64,
    pub score: f64,
}

/// The chunks that fit a question, the best first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct FoundDocuments {
    pub base: String,
    pub hits: Vec<DocumentHit>,
    /// Documents that were searched.
    #[schemars(range(min = 0))]
    pub documents: u64,
    /// Chunks that were searched.
    #[schemars(range(min = 0))]
    pub chunks: u64,
    /// Chunks of them without a vector, which are found by words alone; 0 if words alone count.
    #[schemars(range(min = 0))]
    pub without_vector: u64,
    /// What could not be searched.
    pub unreadable: Vec<UnreadableSegment>,
}
