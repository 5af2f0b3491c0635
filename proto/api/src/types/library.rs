//! What agents know together: shared memory and knowledge entries (compatibility §22, §23).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A shared memory: one text for all who use its scope.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct Memory {
    /// Who shares it: `namespace`, `agent:NAME`, `user:NAME` or `conversation:ID`.
    pub scope: String,
    /// The whole text; empty if nothing was written.
    pub text: String,
    /// Size of the text.
    #[schemars(range(min = 0))]
    pub bytes: u64,
    /// Entries that the text consists of.
    #[schemars(range(min = 0))]
    pub entries: u64,
    /// When it was changed, Unix time in seconds; null if nothing was written.
    pub updated_at: Option<i64>,
}

/// One text that was appended to a memory, or that replaced it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct MemoryEntry {
    /// Unique in its memory.
    pub id: String,
    pub text: String,
    /// Whether it replaced all that was there before.
    pub replaces: bool,
    /// Whether a later one replaced it: it is history, and no part of the text.
    pub replaced: bool,
    /// Whether it is a summary, which stands for entries before it.
    pub summary: bool,
    /// The principal that wrote it.
    pub author: String,
    /// The agent that wrote it; null if it was a person or another program.
    pub agent: Option<String>,
    /// The job that wrote it; null if it was a person or another program.
    pub job: Option<String>,
    /// Unix time in seconds.
    pub written_at: i64,
}

/// What is written to a memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryChange {
    pub content: String,
    /// `append` adds a line, `write` replaces the text, and `compact` replaces the oldest entries by a summary of them.
    #[schemars(extend("enum" = ["append", "write", "compact"]))]
    pub action: String,
    /// Whose memory: `namespace` if it is empty, or `agent:NAME`, `user:NAME`, `conversation:ID`.
    #[serde(default)]
    pub scope: String,
    /// Only of a summary, which needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_of: Option<SummaryOf>,
}

/// For which entries a summary stands: the oldest ones of the text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SummaryOf {
    /// The id of the first one.
    pub first: String,
    /// The id of the last one.
    pub last: String,
    /// How many they are. If the memory was changed, so that the oldest entries are others, the summary is refused; entries that were
    /// appended stay behind it.
    #[schemars(range(min = 1))]
    pub entries: u64,
    /// The job that wrote the summary; null if it was a person or another program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

/// One piece of knowledge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct KnowledgeEntry {
    /// Unique in its namespace.
    pub id: String,
    pub content: String,
    pub domain: String,
    pub tags: Vec<String>,
    pub metadata: Map<String, Value>,
    /// In ISO 8601.
    pub created_at: String,
    /// In ISO 8601.
    pub updated_at: String,
    /// The principal that wrote it last.
    pub author: String,
    /// The agent that wrote it last; null if it was a person or another program.
    pub agent: Option<String>,
    /// The job that wrote it last; null if it was a person or another program.
    pub job: Option<String>,
}

/// A piece of knowledge that is to be stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnowledgeDraft {
    /// Made of the domain and a number if it is empty. An entry of this id is replaced.
    #[serde(default)]
    pub id: String,
    pub content: String,
    /// `general` if it is empty.
    #[serde(default)]
    pub domain: String,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// What changes of a piece of knowledge; what is not named stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnowledgeChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Replaces all metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// What agents may do with knowledge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct KnowledgeAcl {
    /// Domains that an agent writes only if its contract names them.
    pub protected_domains: Vec<String>,
    /// By name.
    pub agents: Vec<KnowledgeRights>,
}

/// What the contract of an agent says about knowledge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct KnowledgeRights {
    pub agent: String,
    /// The version that jobs get which name none.
    pub version: String,
    /// Whether it requires knowledge at all; without that it reads and writes nothing.
    pub enabled: bool,
    /// Domains that it reads; `*` are all.
    pub read_domains: Vec<String>,
    /// Domains that it writes; `*` are all that are not protected.
    pub write_domains: Vec<String>,
}

/// A domain of knowledge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct KnowledgeDomain {
    pub domain: String,
    /// Entries in it.
    #[schemars(range(min = 0))]
    pub entries: u64,
}
