//! The leader makes the vectors of document bases, with a worker that the test plays.

use std::sync::Arc;
use std::time::Duration;

use atlas_api::types::{self, BaseChange, BaseDraft, BaseRebuild, DocumentDraft, DocumentQuery};
use atlas_bases::{NewVectors, chunk_key};
use atlas_desk::on_behalf;
use atlas_objects::BaseSpec;
use atlas_types::{ERASED_LABEL, Expect, Object, ObjectKind};
use serde_json::{Value, json};

use super::document_models::answered;
use super::{Node, caller, until};
use crate::testing::Net;
use crate::{Consistency, Error, ObjectChange};

const NAME: &str = "sea";

/// The same answers, of another model.
fn answered_anew(input: &Value) -> Result<Value, (&'static str, &'static str)> {
    answered(input).map(|output| match output {
        Value::Object(mut members) => {
            members.insert("model".to_owned(), "m#2".into());
            Value::Object(members)
        }
        other => other,
    })
}

fn text_of(source: &str) -> String {
    format!("The text of {source}.")
}

impl Node {
    /// A base whose model makes vectors.
    async fn has_vectors(net: &Arc<Net>) -> Self {
        let node = Self::has_models(net).await;
        let draft =
            BaseDraft { name: NAME.to_owned(), embedding: Some("embedding".to_owned()), ..BaseDraft::default() };
        node.service.bases().create(&caller(), draft).await.expect("made");
        node.gets(&["a.md", "b.md"]).await;
        node
    }

    async fn gets(&self, sources: &[&str]) {
        let draft = |source: &&str| DocumentDraft {
            source: (*source).to_owned(),
            text: text_of(source),
            ..DocumentDraft::default()
        };
        let drafts = sources.iter().map(draft).collect();
        self.service.bases().add(&caller(), NAME, drafts).await.expect("added");
    }

    async fn vectors(&self) -> types::BaseVectors {
        let base = self.service.bases().base(&caller(), NAME, Consistency::Linearizable).await.expect("a base");
        base.vectors.expect("it has a model")
    }

    async fn is(&self, state: &str) {
        until(state, async || self.vectors().await.state == state).await;
    }

    fn base(&self) -> Arc<Object> {
        let kind = ObjectKind::new("base").expect("a kind");
        self.service.handle().applied().objects_of_kind(&kind).next().cloned().expect("a base")
    }

    /// What is known of the model whose vectors the base has.
    fn made_by(&self) -> String {
        BaseSpec::read(&self.base().spec).expect("a spec").vectors.expect("vectors").model
    }
}

/// A model that accepts all texts but one.
fn choosy(input: &Value) -> Result<Value, (&'static str, &'static str)> {
    let refused = chunk_key(&text_of("b.md"));
    let has_refused = input["chunks"].as_array().is_some_and(|keys| keys.iter().any(|key| *key == refused.as_str()));
    if has_refused { Err(("E3201", "the text is too long")) } else { answered(input) }
}

fn no_key(_: &Value) -> Result<Value, (&'static str, &'static str)> {
    Err(("E3202", "the key is missing"))
}

#[tokio::test]
async fn a_text_that_the_model_refuses_costs_no_other_its_vector() {
    let net = Net::new(1);
    let node = Node::has_vectors(&net).await;
    node.gets(&["c.md", "d.md", "e.md"]).await;
    node.answers(choosy, async {
        node.is("failed").await;
        let vectors = node.vectors().await;
        assert_eq!((vectors.chunks, vectors.missing), (5, 1), "{vectors:?}");
        let error = vectors.error.unwrap_or_default();
        assert!(error.contains("the model refuses 1 texts, such as a text of \"b.md\": "), "{error}");
        assert!(error.contains("the text is too long"), "{error}");
        // It is left alone, and what comes is asked about.
        let before = node.jobs().len();
        node.gets(&["f.md"]).await;
        until("the new text has a vector", async || node.vectors().await.chunks == 6).await;
        node.is("failed").await;
        until("the new text has a vector", async || node.vectors().await.missing == 1).await;
        assert_eq!(node.jobs().len(), before + 1);
    })
    .await;
    // Another revision of the model may accept it.
    node.model("embedding", "embedding").await;
    node.gets(&["g.md"]).await;
    node.answers(answered, node.is("ready")).await;
}

#[tokio::test]
async fn a_model_that_cannot_be_called_is_not_asked_about_each_text() {
    let net = Net::new(1);
    let node = Node::has_vectors(&net).await;
    node.answers(no_key, node.is("failed")).await;
    assert_eq!(node.jobs().len(), 1);
}

#[tokio::test]
async fn vectors_are_erased_in_the_jobs_that_made_them() {
    let net = Net::new(1);
    let node = Node::has_vectors(&net).await;
    node.answers(answered, node.is("ready")).await;
    let is_erased = || node.jobs().iter().all(|job| job.labels.contains_key(ERASED_LABEL));
    until("erased", async || is_erased()).await;
    // What comes back whose vector was dropped is asked about again.
    let rebuild = BaseRebuild::default();
    let bases = node.service.bases();
    bases.remove(&caller(), NAME, "*.md").await.expect("removed");
    bases.rebuild(&caller(), NAME, &rebuild).await.expect("rebuilt");
    node.is("ready").await;
    node.gets(&["a.md", "b.md"]).await;
    node.answers(answered, node.is("ready")).await;
    assert_eq!((node.vectors().await.missing, node.jobs().len()), (0, 2));
}

#[tokio::test]
async fn a_base_that_changes_while_it_is_searched_is_found_unranked() {
    let net = Net::new(1);
    let node = Node::has_models(&net).await;
    let draft = BaseDraft { name: NAME.to_owned(), reranker: Some("reranker".to_owned()), ..BaseDraft::default() };
    node.service.bases().create(&caller(), draft).await.expect("made");
    node.gets(&["a.md", "b.md"]).await;
    let found = async |changes: bool| {
        let query = DocumentQuery { query: "text".to_owned(), top_k: Some(1), ..DocumentQuery::default() };
        let before = node.jobs().len();
        let who = caller();
        let search = node.service.search_documents(&who, NAME, query, Consistency::Linearizable);
        let fail = async {
            until("a job ranks", async || node.jobs().len() > before).await;
            if changes {
                node.gets(&["c.md"]).await;
            }
            let job = node.jobs()[0].id;
            node.service.cancel(&who, job, true).await.expect("cancelled");
        };
        tokio::join!(search, fail).0
    };
    assert!(found(false).await.is_err(), "the model was not asked");
    assert_eq!(found(true).await.expect("found").hits.len(), 1);
}

#[tokio::test]
async fn a_base_without_its_model_rests_and_is_written_once() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    // Objects may be written before the models that they name.
    let change = ObjectChange { kind: "base".into(), name: NAME.into(), expect: Expect::Any, dry_run: false };
    node.service.put_object(&caller(), &change, Default::default(), &json!({"embedding": "smal"})).await.expect("put");
    node.gets(&["a.md"]).await;
    node.is("failed").await;
    let error = node.vectors().await.error;
    assert_eq!(error.as_deref(), Some("no such model: \"smal\""));
    let before = node.base().revision;
    // Longer than the first pause.
    node.service.shared.env.clock.sleep(Duration::from_millis(5_500)).await;
    assert_eq!(node.base().revision, before, "a try in vain changes nothing");
    let cluster = on_behalf::cluster_in(caller().namespace);
    let bases = node.service.bases();
    let missing = bases.missing_vectors(&cluster, NAME).await.expect("read").expect("a model");
    let nothing = NewVectors { left: missing.len(), ..NewVectors::default() };
    bases.add_vectors(&cluster, NAME, &missing, &nothing).await.expect("kept");
    assert_eq!((node.vectors().await.state.as_str(), node.base().revision), ("failed", before));
}

#[tokio::test]
async fn a_base_gets_no_model_that_is_not_there() {
    let net = Net::new(1);
    let node = Node::has_vectors(&net).await;
    let bases = node.service.bases();
    let refused = |made: Result<types::Base, Error>| made.expect_err("refused").to_string();
    let draft = BaseDraft { name: "other".to_owned(), embedding: Some("smal".to_owned()), ..BaseDraft::default() };
    assert_eq!(
        refused(bases.create(&caller(), draft).await),
        "the base \"other\" is refused: `spec.embedding` names the model \"smal\", which does not exist; add it: atlasctl model add smal"
    );
    let change = BaseChange { reranker: Some("rank".to_owned()), ..BaseChange::default() };
    assert!(refused(bases.change(&caller(), NAME, change).await).contains("`spec.reranker` names the model \"rank\""));
}

#[tokio::test]
async fn vectors_that_are_made_anew_are_those_of_the_model_now() {
    let net = Net::new(1);
    let node = Node::has_vectors(&net).await;
    node.answers(answered, node.is("ready")).await;
    assert_eq!((node.made_by().as_str(), node.jobs().len()), ("m#1", 1));
    node.model("embedding", "embedding").await;
    let rebuild = BaseRebuild { vectors: true, ..BaseRebuild::default() };
    node.service.bases().rebuild(&caller(), NAME, &rebuild).await.expect("rebuilt");
    node.answers(answered_anew, node.is("ready")).await;
    assert_eq!((node.made_by().as_str(), node.jobs().len()), ("m#2", 2));
    // The model object is the same, and the worker has another model under its name.
    node.service.bases().rebuild(&caller(), NAME, &rebuild).await.expect("rebuilt");
    node.answers(answered, node.is("ready")).await;
    assert_eq!((node.made_by().as_str(), node.jobs().len()), ("m#1", 3));
}

#[tokio::test]
async fn vectors_of_another_model_object_are_dropped() {
    let net = Net::new(1);
    let node = Node::has_vectors(&net).await;
    node.answers(answered, node.is("ready")).await;
    node.model("other", "embedding").await;
    let change = BaseChange { embedding: Some("other".to_owned()), ..BaseChange::default() };
    let changed = node.service.bases().change(&caller(), NAME, change).await.expect("changed");
    assert_eq!(changed.vectors.expect("a model").state, "building");
    node.answers(answered_anew, node.is("ready")).await;
    assert_eq!(node.made_by(), "m#2");
    // The same by the object.
    let change = ObjectChange { kind: "base".into(), name: NAME.into(), expect: Expect::Any, dry_run: false };
    let spec = json!({"embedding": "embedding"});
    node.service.put_object(&caller(), &change, Default::default(), &spec).await.expect("put");
    assert_eq!(node.vectors().await.state, "building");
    node.answers(answered, node.is("ready")).await;
    assert_eq!(node.made_by(), "m#1");
}
