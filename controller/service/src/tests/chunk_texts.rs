//! Which jobs get the texts of chunks: those that the cluster made for itself, and those of searches, as far as their callers may read.

use std::sync::Arc;

use atlas_api::types::{BaseDraft, DocumentDraft};
use atlas_bases::chunk_key;
use atlas_types::{BootId, Command, Inventory, Job, NodeId, RegisterNode, Spawner, StepKey, ToolEnd, ToolRequest};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{Node, caller, until};
use crate::document_models::{Chunks, RankAsk};
use crate::probes;
use crate::testing::Net;

const NAME: &str = "handbook";
const OPEN: &str = "Leave is thirty days.";
const HIDDEN: &str = "Bob earns 5000.";

fn check(told: &str, expected: &Expect) {
    expected.assert_eq(told);
}

impl Node {
    /// A base with an open document, and one that only ann finds. No worker makes its vectors.
    async fn has_hidden(net: &Arc<Net>) -> Self {
        let node = Self::has_models(net).await;
        let rules = json!([{"source": "wiki/"}, {"principals": ["ann"]}]);
        let draft = BaseDraft {
            name: NAME.to_owned(),
            embedding: Some("embedding".to_owned()),
            readers: Some(serde_json::from_value(rules).expect("rules")),
            ..BaseDraft::default()
        };
        node.service.bases().create(&caller(), draft).await.expect("made");
        let draft = |source: &str, text: &str| DocumentDraft {
            source: source.to_owned(),
            text: text.to_owned(),
            ..DocumentDraft::default()
        };
        let drafts = vec![draft("wiki/leave.md", OPEN), draft("hr/pay.md", HIDDEN)];
        node.service.bases().add(&caller(), NAME, drafts).await.expect("added");
        let inventory = Inventory { places: 9, llm_places: 9, ..Inventory::default() };
        let node_id = NodeId::new("w1").expect("a name");
        let command = RegisterNode { node: node_id, boot_id: BootId(1), inventory };
        node.propose(Command::RegisterNode(command)).await;
        node
    }

    /// What a job that has a lease is told of chunks.
    async fn told(&self, is_meant: impl Fn(&Job) -> bool, texts: &[&str]) -> String {
        let leased = || self.jobs().into_iter().find(|job| is_meant(job) && job.lease.is_some());
        until("a job has a lease", async || leased().is_some()).await;
        let job = leased().expect("a job");
        let token = job.lease.as_ref().expect("a lease").token;
        let keys: Vec<String> = texts.iter().map(|text| chunk_key(text)).collect();
        let request = ToolRequest {
            caller: Spawner { job: job.id, token },
            tool: "atlas.documents.texts".to_owned(),
            arguments: json!({"base": NAME, "chunks": keys}).to_string().into_bytes().into(),
            key: StepKey([1; 16]),
            again: false,
        };
        match self.service.call_tool(&request).await.expect("an answer") {
            ToolEnd::Refused(why) => why,
            ToolEnd::Result(told) => serde_json::from_slice::<Value>(&told).expect("JSON").to_string(),
        }
    }

    /// What the job of a search is told of the chunks that it asks about.
    async fn told_in_search(&self, texts: &[&str]) -> String {
        let chunks = Chunks { base: NAME.to_owned(), keys: texts.iter().map(|text| chunk_key(text)).collect() };
        let (ask, who) = (RankAsk { model: "reranker", query: "q", chunks, priority: 0 }, caller());
        tokio::select! {
            ended = self.service.rank(&who, ask) => panic!("{ended:?}"),
            told = self.told(|job| job.principal == caller().principal, texts) => told,
        }
    }
}

#[tokio::test]
async fn the_cluster_is_told_all_and_a_search_what_its_caller_may_read() {
    let net = Net::new(1);
    let node = Node::has_hidden(&net).await;
    check(
        &node.told(|job| job.principal != caller().principal, &[OPEN, HIDDEN]).await,
        &expect![[r#"{"texts":["Leave is thirty days.","Bob earns 5000."]}"#]],
    );
    check(&node.told_in_search(&[OPEN]).await, &expect![[r#"{"texts":["Leave is thirty days."]}"#]]);
}

#[tokio::test]
async fn what_one_may_not_read_is_not_there() {
    let net = Net::new(1);
    let node = Node::has_hidden(&net).await;
    let gone = expect![[r#"a chunk is no longer in the base "handbook"; it has changed"#]];
    check(&node.told_in_search(&[OPEN, HIDDEN]).await, &gone);
    check(&node.told(|job| job.principal == caller().principal, &["not in the base"]).await, &gone);
}

#[tokio::test]
async fn a_job_that_somebody_submits_is_told_nothing() {
    let net = Net::new(1);
    let node = Node::has_hidden(&net).await;
    until("the cluster registers the agent", async || !node.jobs().is_empty()).await;
    let input = json!({"model": "reranker", "purpose": "rank", "base": NAME, "chunks": ["00"], "query": "q"});
    let submission = probes::documents().expect("a package").submission(&input, 0);
    node.service.submit(&caller(), submission).await.expect("submitted");
    check(
        &node.told(|job| job.principal == caller().principal, &[OPEN]).await,
        &expect!["Unknown tool: atlas.documents.texts"],
    );
}
