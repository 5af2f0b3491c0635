use std::sync::Arc;

use atlas_access::{Access, Attributes};
use atlas_api::types::DocumentQuery;
use atlas_retrieval::Vectors;
use atlas_types::{Door, Namespace, Principal};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::document::Document;
use crate::loaded::Loaded;
use crate::search::found;
use crate::vectors::{Table, key_of};

/// A principal, and what is known of it.
fn caller(who: &str, attributes: &[(&str, &str)]) -> Caller {
    let attributes: Attributes =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), vec![(*value).to_owned()])).collect();
    let access = Access::new(Principal::new(who).expect("a name"), Vec::new()).with_attributes(attributes);
    Caller::authenticated(Door::Http, Some(Arc::new(access)))
}

fn document(source: &str, text: &str, metadata: &Value) -> Document {
    let metadata = metadata.as_object().cloned().unwrap_or_default();
    Document { source: source.into(), metadata, text: text.to_owned() }
}

fn documents() -> Vec<Document> {
    vec![
        document("hr/pay.md", "x", &json!({"team": "people"})),
        document("hr/leave.md", "x", &json!({"team": ["people", "law"]})),
        document("wiki/start.md", "x", &json!({})),
        document("wiki/ann.md", "x", &json!({"owner": "ann", "year": 2026})),
    ]
}

fn rules(rules: &Value) -> Vec<ReadRule> {
    serde_json::from_value(rules.clone()).expect("rules")
}

/// Which documents a caller finds by rules.
fn check(found_by: &Value, caller: &Caller, expected: &Expect) {
    let readable = Readable::new(&rules(found_by), caller);
    let rows = documents().iter().map(Row::of).collect::<Vec<_>>();
    let sources: Vec<&str> = rows.iter().filter(|row| readable.may_read(row)).map(|row| &*row.source).collect();
    expected.assert_eq(&sources.join(" "));
}

#[test]
fn without_a_rule_all_find_all_and_a_rule_closes_the_rest() {
    let ann = caller("ann", &[]);
    check(&json!([]), &ann, &expect!["hr/pay.md hr/leave.md wiki/start.md wiki/ann.md"]);
    check(&json!([{}]), &ann, &expect!["hr/pay.md hr/leave.md wiki/start.md wiki/ann.md"]);
    check(&json!([{"source": "wiki/"}]), &ann, &expect!["wiki/start.md wiki/ann.md"]);
    check(&json!([{"principals": ["bob"]}]), &ann, &expect![""]);
}

#[test]
fn rules_name_principals() {
    let rules = json!([{"source": "wiki/start.md"}, {"principals": ["ann", "corp:*@example.com"], "source": "hr/"}]);
    check(&rules, &caller("ann", &[]), &expect!["hr/pay.md hr/leave.md wiki/start.md"]);
    check(&rules, &caller("anna", &[]), &expect!["wiki/start.md"]);
    check(&rules, &caller("corp:bob@example.com", &[]), &expect!["hr/pay.md hr/leave.md wiki/start.md"]);
    check(&rules, &caller("corp:bob@example.com.evil", &[]), &expect!["wiki/start.md"]);
    check(&rules, &Caller::anonymous(Door::Http), &expect!["wiki/start.md"]);
    check(&rules, &Caller::cluster(Door::Duty), &expect!["hr/pay.md hr/leave.md wiki/start.md wiki/ann.md"]);
}

#[test]
fn what_is_known_of_the_caller_is_compared() {
    let rules =
        json!([{"metadata": {"team": "caller.team"}}, {"metadata": {"owner": "caller.principal", "year": 2026}}]);
    check(&rules, &caller("bob", &[("team", "people")]), &expect!["hr/pay.md hr/leave.md"]);
    check(&rules, &caller("bob", &[("team", "law")]), &expect!["hr/leave.md"]);
    check(&rules, &caller("ann", &[("team", "ops")]), &expect!["wiki/ann.md"]);
    // What is not known fits nothing, not even a document without the member.
    check(&rules, &caller("bob", &[]), &expect![""]);
    check(&json!([{"metadata": {"team": "caller.nothing"}}]), &caller("bob", &[("team", "law")]), &expect![""]);
    // The words of a document do not stand for the caller.
    let row = Row::of(&document("a", "x", &json!({"team": "caller.team"})));
    let team = self::rules(&json!([{"metadata": {"team": "caller.team"}}]));
    assert!(!Readable::new(&team, &caller("bob", &[("team", "law")])).may_read(&row));
    let here = json!([{"metadata": {"place": "caller.namespace"}}]);
    let row = Row::of(&document("a", "x", &json!({"place": "team-a"})));
    let there = |name: &str| caller("ann", &[]).with_namespace(Namespace::new(name).expect("a name"));
    let reads = |name: &str| Readable::new(&self::rules(&here), &there(name)).may_read(&row);
    assert!(reads("team-a") && !reads("team-b"));
}

#[test]
fn how_much_is_lost_is_told_to_those_who_read_all() {
    let lost = [UnreadableSegment { segment: "ab".to_owned(), documents: 7, reason: "damaged".to_owned() }];
    let told = |rules: &[ReadRule]| Readable::new(rules, &caller("ann", &[])).told(&lost)[0].documents;
    assert_eq!((told(&[]), told(&[ReadRule::default()])), (7, 0));
}

const WORDS: [&str; 6] = ["tide", "moon", "salt", "harbour", "wind", "sail"];

/// Documents with words, some with a team.
fn some_documents() -> impl Strategy<Value = Vec<Document>> {
    let words = proptest::collection::vec(0..WORDS.len(), 1..12);
    let one = (0..3_usize, words, 0..3_usize);
    proptest::collection::vec(one, 0..14).prop_map(|all| {
        let made = |(at, (folder, words, team)): (usize, (usize, Vec<usize>, usize))| {
            let text: Vec<&str> = words.into_iter().filter_map(|word| WORDS.get(word).copied()).collect();
            let metadata = if team == 0 { json!({}) } else { json!({"team": format!("t{team}")}) };
            document(&format!("{folder}/{at}.md"), &text.join(" "), &metadata)
        };
        all.into_iter().enumerate().map(made).collect()
    })
}

/// A vector for each text.
fn table(documents: &[Document]) -> Table {
    let row = |document: &Document| -> [f32; 3] {
        let sum = |nth: usize| document.text.bytes().skip(nth).step_by(3).map(f32::from).sum::<f32>();
        [sum(0) + 1.0, sum(1) - 300.0, sum(2)]
    };
    let mut table = Table::default();
    if let Ok(vectors) = Vectors::from_rows(3, documents.iter().map(row)) {
        table.add(documents.iter().map(|document| key_of(&document.text)).collect(), vectors);
    }
    table
}

proptest! {
    /// A caller gets the answer of a base that holds only what it may read: the same hits with the same scores, and the same counts.
    #[test]
    fn what_is_not_readable_leaves_no_trace(
        documents in some_documents(),
        query in proptest::collection::vec(0..WORDS.len(), 1..4),
        who in 0..3_usize,
        is_asked_by_vector: bool,
    ) {
        let rules = rules(&json!([{"source": "0/"}, {"principals": ["ann"], "metadata": {"team": "caller.team"}}, {"principals": ["bob"], "source": "1/"}]));
        let caller = match who {
            0 => caller("ann", &[("team", "t1")]),
            1 => caller("bob", &[("team", "t1")]),
            _ => Caller::anonymous(Door::Http),
        };
        let readable = Readable::new(&rules, &caller);
        let table = table(&documents);
        let spec = BaseSpec { readers: rules, embedding: "m".to_owned(), ..BaseSpec::default() };
        let own = documents.iter().filter(|document| readable.may_read(&Row::of(document))).cloned().collect();
        let load = |documents: Vec<Document>| Loaded::new(&spec, vec![documents], &table, Vec::new());
        let words: Vec<&str> = query.into_iter().filter_map(|word| WORDS.get(word).copied()).collect();
        let query = DocumentQuery { query: words.join(" "), explain: true, ..DocumentQuery::default() };
        let vector = || is_asked_by_vector.then(|| vec![1.0, -0.5, 0.25]);
        let answer = |loaded: &Loaded, readable: &Readable| {
            found("b".to_owned(), loaded, (&query, vector(), 5), readable).expect("an answer")
        };
        let all = Readable::new(&[], &caller);
        prop_assert_eq!(answer(&load(documents), &readable), answer(&load(own), &all));
    }
}
