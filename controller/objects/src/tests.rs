//! What the tests of all kinds share.

use std::fmt::Write;

use atlas_types::{Namespace, ObjectKey, ObjectKind, ObjectName};
use expect_test::Expect;

use crate::KINDS;

/// The key of an object in `default`.
pub(crate) fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        namespace: Namespace::default_namespace(),
        kind: ObjectKind::new(kind).expect("a word"),
        name: ObjectName::new(name).expect("a name"),
    }
}

/// Which documents a kind accepts.
pub(crate) fn check(kind: &str, documents: &[&str], expected: &Expect) {
    let key = key(kind, "a");
    let kind = crate::kind(&key.kind).expect("a kind");
    let mut out = String::new();
    for document in documents {
        match crate::check(kind, &key, document.as_bytes()) {
            Ok(()) => writeln!(out, "ok {document}"),
            Err(refusal) => writeln!(out, "! {refusal}"),
        }
        .expect("a string takes all");
    }
    expected.assert_eq(&out);
}

/// A release never stops accepting a document that an older one wrote: extend a golden document, do not change it.
#[test]
fn every_kind_accepts_its_golden_document() {
    for kind in KINDS {
        let path = format!("{}/golden/{}.json", env!("CARGO_MANIFEST_DIR"), kind.name());
        let document = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        // A name that every other kind accepts: that of a tier.
        let name = if kind.name() == "memory" { "namespace@1" } else { "fast" };
        crate::check(kind, &key(kind.name(), name), document.as_bytes()).expect("it is accepted");
    }
}
