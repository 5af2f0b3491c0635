//! Bases as a kind of object.

use atlas_types::{Digest, Level, ObjectKey, level};
use serde_json::{Value, json};

use super::{
    BaseSpec, CHUNK_OVERLAP_MAX, CHUNK_SIZE, DESCRIPTION_CHARS_MAX, READERS_MAX, REFRESH, SOURCE_BYTES_MAX,
    SOURCES_MAX, TOP_K_MAX,
};
use crate::kind::{Kind, Refusal};

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
                "embedding": {"type": "string", "description": "The model that makes vectors of chunks, of the type embedding."},
                "reranker": {"type": "string", "description": "The model that ranks what was found, of the type reranker."},
                "sources": {
                    "type": "array", "maxItems": SOURCES_MAX, "uniqueItems": true, "items": {"type": "string", "maxLength": SOURCE_BYTES_MAX},
                    "description": "What the cluster fills the base from: pages, websites and repositories."
                },
                "refresh_minutes": {
                    "type": "integer", "minimum": 0, "maximum": REFRESH.1,
                    "description": "How often the sources are read again, at least 5; 0 is only when somebody asks for it."
                },
                "readers": {
                    "type": "array", "maxItems": READERS_MAX, "description": "Who finds which documents; all find all without it.",
                    "items": {
                        "type": "object",
                        "minProperties": 1,
                        "additionalProperties": false,
                        "properties": {
                            "principals": {
                                "type": "array", "items": {"type": "string", "minLength": 1},
                                "description": "Names of principals, in which * is any text; everyone without it."
                            },
                            "source": {"type": "string", "description": "Documents whose sources begin with it."},
                            "metadata": {
                                "type": "object",
                                "description": "Documents with these members. The text caller.NAME stands for what is known of the caller."
                            }
                        }
                    }
                },
            }
        })
    }

    fn admit(&self, _: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        BaseSpec::read(spec)?.check()
    }

    fn admit_written(&self, spec: &[u8]) -> Result<(), Refusal> {
        BaseSpec::read(spec)?.check_written()
    }

    fn artifacts(&self, spec: &[u8]) -> Vec<Digest> {
        let spec = BaseSpec::read(spec).unwrap_or_default();
        let vectors = spec.vectors.iter().flat_map(|vectors| &vectors.segments).map(|segment| &segment.digest);
        let segments = spec.segments.iter().map(|segment| &segment.digest);
        segments.chain(vectors).filter_map(|digest| digest.parse().ok()).collect()
    }

    /// What is in a base with rules is told by searches and lists alone, which know who asks.
    fn shown(&self, spec: &mut Value) {
        let has_rules = spec.get("readers").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
        if let Some(members) = spec.as_object_mut().filter(|_| has_rules) {
            self.kept().iter().for_each(|name| drop(members.shift_remove(*name)));
        }
    }

    fn kept(&self) -> &'static [&'static str] {
        &["segments", "removed", "vectors", "collected"]
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::base::{BASE_WRITTEN_BYTES_MAX, REMOVED_MAX, SEGMENTS_MAX};
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
                r#"{"embedding":"../x"}"#,
                r#"{"vectors":{"segments":[{"digest":"x"}]}}"#,
                r#"{"refresh_minutes":4}"#,
                r#"{"refresh_minutes":5,"sources":["https://example.org/**"]}"#,
                r#"{"sources":[""]}"#,
                r#"{"readers":[{"principals":[""]}]}"#,
                r#"{"readers":[{"who":"x"}]}"#,
                r#"{"readers":[{"metadata":{"team":"caller.team"},"source":"hr/"}]}"#,
                r#"{"readers":[{"metadata":{"team":"caller.a b"}}]}"#,
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
                ! `spec.embedding` is not the name of a model
                ! `spec.vectors` names something that is not a digest
                ! `spec.refresh_minutes` is 4, neither 0 nor between 5 and 40320
                ok {"refresh_minutes":5,"sources":["https://example.org/**"]}
                ! `spec.sources` has an element that is empty, longer than 2048 bytes, or has a control character
                ! `spec.readers` has a rule with an empty principal
                ! `spec` cannot be read: unknown field `who`, expected one of `principals`, `source`, `metadata` at line 1 column 18
                ok {"readers":[{"metadata":{"team":"caller.team"},"source":"hr/"}]}
                ! `spec.readers` compares with "caller.a b": a name has letters, digits, - and _
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
    fn what_people_write_leaves_room_for_what_the_cluster_writes() {
        let written = |spec: Value| match BaseKind.admit_written(spec.to_string().as_bytes()) {
            Ok(()) => "ok".to_owned(),
            Err(refusal) => refusal.to_string(),
        };
        let of = |bytes: usize| json!({"segments": [{"digest": "x".repeat(60_000)}], "sources": ["a".repeat(bytes)]});
        assert_eq!(written(of(BASE_WRITTEN_BYTES_MAX - 80)), "ok");
        expect!["`spec` has 24638 bytes besides what the cluster writes, more than 24576; shorten its sources, readers or description"]
            .assert_eq(&written(of(BASE_WRITTEN_BYTES_MAX)));
        expect![[r#"`spec.sources` names "https://example.org/a" twice"#]]
            .assert_eq(&written(json!({"sources": ["https://example.org/a", "git:x", "https://example.org/a"]})));
    }

    #[test]
    fn nobody_writes_a_rule_without_a_part() {
        let written = |readers: Value| BaseKind.admit_written(json!({"readers": readers}).to_string().as_bytes());
        for empty in [json!({}), json!({"source": ""}), json!({"principals": [], "metadata": {}})] {
            let refusal = written(json!([{"source": "hr/"}, empty])).expect_err("all find all").to_string();
            expect!["`spec.readers` has an empty rule, by which everyone would find all documents; name principals, a source or metadata in it: the principal `*` is everyone"]
                .assert_eq(&refusal);
        }
        assert!(written(json!([])).is_ok() && written(json!([{"principals": ["*"]}])).is_ok());
    }

    #[test]
    fn what_is_in_a_base_with_rules_is_not_shown() {
        let shown = |spec: Value| {
            let mut spec = spec;
            BaseKind.shown(&mut spec);
            spec
        };
        let without = json!({"segments": [], "top_k": 5});
        assert_eq!(shown(without.clone()), without);
        let with = json!({"readers": [{"source": "a/"}], "removed": ["x"], "segments": [], "top_k": 5, "vectors": {}});
        assert_eq!(shown(with), json!({"readers": [{"source": "a/"}], "top_k": 5}));
    }

    #[test]
    fn the_golden_document_names_its_artifacts() {
        let golden = include_bytes!("../../golden/base.json");
        assert_eq!(BaseKind.artifacts(golden), [Digest([0xab; 32]), Digest([0xcd; 32]), Digest([0x12; 32])]);
        let spec = BaseSpec::read(golden).expect("a spec");
        assert_eq!((spec.documents(), spec.bytes()), (2, 700));
    }
}
