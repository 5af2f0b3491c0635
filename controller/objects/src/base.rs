//! Document bases: how documents are cut and searched, and which artifacts hold them. `atlas-bases` writes the artifacts and names them here.

mod kind;
mod parts;

use std::collections::BTreeSet;

use atlas_pages::Source;
use atlas_types::{Digest, ObjectName};
use serde::{Deserialize, Serialize};

use crate::attributes::is_name;
use crate::kind::{Refusal, read};

pub(crate) use kind::BaseKind;
pub use parts::{BaseCollection, BaseSegment, BaseVectors, ReadRule, VectorSegment};

/// Most segments of a base.
pub const SEGMENTS_MAX: usize = 64;

/// Most removed documents that segments still hold.
pub const REMOVED_MAX: usize = 512;

/// Digits of the id of a document.
const ID_DIGITS: usize = 32;

/// Most artifacts of vectors of a base.
pub const VECTOR_SEGMENTS_MAX: usize = 64;

/// Most bytes of what people write in the spec of a base. The rest of an object has room for what the cluster writes.
pub const BASE_WRITTEN_BYTES_MAX: usize = 24 << 10;

/// Most sources that a base is filled from.
const SOURCES_MAX: usize = 64;

/// Most bytes of one of them.
const SOURCE_BYTES_MAX: usize = 2_048;

/// Most rules on who finds which documents.
const READERS_MAX: usize = 64;

/// Most principals, and most members of the metadata, of one rule.
const RULE_PARTS_MAX: usize = 64;

/// What a text of a rule begins with that stands for something known of the caller.
const CALLER: &str = "caller.";

/// How often sources are read again, in minutes; 0 is never.
const REFRESH: (u64, u64) = (5, 40_320);

/// Bounds of the settings: what is less or more helps nobody.
const CHUNK_SIZE: (u64, u64) = (64, 65_536);
const CHUNK_OVERLAP_MAX: u64 = 50;
const TOP_K_MAX: u64 = 100;
const DESCRIPTION_CHARS_MAX: usize = 1_024;

/// The document of a base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BaseSpec {
    /// What the documents are about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Most bytes of a chunk.
    pub chunk_size: u64,
    /// Bytes of the chunk before that a chunk repeats, in percent of its size.
    pub chunk_overlap: u64,
    /// Chunks that a search finds if it does not say how many.
    pub top_k: u64,
    /// The model that makes vectors of chunks; without one, they are found by words alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub embedding: String,
    /// The model that ranks what was found.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reranker: String,
    /// What the cluster fills the base from, besides what is added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// How often the sources are read again, in minutes; 0 is only when somebody asks for it.
    #[serde(skip_serializing_if = "is_zero")]
    pub refresh_minutes: u64,
    /// Who finds which documents. Without a rule, whoever may search the base finds all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readers: Vec<ReadRule>,
    /// The vectors; none before the first ones are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vectors: Option<BaseVectors>,
    /// How the sources were last read; none before the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collected: Option<BaseCollection>,
    /// The documents, the oldest segment first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<BaseSegment>,
    /// Ids of documents that are in a segment and no longer in the base.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Default for BaseSpec {
    fn default() -> Self {
        Self {
            description: String::new(),
            chunk_size: 2_000,
            chunk_overlap: 5,
            top_k: 5,
            embedding: String::new(),
            reranker: String::new(),
            sources: Vec::new(),
            refresh_minutes: 0,
            readers: Vec::new(),
            vectors: None,
            collected: None,
            segments: Vec::new(),
            removed: Vec::new(),
        }
    }
}

impl BaseSpec {
    /// Reads the spec of a base.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }

    /// Drops vectors that another model made than the base names now, as if it had none.
    pub fn drop_other_vectors(&mut self) {
        let is_other = |vectors: &BaseVectors| !vectors.embedding.is_empty() && vectors.embedding != self.embedding;
        if let Some(vectors) = self.vectors.take() {
            self.vectors = Some(if is_other(&vectors) { vectors.emptied() } else { vectors });
        }
    }

    /// How many documents are in the base.
    pub fn documents(&self) -> u64 {
        let stored: u64 = self.segments.iter().map(|segment| segment.documents).sum();
        stored.saturating_sub(self.removed.len() as u64)
    }

    /// The size of its segments.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    fn check(&self) -> Result<(), Refusal> {
        let within = |field, value: u64, (least, most): (u64, u64)| {
            let refused = || Refusal::new(field, format!("is {value}, not between {least} and {most}"));
            (least..=most).contains(&value).then_some(()).ok_or_else(refused)
        };
        within("spec.chunk_size", self.chunk_size, CHUNK_SIZE)?;
        within("spec.chunk_overlap", self.chunk_overlap, (0, CHUNK_OVERLAP_MAX))?;
        within("spec.top_k", self.top_k, (1, TOP_K_MAX))?;
        if self.description.chars().count() > DESCRIPTION_CHARS_MAX {
            return Err(Refusal::new("spec.description", format!("is longer than {DESCRIPTION_CHARS_MAX} characters")));
        }
        self.check_models()?;
        self.check_sources()?;
        self.check_readers()?;
        if self.segments.len() > SEGMENTS_MAX {
            return Err(Refusal::new("spec.segments", format!("has more than {SEGMENTS_MAX} elements")));
        }
        if self.segments.iter().any(|segment| segment.digest.parse::<Digest>().is_err()) {
            return Err(Refusal::new("spec.segments", "names something that is not a digest"));
        }
        if self.removed.len() > REMOVED_MAX {
            return Err(Refusal::new("spec.removed", format!("has more than {REMOVED_MAX} elements")));
        }
        let is_id = |id: &String| id.len() == ID_DIGITS && id.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !self.removed.iter().all(is_id) {
            return Err(Refusal::new("spec.removed", "names something that is not the id of a document"));
        }
        Ok(())
    }

    /// Refuses what people write although the state would accept it: what leaves too little room for what the cluster writes, a source that is
    /// named twice, which would be read twice, and a rule that has no part, by which everyone would find all documents.
    pub fn check_written(&self) -> Result<(), Refusal> {
        if self.readers.contains(&ReadRule::default()) {
            let why = "has an empty rule, by which everyone would find all documents; name principals, a source or metadata in it: the principal `*` \
                       is everyone";
            return Err(Refusal::new("spec.readers", why));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.sources.iter().find(|source| !seen.insert(source.as_str())) {
            return Err(Refusal::new("spec.sources", format!("names \"{twice}\" twice")));
        }
        let written =
            Self { segments: Vec::new(), removed: Vec::new(), vectors: None, collected: None, ..self.clone() };
        let written = serde_json::to_string(&written);
        let bytes = written.map_err(|error| Refusal::new("spec", format!("cannot be written: {error}")))?.len();
        if bytes > BASE_WRITTEN_BYTES_MAX {
            let why = format!(
                "has {bytes} bytes besides what the cluster writes, more than {BASE_WRITTEN_BYTES_MAX}; shorten its sources, readers or description"
            );
            return Err(Refusal::new("spec", why));
        }
        Ok(())
    }

    fn check_models(&self) -> Result<(), Refusal> {
        for (field, name) in [("spec.embedding", &self.embedding), ("spec.reranker", &self.reranker)] {
            if !name.is_empty() && ObjectName::new(name).is_err() {
                return Err(Refusal::new(field, "is not the name of a model"));
            }
        }
        let segments = self.vectors.iter().flat_map(|vectors| &vectors.segments);
        if segments.clone().count() > VECTOR_SEGMENTS_MAX {
            return Err(Refusal::new("spec.vectors", format!("has more than {VECTOR_SEGMENTS_MAX} segments")));
        }
        if segments.clone().any(|segment| segment.digest.parse::<Digest>().is_err()) {
            return Err(Refusal::new("spec.vectors", "names something that is not a digest"));
        }
        Ok(())
    }

    fn check_sources(&self) -> Result<(), Refusal> {
        if self.sources.len() > SOURCES_MAX {
            return Err(Refusal::new("spec.sources", format!("has more than {SOURCES_MAX} elements")));
        }
        let bad = |source: &String| {
            source.is_empty() || source.len() > SOURCE_BYTES_MAX || source.chars().any(char::is_control)
        };
        if let Some(unknown) =
            self.sources.iter().filter(|source| !bad(source)).find_map(|source| Source::read(source).err())
        {
            return Err(Refusal::new("spec.sources", format!("has an element that cannot be read: {unknown}")));
        }
        if self.sources.iter().any(bad) {
            let why = format!(
                "has an element that is empty, longer than {SOURCE_BYTES_MAX} bytes, or has a control character"
            );
            return Err(Refusal::new("spec.sources", why));
        }
        let (least, most) = REFRESH;
        if self.refresh_minutes != 0 && !(least..=most).contains(&self.refresh_minutes) {
            let why = format!("is {}, neither 0 nor between {least} and {most}", self.refresh_minutes);
            return Err(Refusal::new("spec.refresh_minutes", why));
        }
        Ok(())
    }

    fn check_readers(&self) -> Result<(), Refusal> {
        if self.readers.len() > READERS_MAX {
            return Err(Refusal::new("spec.readers", format!("has more than {READERS_MAX} elements")));
        }
        for rule in &self.readers {
            if rule.principals.len() > RULE_PARTS_MAX || rule.metadata.len() > RULE_PARTS_MAX {
                let why = format!("has a rule with more than {RULE_PARTS_MAX} principals or members of metadata");
                return Err(Refusal::new("spec.readers", why));
            }
            if rule.principals.iter().any(String::is_empty) {
                return Err(Refusal::new("spec.readers", "has a rule with an empty principal"));
            }
            let mut names = rule.metadata.values().filter_map(|value| value.as_str()?.strip_prefix(CALLER));
            if let Some(name) = names.find(|name| !is_name(name)) {
                let why = format!("compares with \"{CALLER}{name}\": a name has letters, digits, - and _");
                return Err(Refusal::new("spec.readers", why));
            }
        }
        Ok(())
    }
}
