//! The sources of document bases: one job reads them, and what it hands over replaces and removes nothing of somebody else.

use std::collections::BTreeSet;
use std::sync::Arc;

use atlas_api::types::{BaseChange, BaseDraft, DocumentDraft};
use atlas_bases::{COLLECTED_FROM, CollectedBase, Intake, KeptRange};
use atlas_identity::acts_as_cluster;
use atlas_types::JobId;

use super::{Node, caller, until};
use crate::testing::Net;
use crate::{Consistency, DocumentFilter, Error, probes};

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
        let ended = CollectedBase { job: JobId(job), sources, documents: 9, errors: vec!["e".to_owned()], failed };
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
