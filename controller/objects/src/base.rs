//! Document bases: how documents are cut and searched, and which artifacts hold them. `atlas-bases` writes the artifacts and names them here.

use atlas_types::{Digest, Level, ObjectKey, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, read};

/// Most segments of a base.
pub const SEGMENTS_MAX: usize = 64;

/// Most removed documents that segments still hold.
pub const REMOVED_MAX: usize = 512;

/// Digits of the id of a document.
const ID_DIGITS: usize = 32;

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
    /// The documents, the oldest segment first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<BaseSegment>,
    /// Ids of documents that are in a segment and no longer in the base.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

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

impl Default for BaseSpec {
    fn default() -> Self {
        Self {
            description: String::new(),
            chunk_size: 2_000,
            chunk_overlap: 5,
            top_k: 5,
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
}

pub(crate) struct BaseKind;

impl Kind for BaseKind {
    fn name(&self) -> &'static str {
        "base"
    }

    fn about(&self) -> &'static str {
        "A document base: documents that people and agents search. Its documents are added apart."
    }

    fn level(&self) -> Level {
        level::SHARED_KNOWLEDGE
    }

    fn schema(&self) -> Value {
        let whole = |(least, most): (u64, u64), says: &str| json!({"type": "integer", "minimum": least, "maximum": most, "description": says});
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "description": {
                    "type": "string", "maxLength": DESCRIPTION_CHARS_MAX, "description": "What the documents are about."
                },
                "chunk_size": whole(CHUNK_SIZE, "Most bytes of a chunk; 2000 if it is left out."),
                "chunk_overlap": whole(
                    (0, CHUNK_OVERLAP_MAX),
                    "How much of the chunk before a chunk repeats, in percent of the size; 5 if it is left out.",
                ),
                "top_k": whole((1, TOP_K_MAX), "Chunks that a search finds if it does not say how many; 5 if it is left out."),
            }
        })
    }

    fn admit(&self, _: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        BaseSpec::read(spec)?.check()
    }

    fn artifacts(&self, spec: &[u8]) -> Vec<Digest> {
        let spec = BaseSpec::read(spec).unwrap_or_default();
        spec.segments.iter().filter_map(|segment| segment.digest.parse().ok()).collect()
    }

    fn kept(&self) -> &'static [&'static str] {
        &["segments", "removed"]
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::check;

    #[test]
    fn documents() {
        let digest = "ab".repeat(32);
        let id = "cd".repeat(16);
        let segment = format!(r#"{{"bytes":10,"digest":"{digest}","documents":1}}"#);
        check(
            "base",
            &[
                "{}",
                r#"{"chunk_overlap":0,"chunk_size":64,"description":"a","top_k":1}"#,
                r#"{"chunk_size":63}"#,
                r#"{"chunk_size":0.5}"#,
                r#"{"chunk_overlap":51}"#,
                r#"{"top_k":0}"#,
                &format!(r#"{{"removed":["{id}"],"segments":[{segment}]}}"#),
                r#"{"segments":[{"digest":"../x"}]}"#,
                r#"{"removed":["x"]}"#,
            ],
            &expect![[r#"
                ok {}
                ok {"chunk_overlap":0,"chunk_size":64,"description":"a","top_k":1}
                ! `spec.chunk_size` is 63, not between 64 and 65536
                ! `spec` cannot be read: the document is not canonical JSON
                ! `spec.chunk_overlap` is 51, not between 0 and 50
                ! `spec.top_k` is 0, not between 1 and 100
                ok {"removed":["cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"],"segments":[{"bytes":10,"digest":"abababababababababababababababababababababababababababababababab","documents":1}]}
                ! `spec.segments` names something that is not a digest
                ! `spec.removed` names something that is not the id of a document
            "#]],
        );
        let many =
            |member: &str, one: &str, count: usize| format!(r#"{{"{member}":[{}]}}"#, vec![one; count].join(","));
        for (member, one, most) in [("segments", segment, SEGMENTS_MAX), ("removed", format!("\"{id}\""), REMOVED_MAX)]
        {
            let checked = |count| BaseSpec::read(many(member, &one, count).as_bytes()).expect("a spec").check();
            assert!(checked(most).is_ok() && checked(most + 1).is_err(), "{member}");
        }
    }

    #[test]
    fn the_golden_document_names_its_artifacts() {
        let golden = include_bytes!("../golden/base.json");
        assert_eq!(BaseKind.artifacts(golden), [Digest([0xab; 32]), Digest([0xcd; 32])]);
        let spec = BaseSpec::read(golden).expect("a spec");
        assert_eq!((spec.documents(), spec.bytes()), (2, 700));
    }
}
