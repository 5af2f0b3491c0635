//! Vectors and scores for document bases, with a worker that the test plays.

use std::sync::Arc;
use std::time::Duration;

use atlas_desk::requests;
use atlas_package::PackFile;
use atlas_retrieval::Vectors;
use atlas_types::{
    BootId, Command, CompleteJob, Expect, FailJob, Failure, FailureKind, Inventory, Job, JobStatus, NodeId,
    RegisterNode, StartJob, Usage,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::{Expect as Expected, expect};
use serde_json::{Value, json};

use super::{Node, caller};
use crate::document_models::{Chunks, EmbedAsk, Embedded, QuestionAsk, QuestionVector, RankAsk};
use crate::testing::Net;
use crate::{Caller, Consistency, Error, ObjectChange, View};

/// How long the test waits for a job that nobody does.
const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(120);

/// What a worker makes of an input: an output, or the code and the text of an error.
pub(super) type Answer = fn(&Value) -> Result<Value, (&'static str, &'static str)>;

/// Vectors of two numbers: how long a text is, and one.
pub(super) fn answered(input: &Value) -> Result<Value, (&'static str, &'static str)> {
    // This worker takes the key of a chunk for its text.
    let given = ["texts", "chunks"].into_iter().filter_map(|member| input[member].as_array());
    let texts: Vec<&str> = given.flatten().filter_map(Value::as_str).collect();
    let row = |text: &&str| vec![text.len() as f32, 1.0];
    Ok(match input["purpose"].as_str() {
        Some("document") => {
            let vectors = Vectors::from_rows(2, texts.iter().map(row)).expect("vectors");
            json!({"model": "m#1", "dimension": 2, "vectors": STANDARD.encode(vectors.to_bytes()), "tokens": texts.len()})
        }
        Some("question") => json!({"model": "m#1", "question": row(&texts[0]), "tokens": 1}),
        _ => json!({"scores": texts.iter().map(|text| text.len() as f64).collect::<Vec<_>>(), "tokens": 1}),
    })
}

fn failed(_: &Value) -> Result<Value, (&'static str, &'static str)> {
    Err(("E3202", "the key is missing"))
}

fn useless(_: &Value) -> Result<Value, (&'static str, &'static str)> {
    Ok(json!({"model": "m#1", "dimension": 2, "vectors": "AAAA", "scores": [], "tokens": 1}))
}

impl Node {
    /// A service with a model of each type.
    pub(super) async fn has_models(net: &Arc<Net>) -> Self {
        let node = Self::start(net, 1).await;
        for kind in ["chat", "embedding", "reranker"] {
            node.model(kind, kind).await;
        }
        node
    }

    pub(super) async fn model(&self, name: &str, kind: &str) {
        let change = ObjectChange { kind: "model".into(), name: name.into(), expect: Expect::Any, dry_run: false };
        let spec = json!({"provider": "openai", "name": "m", "type": kind, "timeout_seconds": 1 + self.jobs().len()});
        self.service.put_object(&caller(), &change, Default::default(), &spec).await.expect("stored");
    }

    pub(super) fn jobs(&self) -> Vec<Arc<Job>> {
        self.service.handle().applied().jobs(&caller().namespace, None, None).cloned().collect()
    }

    /// Does jobs while something is asked.
    pub(super) async fn answers<T>(&self, answer: Answer, asks: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            asked = asks => asked,
            () = self.works(answer) => panic!("a worker works for ever"),
        }
    }

    async fn works(&self, answer: Answer) {
        let node = NodeId::new("w1").expect("a name");
        let inventory = Inventory { places: 1, llm_places: 1, ..Inventory::default() };
        self.says(Command::RegisterNode(RegisterNode { node: node.clone(), boot_id: BootId(1), inventory })).await;
        loop {
            for job in self.jobs() {
                let Some(lease) = job.lease.as_ref().filter(|_| !job.status.is_terminal()) else { continue };
                let (id, token) = (job.id, lease.token);
                self.says(Command::StartJob(StartJob { job: id, node: node.clone(), token })).await;
                let input = self.service.bytes(&job.input).await.expect("an input");
                let (node, usage, stream) = (node.clone(), Usage::default(), None);
                self.says(match answer(&serde_json::from_slice(&input).expect("JSON")) {
                    Ok(output) => {
                        let output = self.service.payload(output.to_string().into()).await.expect("stored");
                        Command::CompleteJob(CompleteJob {
                            job: id,
                            node,
                            token,
                            output,
                            usage,
                            metadata: None,
                            stream,
                        })
                    }
                    Err((code, why)) => {
                        let failure = Failure { kind: FailureKind::Agent, error: why.into() };
                        let metadata = Some(json!({"_error_code": code}).to_string().into_bytes().into());
                        Command::FailJob(FailJob {
                            job: id,
                            node,
                            token,
                            failure,
                            output: None,
                            usage,
                            metadata,
                            stream,
                        })
                    }
                })
                .await;
            }
            self.service.shared.env.clock.sleep(Duration::from_millis(5)).await;
        }
    }

    /// Proposes what a worker reports, which may be late.
    async fn says(&self, command: Command) {
        let outcomes =
            self.service.handle().propose(vec![requests::of(&Caller::cluster(caller().door), command)]).await;
        outcomes.expect("applied");
    }

    async fn embeds(&self, texts: &[&str], wait: Duration, key: Option<&str>) -> Result<Embedded, Error> {
        let chunks = chunks(texts);
        let ask =
            EmbedAsk { model: "embedding".to_owned(), chunks, priority: 7, wait, request_id: key.map(str::to_owned) };
        self.service.embed(&caller(), ask).await.map_err(Error::from)
    }

    async fn asks(&self, text: &str) -> Result<Arc<QuestionVector>, Error> {
        self.service.embed_question(&caller(), QuestionAsk { model: "embedding", text, priority: 0 }).await
    }

    async fn ranks(&self, model: &str, texts: &[&str]) -> Result<Vec<f64>, Error> {
        let chunks = chunks(texts);
        self.service.rank(&caller(), RankAsk { model, query: "q", chunks, priority: 0 }).await
    }
}

fn chunks(texts: &[&str]) -> Chunks {
    Chunks { base: "b".to_owned(), keys: texts.iter().map(|text| (*text).to_owned()).collect() }
}

/// The code and the text of an error, without the ids of jobs.
fn check<T>(asked: Result<T, Error>, expected: &Expected) {
    let Err(error) = asked else { panic!("no error") };
    let text = error.to_string();
    let text = text.split(" (job-").next().unwrap_or_default();
    expected.assert_eq(&format!("{} {text}", error.entry().code));
}

#[tokio::test]
async fn texts_get_vectors_by_a_job_of_the_caller() {
    let net = Net::new(1);
    let node = Node::has_models(&net).await;
    let embedded = node.answers(answered, node.embeds(&["a", "bbb"], LONG, None)).await.expect("vectors");
    assert_eq!(embedded.model, "m#1");
    assert_eq!(*embedded.vectors, Vectors::from_rows(2, [[1.0, 1.0], [3.0, 1.0]]).expect("vectors"));
    let jobs = node.jobs();
    assert_eq!((jobs.len(), jobs[0].agent.as_str(), jobs[0].priority), (1, "document-models", 7));
    assert_eq!((&jobs[0].principal, &jobs[0].namespace), (&caller().principal, &caller().namespace));
    assert_eq!(&*jobs[0].metadata, b"{}");
}

#[tokio::test]
async fn a_large_input_says_beside_it_which_model_it_names() {
    let net = Net::new(1);
    let node = Node::has_models(&net).await;
    let text = "a".repeat(2_000);
    let embedded = node.answers(answered, node.embeds(&[text.as_str(); 100], LONG, None)).await.expect("vectors");
    assert_eq!(embedded.vectors.len(), 100);
    let metadata: Value = serde_json::from_slice(&node.jobs()[0].metadata).expect("JSON");
    assert_eq!(metadata, json!({"_named": {"model": "embedding"}}));
    let id = node.jobs()[0].id;
    let job = node.service.job(&caller(), id, View::Plain, Consistency::Linearizable).await.expect("a job");
    let mut shown = Vec::new();
    job.write(&mut shown, View::Plain);
    assert!(!String::from_utf8_lossy(&shown).contains("_named"), "it is ours");
}

#[tokio::test]
async fn a_repeat_finds_the_job_unless_that_failed() {
    let net = Net::new(1);
    let node = Node::has_models(&net).await;
    let embeds = || node.embeds(&["a"], LONG, Some("batch-1"));
    check(node.answers(failed, embeds()).await, &expect!["E3202 the key is missing"]);
    let first = node.answers(answered, embeds()).await.expect("vectors");
    let again = node.answers(failed, embeds()).await.expect("vectors");
    assert_eq!((first.vectors, node.jobs().len()), (again.vectors, 2));
    // Another request under the key is no repeat.
    node.answers(answered, node.embeds(&["bb"], LONG, Some("batch-1"))).await.expect("vectors");
    assert_eq!(node.jobs().len(), 3);
    // A key is not used up by failures.
    for _ in 0..10 {
        let failing = node.answers(failed, node.embeds(&["c"], LONG, Some("batch-2"))).await;
        check(failing, &expect!["E3202 the key is missing"]);
    }
}

#[tokio::test]
async fn a_repeated_question_costs_nothing() {
    let net = Net::new(1);
    let node = Node::has_models(&net).await;
    let vector = node.answers(answered, node.asks("how many?")).await.expect("a vector");
    assert_eq!((vector.model.as_str(), &vector.numbers), ("m#1", &vec![9.0, 1.0]));
    assert_eq!(node.answers(failed, node.asks("how many?")).await.expect("kept"), vector);
    assert_eq!(node.jobs().len(), 1);
    // Another revision of the model is asked again.
    node.model("embedding", "embedding").await;
    assert!(node.answers(failed, node.asks("how many?")).await.is_err());
    assert_eq!(node.answers(answered, node.ranks("reranker", &["a", "bbb"])).await.expect("scores"), [1.0, 3.0]);
}

#[tokio::test]
async fn what_cannot_be_asked_makes_no_job() {
    let net = Net::new(1);
    let node = Node::has_models(&net).await;
    check(node.ranks("none", &["a"]).await, &expect![[r#"E1115 no such model: "none""#]]);
    check(node.ranks("", &["a"]).await, &expect![[r#"E1115 no such model: """#]]);
    let chat = expect![[r#"E1104 the model "chat" has the type chat, and reranker is needed"#]];
    check(node.ranks("chat", &["a"]).await, &chat);
    check(node.ranks("reranker", &[]).await, &expect!["E1104 0 chunks: a request has 1 to 512"]);
    check(node.asks(" ").await, &expect!["E1104 the question is empty"]);
    // An agent of somebody else has the name.
    let contract = "agent: {name: document-models, version: 1.0.0, provider: {type: llm}}";
    let file = PackFile { path: "agent.yaml".to_owned(), bytes: contract.into(), executable: false };
    let package = atlas_package::pack_files(vec![file]).expect("a package").bytes;
    node.service.register(&caller(), package.into(), false).await.expect("registered");
    check(
        node.asks("a").await,
        &expect!["E1127 document-models 1.0.0 of this namespace is not the cluster's own agent; retire and delete it"],
    );
    assert!(node.jobs().is_empty());
}

#[tokio::test]
async fn answers_that_do_not_come_or_are_of_no_use_are_said() {
    let net = Net::new(1);
    let node = Node::has_models(&net).await;
    check(
        node.embeds(&["a"], SHORT, None).await,
        &expect!["E3201 no worker has answered within 0 s: waiting for a worker: none is registered"],
    );
    assert_eq!(node.jobs()[0].status, JobStatus::Cancelled);
    check(
        node.answers(useless, node.embeds(&["a"], LONG, None)).await,
        &expect![
            "E3201 the answer of a job for documents cannot be used: 3 bytes are no whole number of vectors of 6 bytes"
        ],
    );
    check(
        node.answers(useless, node.ranks("reranker", &["a"])).await,
        &expect!["E3201 the answer of a job for documents cannot be used: 0 scores for 1 texts"],
    );
}
