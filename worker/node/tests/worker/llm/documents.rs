//! Jobs of the cluster's agent for document bases: vectors and scores, whose calls are paid for once.

use atlas_llm_server::searches::{Searches, Then};
use atlas_model::DOCUMENTS_CONTRACT;
use atlas_retrieval::Vectors;
use atlas_types::Assignment;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::scene::Scene;
use super::stored::with;

/// Numbers of a vector of the server: one for each letter.
const DIMENSION: usize = 26;
const TEXTS: [&str; 3] = ["aaaa alfa", "bbbb beta", "cccc core"];

async fn scene() -> Scene {
    Scene::set(&[("agent.yaml", DOCUMENTS_CONTRACT)], &[]).await
}

/// A model of a type. One text is all that a call for vectors can hold.
fn model(server: &Searches, kind: &str) -> Value {
    json!({"provider": "openai", "name": format!("{kind}-1"), "type": kind, "base_url": server.url("v1"), "key": "secret://key",
        "prices": {"input": "1", "output": "2"}, "retry": {"attempts": 1},
        "context_window": if kind == "embedding" { 17 } else { 1_000 }})
}

fn asked(purpose: &str, texts: &[&str]) -> String {
    json!({"model": "small", "purpose": purpose, "texts": texts, "query": "zzz"}).to_string()
}

fn attempt(scene: &mut Scene, number: u32, input: &str, model: Value) -> Assignment {
    with(scene.attempt(number, input), &[("small", model)])
}

/// The output of a job that ends well.
async fn output(input: &str, model: Value) -> (Value, Value) {
    let mut scene = scene().await;
    let only = attempt(&mut scene, 1, input, model);
    let end = scene.run(&only).await;
    let output = serde_json::from_str(&end.output(&scene.controller)).expect("JSON");
    let metadata = Scene::metadata(&end);
    scene.node.shutdown().await;
    (output, metadata)
}

/// The letters of a text, as the server counts them.
fn letters(text: &str) -> Vec<f32> {
    let mut counts = vec![0.01; DIMENSION];
    for letter in text.bytes().filter(u8::is_ascii_alphabetic) {
        counts[usize::from(letter - b'a')] += 1.0;
    }
    counts
}

#[tokio::test]
async fn texts_get_vectors_as_bases_keep_them() {
    let server = Searches::start(|_, _| Then::Answer).expect("a server");
    let (output, metadata) = output(&asked("document", &TEXTS), model(&server, "embedding")).await;
    let bytes = STANDARD.decode(output["vectors"].as_str().expect("a text")).expect("Base64");
    let vectors = Vectors::from_bytes(DIMENSION, &bytes).expect("vectors");
    assert_eq!(vectors, Vectors::from_rows(DIMENSION, TEXTS.map(letters)).expect("vectors"));
    assert_eq!(output["dimension"], DIMENSION);
    let id = output["model"].as_str().expect("a text");
    assert!(id.starts_with("embedding-1#") && !id.contains("127.0.0.1"), "{id}");
    // A token has four bytes.
    assert_eq!((output["tokens"].as_u64(), server.answered().len()), (Some(9), 3));
    assert_eq!((&metadata["_trace_input_tokens"], &metadata["_trace_model"]), (&json!(9), &json!("embedding-1")));
    assert!(metadata["_models"]["small"].is_object(), "{metadata}");
}

#[tokio::test]
async fn a_question_gets_its_vector_and_texts_get_scores() {
    let server = Searches::start(|_, _| Then::Answer).expect("a server");
    let (question, _) = output(&asked("question", &["a b"]), model(&server, "embedding")).await;
    let numbers: Vec<f32> = serde_json::from_value(question["question"].clone()).expect("numbers");
    assert_eq!(numbers, letters("a b"));
    let (documents, _) = output(&asked("document", &["a b"]), model(&server, "embedding")).await;
    assert_eq!(question["model"], documents["model"]);
    let (ranked, _) = output(&asked("rank", &["a", "zip", "b"]), model(&server, "reranker")).await;
    let scores: Vec<f64> = serde_json::from_value(ranked["scores"].clone()).expect("numbers");
    assert!(scores.len() == 3 && scores[1] > scores[0] && scores[1] > scores[2], "{scores:?}");
}

#[tokio::test]
async fn a_lost_attempt_pays_no_batch_twice() {
    let server = Searches::start(|_, _| Then::Answer).expect("a server");
    let mut scene = scene().await;
    let input = asked("document", &TEXTS);
    let lost = attempt(&mut scene, 1, &input, model(&server, "embedding"));
    scene.session.grant(&lost).await;
    // The settings, the plan, and two calls.
    assert!(scene.record_until(4).await.is_none());
    scene.stop(&lost).await;
    let next = attempt(&mut scene, 2, &input, model(&server, "embedding"));
    let end = scene.run(&next).await;
    let output: Value = serde_json::from_str(&end.output(&scene.controller)).expect("JSON");
    let mut texts: Vec<String> = server.answered().into_iter().flat_map(|asked| asked.texts).collect();
    texts.sort();
    assert_eq!(texts, TEXTS);
    assert_eq!(output["tokens"], 9, "also what the lost attempt used");
    let cost: u64 = scene.journal.steps.iter().map(|step| step.usage.cost_nanodollars).sum();
    assert_eq!(cost, 9 * 1_000);
    scene.node.shutdown().await;
}

async fn check(then: Then, kind: &str, input: &str, code: &str, expected: &Expect) {
    let server = Searches::start(move |_, _| then.clone()).expect("a server");
    let mut scene = scene().await;
    let only = attempt(&mut scene, 1, input, model(&server, kind));
    let end = scene.run(&only).await;
    let address = server.url("v1").replace("http://", "").replace("/v1", "");
    expected.assert_eq(&end.error().replace(&address, "ADDRESS"));
    assert_eq!(end.metadata()["_error_code"], code);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_answered_is_said() {
    let documents = asked("document", &TEXTS);
    check(Then::Half, "embedding", &documents, "E3201", &expect![[r#"the model "small" of the search of documents: the answer has 0 vectors for 1 texts (model "small", embedding-1 at ADDRESS, status 200, 1 try): compare the provider and the base_url of the model"#]]).await;
    check(Then::Error(400), "embedding", &documents, "E3201", &expect![[r#"the model "small" of the search of documents: not now (model "small", embedding-1 at ADDRESS, status 400, 1 try): change what the provider names: the input, the contract, or the settings of the model"#]]).await;
    check(Then::Half, "reranker", &asked("rank", &["a", "b"]), "E3201", &expect![[r#"the model "small" of the search of documents: the answer has 1 scores for 2 texts (model "small", reranker-1 at ADDRESS, status 200, 1 try): compare the provider and the base_url of the model"#]]).await;
    let other = expect![[r#"the model "small" is for other work; its type must be embedding"#]];
    check(Then::Answer, "reranker", &documents, "E3202", &other).await;
    let empty = expect!["Input validation: text 1 is empty"];
    check(Then::Answer, "embedding", &asked("document", &["a", ""]), "E1102", &empty).await;
    let many = expect!["Input validation: a question is one text"];
    check(Then::Answer, "embedding", &asked("question", &TEXTS), "E1102", &many).await;
}
