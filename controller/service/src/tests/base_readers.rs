//! Rules on who finds which documents, through the service: each caller gets the answers of a base that holds only what it may read.

use std::fs;
use std::sync::Arc;

use atlas_access::{Access, Attributes, Place, Right, Rights};
use atlas_api::types::{BaseChange, BaseDraft, DocumentDraft, DocumentQuery};
use atlas_types::{Door, ObjectKind, Principal};
use expect_test::{Expect, expect};
use serde_json::json;

use super::{Node, caller};
use crate::testing::Net;
use crate::{Caller, Consistency, DocumentFilter};

const NAME: &str = "handbook";

fn check(said: &str, expected: &Expect) {
    expected.assert_eq(said);
}

/// A principal with rights in the namespace, and its team.
fn person(who: &str, rights: &[Right], team: Option<&str>) -> Caller {
    let attributes: Attributes = team.map(|team| ("team".to_owned(), vec![team.to_owned()])).into_iter().collect();
    let grants = vec![(Place::In(caller().namespace), Rights::of(rights))];
    let access = Access::new(Principal::new(who).expect("a name"), grants).with_attributes(attributes);
    Caller::authenticated(Door::Http, Some(Arc::new(access)))
}

fn reader(who: &str, team: Option<&str>) -> Caller {
    person(who, &[Right::ObjectsRead], team)
}

fn writer(who: &str, team: Option<&str>) -> Caller {
    person(who, &[Right::ObjectsRead, Right::ObjectsWrite], team)
}

fn draft(source: &str, text: &str, team: &str) -> DocumentDraft {
    let metadata = if team.is_empty() { json!({}) } else { json!({"team": team}) };
    let metadata = metadata.as_object().cloned().unwrap_or_default();
    DocumentDraft { source: source.to_owned(), text: text.to_owned(), metadata }
}

impl Node {
    /// A base whose pages all find, and whose other documents the team finds that they are of.
    async fn has_rules(net: &Arc<Net>) -> Self {
        let node = Self::start(net, 1).await;
        let rules = json!([{"source": "wiki/"}, {"metadata": {"team": "caller.team"}}, {"principals": ["ann"], "source": "hr/"}]);
        let readers = Some(serde_json::from_value(rules).expect("rules"));
        let draft = BaseDraft { name: NAME.to_owned(), readers, ..BaseDraft::default() };
        node.service.bases().create(&caller(), draft).await.expect("made");
        node
    }

    async fn added_by(&self, caller: &Caller, drafts: Vec<DocumentDraft>) -> String {
        let added = self.service.bases().add(caller, NAME, drafts).await.expect("added");
        let said = added.documents.iter().map(|document| {
            let why = document.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            format!("{} {}{why}", document.source, document.status)
        });
        said.collect::<Vec<_>>().join(", ")
    }

    async fn has_documents(&self) {
        let drafts = vec![
            draft("hr/pay.md", "Leave is paid in full.", "people"),
            draft("law/cases.md", "Leave of court is a permission. Leave it to us.", "law"),
            draft("wiki/leave.md", "Leave is thirty days.", ""),
        ];
        check(
            &self.added_by(&caller(), drafts).await,
            &expect!["hr/pay.md added, law/cases.md added, wiki/leave.md added"],
        );
    }

    /// What a caller finds, of how many documents and parts, and what it lists and counts.
    async fn sees(&self, caller: &Caller) -> String {
        let bases = self.service.bases();
        let query = DocumentQuery { query: "leave".to_owned(), top_k: Some(100), ..DocumentQuery::default() };
        let found = self.service.search_documents(caller, NAME, query, Consistency::Linearizable).await.expect("found");
        let hits: Vec<&str> = found.hits.iter().map(|hit| hit.source.as_str()).collect();
        let filter = DocumentFilter { limit: 100, text: true, ..DocumentFilter::default() };
        let page = bases.documents(caller, NAME, &filter, Consistency::Linearizable).await.expect("a page");
        let listed: Vec<&str> = page.documents.iter().map(|document| document.source.as_str()).collect();
        let base = bases.base(caller, NAME, Consistency::Linearizable).await.expect("a base");
        let all = bases.bases(caller, Consistency::Linearizable).await.expect("bases");
        assert_eq!((base.documents, base.bytes), (all[0].documents, all[0].bytes));
        format!(
            "{} of {} in {}; {}; {}",
            hits.join(" "),
            found.documents,
            found.chunks,
            listed.join(" "),
            base.documents
        )
    }
}

#[tokio::test]
async fn each_finds_lists_and_counts_what_it_may_read() {
    let net = Net::new(1);
    let node = Node::has_rules(&net).await;
    node.has_documents().await;
    check(
        &node.sees(&reader("ann", None)).await,
        &expect!["hr/pay.md wiki/leave.md of 2 in 2; hr/pay.md wiki/leave.md; 2"],
    );
    check(
        &node.sees(&reader("bob", Some("law"))).await,
        &expect!["law/cases.md wiki/leave.md of 2 in 2; law/cases.md wiki/leave.md; 2"],
    );
    check(&node.sees(&reader("eve", None)).await, &expect!["wiki/leave.md of 1 in 1; wiki/leave.md; 1"]);
    // Who may change the base knows how much is in it, and finds no more for that.
    check(&node.sees(&writer("eve", None)).await, &expect!["wiki/leave.md of 1 in 1; wiki/leave.md; 3"]);
    // While authentication is off, all are the principal `local`.
    check(&node.sees(&caller()).await, &expect!["wiki/leave.md of 1 in 1; wiki/leave.md; 3"]);
    let shown = node.service.object(&caller(), "base", NAME, Consistency::Linearizable).await.expect("a base");
    assert_eq!(
        (shown.value.spec.get("segments"), shown.value.spec["readers"].as_array().map(Vec::len)),
        (None, Some(3))
    );
}

#[tokio::test]
async fn a_change_of_the_rules_counts_at_once() {
    let net = Net::new(1);
    let node = Node::has_rules(&net).await;
    node.has_documents().await;
    let eve = reader("eve", None);
    check(&node.sees(&eve).await, &expect!["wiki/leave.md of 1 in 1; wiki/leave.md; 1"]);
    let bases = node.service.bases();
    let none = BaseChange { readers: Some(Vec::new()), ..BaseChange::default() };
    bases.change(&caller(), NAME, none).await.expect("changed");
    check(
        &node.sees(&eve).await,
        &expect!["law/cases.md hr/pay.md wiki/leave.md of 3 in 3; hr/pay.md law/cases.md wiki/leave.md; 3"],
    );
    let closed = json!([{"principals": ["ann"]}]);
    let readers = Some(serde_json::from_value(closed).expect("rules"));
    bases.change(&caller(), NAME, BaseChange { readers, ..BaseChange::default() }).await.expect("changed");
    check(&node.sees(&eve).await, &expect![" of 0 in 0; ; 0"]);
}

#[tokio::test]
async fn what_one_may_not_read_one_does_not_change() {
    let net = Net::new(1);
    let node = Node::has_rules(&net).await;
    node.has_documents().await;
    let (ann, eve) = (writer("ann", None), writer("eve", None));
    let other = |text: &str| vec![draft("hr/pay.md", text, "people"), draft("wiki/new.md", "Leave early.", "")];
    check(
        &node.added_by(&eve, other("Leave is not paid.")).await,
        &expect![
            "hr/pay.md refused: the base has another document with its source, which you may not read; use another source, wiki/new.md added"
        ],
    );
    // The same document once more changes nothing, whoever adds it.
    check(
        &node.added_by(&eve, other("Leave is paid in full.")).await,
        &expect!["hr/pay.md unchanged, wiki/new.md unchanged"],
    );
    let bases = node.service.bases();
    assert_eq!(bases.remove(&eve, NAME, "hr/pay.md").await.expect("nothing"), 0);
    assert_eq!(bases.remove(&eve, NAME, "*").await.expect("removed"), 2);
    check(&node.sees(&ann).await, &expect!["hr/pay.md of 1 in 1; hr/pay.md; 2"]);
    check(&node.added_by(&ann, other("Leave is not paid.")).await, &expect!["hr/pay.md replaced, wiki/new.md added"]);
}

#[tokio::test]
async fn erased_documents_are_in_no_segment() {
    let net = Net::new(1);
    let node = Node::has_rules(&net).await;
    node.has_documents().await;
    let bases = node.service.bases();
    let ann = writer("ann", None);
    let stored = |node: &Node| {
        let state = node.service.handle().applied();
        let kind = ObjectKind::new("base").expect("a kind");
        let base = state.objects_of_kind(&kind).next().cloned().expect("a base");
        let spec = atlas_objects::BaseSpec::read(&base.spec).expect("a spec");
        assert_eq!(spec.removed, Vec::<String>::new());
        let read = |segment: &atlas_objects::BaseSegment| {
            fs::read_to_string(net.path(1, segment.digest.parse().expect("a digest"))).expect("a segment")
        };
        spec.segments.iter().map(read).collect::<String>()
    };
    assert!(stored(&node).contains("paid in full"));
    assert_eq!(bases.erase(&ann, NAME, "hr/*").await.expect("erased"), 1);
    assert!(!stored(&node).contains("paid in full") && stored(&node).contains("Leave of court"));
    // What somebody has only removed is erased later.
    assert_eq!(bases.remove(&ann, NAME, "wiki/*").await.expect("removed"), 1);
    assert_eq!(bases.erase(&ann, NAME, "wiki/*").await.expect("erased"), 0);
    assert!(!stored(&node).contains("thirty days"));
}
