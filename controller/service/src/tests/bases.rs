//! Document bases through the service: replacing, removing, many changes, damage, and what is kept in memory.

use std::collections::BTreeSet;
use std::fs;

use atlas_api::types::{BaseChange, BaseDraft, BaseRebuild, DocumentDraft, DocumentQuery, FoundDocuments};
use atlas_types::Digest;
use expect_test::{Expect, expect};
use futures::future::join_all;
use serde_json::json;

use super::{Node, caller};
use crate::testing::Net;
use crate::{Consistency, DocumentFilter, Error};

const NAME: &str = "handbook";

fn draft(source: &str, text: &str) -> DocumentDraft {
    DocumentDraft { source: source.to_owned(), text: text.to_owned(), ..DocumentDraft::default() }
}

impl Node {
    async fn has_base(net: &std::sync::Arc<Net>) -> Self {
        let node = Self::start(net, 1).await;
        let draft = BaseDraft { name: NAME.to_owned(), ..BaseDraft::default() };
        node.service.bases().create(&caller(), draft).await.expect("made");
        node
    }

    async fn adds(&self, drafts: Vec<DocumentDraft>) -> String {
        let added = self.service.bases().add(&caller(), NAME, drafts).await.expect("added");
        let said = added.documents.iter().map(|document| format!("{} {}", document.source, document.status));
        said.collect::<Vec<_>>().join(", ")
    }

    async fn finds(&self, query: &str) -> FoundDocuments {
        let query = DocumentQuery { query: query.to_owned(), top_k: Some(100), ..DocumentQuery::default() };
        let found = self.service.search_documents(&caller(), NAME, query, Consistency::Linearizable).await;
        found.expect("searched")
    }

    async fn sources(&self, query: &str) -> BTreeSet<String> {
        self.finds(query).await.hits.into_iter().map(|hit| hit.source).collect()
    }

    async fn segments(&self) -> Vec<Digest> {
        let object = self.service.object(&caller(), "base", NAME, Consistency::Linearizable).await.expect("a base");
        let segments = object.value.spec["segments"].as_array().cloned().unwrap_or_default();
        segments.iter().map(|segment| segment["digest"].as_str().expect("a text").parse().expect("a digest")).collect()
    }
}

fn check(said: &str, expected: &Expect) {
    expected.assert_eq(said);
}

#[tokio::test]
async fn documents_are_added_replaced_removed_and_come_back() {
    let net = Net::new(1);
    let node = Node::has_base(&net).await;
    let adds = async |source: &str, text: &str| node.adds(vec![draft(source, text)]).await;
    check(&adds("a.md", "The tide is high.").await, &expect!["a.md added"]);
    check(&adds("a.md", "The tide is high.").await, &expect!["a.md unchanged"]);
    check(&adds("b.md", "The moon is bright.").await, &expect!["b.md added"]);
    check(&adds("a.md", "The tide is low.").await, &expect!["a.md replaced"]);
    assert!(node.sources("high").await.is_empty(), "what was replaced is in no answer");
    assert_eq!(node.sources("low").await.len(), 1);
    let bases = node.service.bases();
    assert_eq!(bases.remove(&caller(), NAME, "*.md").await.expect("removed"), 2);
    assert_eq!(bases.remove(&caller(), NAME, "*.md").await.expect("nothing"), 0);
    assert!(node.sources("tide moon").await.is_empty());
    check(&adds("a.md", "The tide is high.").await, &expect!["a.md added"]);
    let found = node.finds("tide").await;
    assert_eq!((found.hits.len(), found.documents, found.hits[0].text.as_str()), (1, 1, "The tide is high."));
    assert_eq!(bases.base(&caller(), NAME, Consistency::Linearizable).await.expect("a base").documents, 1);
}

#[tokio::test]
async fn many_changes_at_once_are_all_there_and_segments_stay_few() {
    let net = Net::new(1);
    let node = Node::has_base(&net).await;
    let texts: Vec<String> = (0..80).map(|number| format!("note about number{number}")).collect();
    let adds = texts.iter().enumerate().map(|(at, text)| node.adds(vec![draft(&format!("{at}.md"), text)]));
    assert!(join_all(adds).await.iter().all(|said| said.ends_with(" added")));
    assert_eq!(node.sources("note").await.len(), 80);
    assert_eq!(node.sources("number7").await.len(), 1);
    let segments = node.segments().await.len();
    assert!(segments <= 8, "{segments} segments");
    // Removed documents leave the segments once there are many.
    for round in 0..4 {
        let again = (0..100).map(|at| draft(&format!("again/{at}.md"), &format!("round{round} of {at}"))).collect();
        node.adds(again).await;
    }
    assert_eq!((node.sources("round2").await.len(), node.sources("round3").await.len()), (0, 100));
    let rebuilt = node.service.bases().rebuild(&caller(), NAME, &BaseRebuild::default()).await.expect("rebuilt");
    assert_eq!((rebuilt.documents, rebuilt.segments, rebuilt.lost), (180, 1, 0));
    let bytes = fs::read(net.path(1, node.segments().await[0])).expect("a segment");
    assert!(!String::from_utf8_lossy(&bytes).contains("round2"), "what was removed is no longer kept");
    assert_eq!(node.sources("note").await.len(), 80);
}

#[tokio::test]
async fn filters_and_settings_count() {
    let net = Net::new(1);
    let node = Node::has_base(&net).await;
    let team = |name: &str| serde_json::from_value(json!({"team": name})).expect("a map");
    let tagged = |source: &str, name: &str| DocumentDraft { metadata: team(name), ..draft(source, "All about tea.") };
    node.adds(vec![tagged("a/1.md", "ops"), tagged("a/2.md", "law"), tagged("b/1.md", "ops")]).await;
    let bases = node.service.bases();
    let search = async |query: DocumentQuery| {
        let query = DocumentQuery { query: "tea".to_owned(), ..query };
        let found = bases.search(&caller(), NAME, query, None, Consistency::Linearizable).await.expect("searched");
        found.hits.into_iter().map(|hit| hit.source).collect::<Vec<_>>()
    };
    let ops = DocumentQuery { metadata: team("ops"), ..DocumentQuery::default() };
    assert_eq!(search(ops.clone()).await, ["a/1.md", "b/1.md"]);
    assert_eq!(search(DocumentQuery { source: "a/".to_owned(), ..ops }).await, ["a/1.md"]);
    let change = BaseChange { top_k: Some(1), chunk_size: Some(64), ..BaseChange::default() };
    bases.change(&caller(), NAME, change).await.expect("changed");
    assert_eq!(search(DocumentQuery::default()).await, ["a/1.md"]);
    node.adds(vec![draft("long.md", &"One sentence of words.\n\n".repeat(20))]).await;
    let found = node.finds("sentence").await;
    assert!(
        found.hits.len() > 5 && found.hits[0].chunks == found.hits.len() as u64,
        "documents are cut by the settings"
    );
    let refused = bases.change(&caller(), NAME, BaseChange { chunk_size: Some(1), ..BaseChange::default() }).await;
    check(
        &refused.expect_err("too small").to_string(),
        &expect![[r#"the base "handbook" is refused: `spec.chunk_size` is 1, not between 64 and 65536"#]],
    );
    let unknown = bases.base(&caller(), "../x", Consistency::Linearizable).await.expect_err("no name");
    check(&unknown.to_string(), &expect![[r#"no such base: "../x""#]]);
}

#[tokio::test]
async fn a_damaged_segment_is_said_and_can_be_left_out() {
    let net = Net::new(1);
    let node = Node::has_base(&net).await;
    node.adds(vec![draft("old.md", &"a tide of words, and more of them. ".repeat(20))]).await;
    node.adds(vec![draft("new.md", "the tide")]).await;
    let segments = node.segments().await;
    assert_eq!(segments.len(), 2);
    fs::write(net.path(1, segments[0]), b"damaged").expect("written");
    // A change since, so that the base is loaded again, and nothing of it is known: as after a restart.
    let node = {
        let change = BaseChange { top_k: Some(9), ..BaseChange::default() };
        node.service.bases().change(&caller(), NAME, change).await.expect("changed");
        node
    };
    let found = node.finds("tide").await;
    assert_eq!(found.hits.iter().map(|hit| hit.source.as_str()).collect::<Vec<_>>(), ["new.md"]);
    let lost = found.unreadable.first().expect("it is said");
    assert_eq!((lost.segment.as_str(), lost.documents), (segments[0].hex().as_str(), 1));
    assert!(lost.reason.ends_with("is damaged"), "{}", lost.reason);

    let bases = node.service.bases();
    let refused = bases.rebuild(&caller(), NAME, &BaseRebuild::default()).await.expect_err("documents would be lost");
    assert!(matches!(refused, Error::SegmentUnreadable(_)), "{refused}");
    let rebuilt = bases
        .rebuild(&caller(), NAME, &BaseRebuild { drop_unreadable: true, ..BaseRebuild::default() })
        .await
        .expect("rebuilt");
    assert_eq!((rebuilt.documents, rebuilt.lost), (1, 1));
    assert!(node.finds("tide").await.unreadable.is_empty());
    assert_eq!(node.adds(vec![draft("old.md", "a tide of words")]).await, "old.md added");
}

#[tokio::test]
async fn documents_are_listed_by_page_with_their_texts() {
    let net = Net::new(1);
    let node = Node::has_base(&net).await;
    for at in 0..3 {
        node.adds((0..3).map(|part| draft(&format!("{part}/{at}.md"), &format!("text {part} {at}"))).collect()).await;
    }
    let bases = node.service.bases();
    let mut filter = DocumentFilter { source: "1/".to_owned(), limit: 2, text: true, ..DocumentFilter::default() };
    let mut seen = Vec::new();
    loop {
        let page = bases.documents(&caller(), NAME, &filter, Consistency::Linearizable).await.expect("a page");
        assert!(page.documents.len() <= 2 && page.unreadable.is_empty());
        seen.extend(page.documents.into_iter().map(|document| (document.source, document.text.expect("a text"))));
        match page.next {
            Some(next) => filter.after = Some(next),
            None => break,
        }
    }
    let expected = (0..3).map(|at| (format!("1/{at}.md"), format!("text 1 {at}"))).collect::<Vec<_>>();
    assert_eq!(seen, expected);
}
