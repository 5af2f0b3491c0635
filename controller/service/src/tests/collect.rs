//! The sources of document bases: one job reads them, and what it hands over replaces and removes nothing of somebody else.

use std::collections::BTreeSet;
use std::sync::Arc;

use atlas_api::types::{BaseChange, BaseDraft, DocumentDraft};
use atlas_bases::{COLLECTED_FROM, CollectedBase, Intake, KeptRange};
use atlas_identity::acts_as_cluster;
use atlas_package::PackFile;
use atlas_types::{Expect, Job, JobId};
use serde_json::json;

use super::{Node, caller, until};
use crate::testing::Net;
use crate::{Caller, Consistency, DocumentFilter, Error, ObjectChange, probes};

const NAME: &str = "sea";
const SITE: &str = "https://example.org/**";
const PAGE: &str = "https://example.com/page";

fn draft(source: &str, text: &str) -> DocumentDraft {
    DocumentDraft { source: source.to_owned(), text: text.to_owned(), ..DocumentDraft::default() }
}

impl Node {
    async fn has_sources(net: &Arc<Net>, sources: &[&str]) -> Self {
        let node = Self::start(net, 1).await;
        let sources = Some(sources.iter().map(|source| (*source).to_owned()).collect());
        let draft = BaseDraft { name: NAME.to_owned(), sources, ..BaseDraft::default() };
        node.service.bases().create(&caller(), draft).await.expect("made");
        node
    }

    async fn has(&self) -> BTreeSet<String> {
        let filter = DocumentFilter { limit: 100, ..DocumentFilter::default() };
        let page = self.service.bases().documents(&caller(), NAME, &filter, Consistency::Linearizable).await;
        page.expect("documents").documents.into_iter().map(|document| document.source).collect()
    }

    async fn takes(&self, from: &str, drafts: Vec<DocumentDraft>) -> Intake {
        self.service.bases().take(&caller(), NAME, from, drafts).await.expect("taken")
    }

    async fn keeps(&self, from: &str, seen: &[&str]) -> u64 {
        let seen = seen.iter().map(|name| (*name).to_owned()).collect();
        let range = KeptRange { seen, ..KeptRange::default() };
        self.service.bases().keep_seen(&caller(), NAME, from, &range).await.expect("removed")
    }

    async fn ends(&self, job: u64, failed: bool) -> u64 {
        let sources = vec![SITE.to_owned(), PAGE.to_owned()];
        let ended =
            CollectedBase { job: Some(JobId(job)), sources, documents: 9, errors: vec!["e".to_owned()], failed };
        self.service.bases().end_collection(&caller(), NAME, &ended).await.expect("ended")
    }
}

#[tokio::test]
async fn one_job_reads_the_sources_whoever_asks() {
    let net = Net::new(1);
    let node = Node::has_sources(&net, &[SITE]).await;
    // There is no node that could run the job.
    until("the leader submits a job", async || node.service.handle().applied().jobs_total() == 1).await;
    let asked = node.service.collect_base(&caller(), NAME).await.expect("a job");
    let state = node.service.handle().applied();
    let jobs: Vec<_> = state.jobs(&caller().namespace, None, None).collect();
    assert_eq!((jobs.len(), asked.job), (1, jobs[0].id.to_string()));
    assert!(probes::collector().expect("a package").runs(jobs[0]) && !acts_as_cluster(jobs[0]));
    let without = BaseDraft { name: "other".to_owned(), ..BaseDraft::default() };
    node.service.bases().create(&caller(), without).await.expect("made");
    let refused = node.service.collect_base(&caller(), "other").await.expect_err("no sources");
    assert!(matches!(&refused, Error::Malformed(why) if why.contains("has no sources")), "{refused}");
    assert!(matches!(node.service.collect_base(&caller(), "gone").await, Err(Error::UnknownObject(_))));
}

/// Another package under the name of the cluster's agent.
async fn is_foreign(node: &Node, who: &Caller) {
    let contract = "agent: {name: document-collector, version: 1.0.0, provider: {type: llm}}";
    let file = PackFile { path: "agent.yaml".to_owned(), bytes: contract.into(), executable: false };
    let package = atlas_package::pack_files(vec![file]).expect("a package").bytes;
    node.service.register(who, package.into(), false).await.expect("registered");
}

fn collector_jobs(node: &Node, who: &Caller) -> Vec<Arc<Job>> {
    node.service.handle().applied().jobs(&who.namespace, None, None).cloned().collect()
}

#[tokio::test]
async fn what_fails_for_some_bases_costs_no_other_its_turn() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    let (bad, good) = (caller().in_namespace("a").expect("a name"), caller().in_namespace("b").expect("a name"));
    is_foreign(&node, &bad).await;
    let makes = async |who: &Caller, name: &str| {
        let draft = BaseDraft { name: name.to_owned(), sources: Some(vec![SITE.to_owned()]), ..BaseDraft::default() };
        node.service.bases().create(who, draft).await.expect("made");
    };
    for name in ["a", "b", "c", "d", "e"] {
        makes(&bad, name).await;
    }
    makes(&good, "z").await;
    until("the other one is read", async || collector_jobs(&node, &good).len() == 1).await;
    assert!(collector_jobs(&node, &bad).is_empty());
    let says = async || {
        let base = node.service.bases().base(&bad, "a", Consistency::Linearizable).await.expect("a base");
        base.collected.map(|collected| collected.errors.join(" ")).unwrap_or_default()
    };
    until("the base says why", async || says().await.contains("is not the cluster's own agent")).await;
}

#[tokio::test]
async fn a_read_that_somebody_asked_for_and_that_fails_is_written_down() {
    let net = Net::new(1);
    let node = Node::has_sources(&net, &[SITE, PAGE]).await;
    until("the leader submits a job", async || node.service.handle().applied().jobs_total() == 1).await;
    // It has read all, and does so again only if somebody asks for it.
    let first = collector_jobs(&node, &caller())[0].id;
    node.ends(first.0, false).await;
    node.service.cancel(&caller(), first, true).await.expect("cancelled");
    let asked = node.service.collect_base(&caller(), NAME).await.expect("a job");
    let second = collector_jobs(&node, &caller())[0].id;
    assert!(second != first && asked.job == second.to_string());
    node.service.cancel(&caller(), second, true).await.expect("cancelled");
    let collected = async || {
        let base = node.service.bases().base(&caller(), NAME, Consistency::Linearizable).await.expect("a base");
        base.collected.expect("collected")
    };
    until("the end is written down", async || collected().await.job == second.to_string()).await;
    assert!(collected().await.errors[0].contains("is cancelled"), "{:?}", collected().await.errors);
}

#[tokio::test]
async fn a_source_is_named_once_and_settings_leave_room() {
    let net = Net::new(1);
    let node = Node::has_sources(&net, &[SITE]).await;
    let bases = node.service.bases();
    let change = |sources: Vec<String>| BaseChange { sources: Some(sources), ..BaseChange::default() };
    let twice = bases.change(&caller(), NAME, change(vec![PAGE.to_owned(), PAGE.to_owned()])).await;
    let twice = twice.expect_err("twice").to_string();
    assert_eq!(twice, "the base \"sea\" is refused: `spec.sources` names \"https://example.com/page\" twice");
    let many = (0..40).map(|number| format!("https://example.org/{number}/{}", "a".repeat(1_000))).collect();
    let many = bases.change(&caller(), NAME, change(many)).await.expect_err("too much").to_string();
    assert!(many.contains("besides what the cluster writes, more than 24576"), "{many}");
    // The same by the object.
    let wanted = ObjectChange { kind: "base".into(), name: NAME.into(), expect: Expect::Any, dry_run: false };
    let spec = json!({"sources": [PAGE, PAGE]});
    let refused = node.service.put_object(&caller(), &wanted, Default::default(), &spec).await;
    assert!(matches!(refused, Err(Error::ObjectRefused { .. })), "{refused:?}");
}

#[tokio::test]
async fn what_somebody_added_stays_and_what_is_gone_goes() {
    let net = Net::new(1);
    let node = Node::has_sources(&net, &[SITE, PAGE]).await;
    let bases = node.service.bases();
    bases.add(&caller(), NAME, vec![draft("hand.md", "By hand.")]).await.expect("added");
    let taken = node.takes(SITE, vec![draft("a", "One."), draft("b", "Two."), draft("hand.md", "By the site.")]).await;
    assert_eq!((taken.added, taken.refused.len(), taken.refused[0].0.as_str()), (2, 1, "hand.md"));
    let again = node.takes(SITE, vec![draft("a", "One."), draft("b", "New.")]).await;
    assert_eq!((again.added, again.unchanged, again.replaced), (0, 1, 1));
    node.takes(PAGE, vec![draft("c", "Three.")]).await;
    assert_eq!(node.keeps(SITE, &["a"]).await, 1);
    assert_eq!(node.keeps(SITE, &["a"]).await, 0, "a repeat removes nothing");
    assert_eq!(node.has().await.into_iter().collect::<Vec<_>>(), ["a", "c", "hand.md"]);
    // A source that the base no longer has takes its documents with it, when a job has got to its end.
    let change = BaseChange { sources: Some(vec![PAGE.to_owned()]), ..BaseChange::default() };
    bases.change(&caller(), NAME, change).await.expect("changed");
    assert_eq!(node.ends(1, true).await, 0);
    assert_eq!(node.ends(2, false).await, 1);
    assert_eq!(node.ends(2, false).await, 0);
    assert_eq!(node.has().await.into_iter().collect::<Vec<_>>(), ["c", "hand.md"]);
    let base = bases.base(&caller(), NAME, Consistency::Linearizable).await.expect("a base");
    let collected = base.collected.expect("collected");
    assert_eq!((collected.job, collected.documents, collected.errors.len()), (JobId(2).to_string(), 9, 1));
    // Whoever says so in the metadata has its document treated like one of the source.
    let mut own = draft("d", "Four.");
    own.metadata.insert(COLLECTED_FROM.to_owned(), PAGE.into());
    bases.add(&caller(), NAME, vec![own]).await.expect("added");
    assert_eq!(node.keeps(PAGE, &["c"]).await, 1);
}
