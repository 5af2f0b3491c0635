use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::Secret;
use crate::testing::compact::{decode, request_text};

const ALL: [Dialect; 6] =
    [Dialect::Openai, Dialect::Voyage, Dialect::Jina, Dialect::Cohere, Dialect::Gemini, Dialect::Ollama];

fn protocol(dialect: Dialect) -> EmbeddingProtocol {
    let access = Access::Bearer { key: Secret::from("canary"), organization: None };
    EmbeddingProtocol { dialect, access, dimensions: Some(2) }
}

fn asked(task: ModelTask) -> Request {
    let texts = ["one".to_owned(), "two".to_owned()];
    Request { model: "m-1".to_owned(), ..Request::embed(task, texts) }
}

fn check_request(dialect: Dialect, task: ModelTask, expected: &Expect) {
    let endpoint = Endpoint { base_url: "https://e.test/v1".to_owned(), headers: Vec::new() };
    let parts = protocol(dialect).encode(&endpoint, &asked(task)).expect("encodes");
    expected.assert_eq(&request_text(&parts));
}

/// Shows the vectors of an answer and its tokens, or the error.
fn check_answer(dialect: Dialect, body: &str, expected: &Expect) {
    let decoder = || protocol(dialect).decoder(&asked(ModelTask::EmbedDocuments), &HeaderMap::new());
    let (events, error) = decode(decoder(), body.as_bytes(), 1 << 20);
    assert_eq!(decode(decoder(), body.as_bytes(), 3), (events.clone(), error.clone()), "a split changes nothing");
    let shown = match (events.first(), error) {
        (_, Some(error)) => format!("{}: {}", error.kind.name(), error.message),
        (Some(crate::Event::Answer(answer)), None) => {
            format!("{:?} {} tokens", answer.vectors(2).expect("two"), answer.usage.input)
        }
        _ => "nothing".to_owned(),
    };
    expected.assert_eq(&shown);
}

#[test]
fn requests_for_vectors() {
    check_request(
        Dialect::Openai,
        ModelTask::EmbedDocuments,
        &expect![[r#"
            POST https://e.test/v1/embeddings
            content-type: "application/json"
            authorization: Sensitive
            model: "m-1"
            input:
              "one"
              "two"
            dimensions: 2"#]],
    );
    check_request(
        Dialect::Voyage,
        ModelTask::EmbedQuery,
        &expect![[r#"
            POST https://e.test/v1/embeddings
            content-type: "application/json"
            authorization: Sensitive
            model: "m-1"
            input:
              "one"
              "two"
            input_type: "query"
            truncation: false
            output_dimension: 2"#]],
    );
    check_request(
        Dialect::Jina,
        ModelTask::EmbedQuery,
        &expect![[r#"
            POST https://e.test/v1/embeddings
            content-type: "application/json"
            authorization: Sensitive
            model: "m-1"
            input:
              "one"
              "two"
            task: "retrieval.query"
            dimensions: 2"#]],
    );
    check_request(
        Dialect::Cohere,
        ModelTask::EmbedDocuments,
        &expect![[r#"
            POST https://e.test/v1/embed
            content-type: "application/json"
            authorization: Sensitive
            model: "m-1"
            texts:
              "one"
              "two"
            input_type: "search_document"
            embedding_types:
              "float"
            truncate: "NONE"
            output_dimension: 2"#]],
    );
    check_request(
        Dialect::Gemini,
        ModelTask::EmbedDocuments,
        &expect![[r#"
            POST https://e.test/v1/models/m-1:batchEmbedContents
            content-type: "application/json"
            x-goog-api-key: Sensitive
            requests:
              {"model":"models/m-1","content":{"parts":[{"text":"one"}]},"taskType":"RETRIEVAL_DOCUMENT","outputDimensionality":2}
              {"model":"models/m-1","content":{"parts":[{"text":"two"}]},"taskType":"RETRIEVAL_DOCUMENT","outputDimensionality":2}"#]],
    );
    check_request(
        Dialect::Ollama,
        ModelTask::EmbedDocuments,
        &expect![[r#"
            POST https://e.test/v1/api/embed
            content-type: "application/json"
            authorization: Sensitive
            model: "m-1"
            input:
              "one"
              "two"
            truncate: false
            dimensions: 2"#]],
    );
}

#[test]
fn older_models_of_jina_have_no_tasks() {
    let request = Request { model: "jina-embeddings-v2-base-en".to_owned(), ..asked(ModelTask::EmbedQuery) };
    let parts = protocol(Dialect::Jina).encode(&Endpoint::default(), &request).expect("encodes");
    assert!(!request_text(&parts).contains("retrieval"), "{parts:?}");
}

#[test]
fn other_work_and_no_texts_are_not_sent() {
    let refused = |request: &Request| {
        protocol(Dialect::Openai).encode(&Endpoint::default(), request).expect_err("refused").to_string()
    };
    assert_eq!(refused(&Request::default()), "an embedding model does not support other work");
    assert_eq!(refused(&Request::embed(ModelTask::EmbedQuery, [])), "a request is not valid: it has no texts");
    let many = Request::embed(ModelTask::EmbedQuery, vec!["x".to_owned(); 2_049]);
    assert_eq!(refused(&many), "a request is not valid: it has 2049 texts, more than 2048");
}

#[test]
fn answers_with_vectors() {
    check_answer(
        Dialect::Openai,
        r#"{"object": "list", "data": [{"index": 1, "embedding": [3, 4e-1]}, {"index": 0, "embedding": [1, 2]}], "model": "x", "usage": {"prompt_tokens": 9, "total_tokens": 9}}"#,
        &expect!["[[1.0, 2.0], [3.0, 0.4]] 9 tokens"],
    );
    // Bytes in Base64, and no indexes.
    check_answer(
        Dialect::Openai,
        r#"{"data": [{"embedding": "AACAPw=="}, {"embedding": "AAAAQA=="}]}"#,
        &expect!["[[1.0], [2.0]] 0 tokens"],
    );
    check_answer(
        Dialect::Voyage,
        r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [2]}], "usage": {"total_tokens": 7}}"#,
        &expect!["[[1.0], [2.0]] 7 tokens"],
    );
    check_answer(
        Dialect::Cohere,
        r#"{"id": "i", "embeddings": {"float": [[1], [2]]}, "texts": ["one", "two"], "meta": {"billed_units": {"input_tokens": 4.0}}}"#,
        &expect!["[[1.0], [2.0]] 4 tokens"],
    );
    check_answer(
        Dialect::Gemini,
        r#"{"embeddings": [{"values": [1]}, {"values": [2]}]}"#,
        &expect!["[[1.0], [2.0]] 0 tokens"],
    );
    check_answer(
        Dialect::Ollama,
        r#"{"model": "x", "embeddings": [[1], [2]], "total_duration": 1, "prompt_eval_count": 3}"#,
        &expect!["[[1.0], [2.0]] 3 tokens"],
    );
}

#[test]
fn answers_that_no_search_can_use() {
    let check = |body: &str, expected: &Expect| check_answer(Dialect::Openai, body, expected);
    check(r#"{"data": [{"index": 0, "embedding": [1]}]}"#, &expect!["answer: the answer has 1 vectors for 2 texts"]);
    check(
        r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [2]}]}"#,
        &expect!["answer: two vectors have the index 0"],
    );
    check(
        r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 2, "embedding": [2]}]}"#,
        &expect!["answer: a vector has the index 2, and there are 2 texts"],
    );
    check(
        r#"{"data": [{"index": 0, "embedding": [1]}, {"embedding": [2]}]}"#,
        &expect!["answer: a vector has the index none, and there are 2 texts"],
    );
    check(
        r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]}"#,
        &expect!["answer: vector 1 has 2 dimensions, and vector 0 has 1"],
    );
    check(
        r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [0]}]}"#,
        &expect!["answer: vector 1 is all zeros"],
    );
    check(
        r#"{"data": [{"index": 0, "embedding": [1e60]}, {"index": 1, "embedding": [1]}]}"#,
        &expect![[
            r#"answer: the answer has no vectors (number out of range at line 1 column 41): {"data": [{"index": 0, "embedding": [1e60]}, {"index": 1, "embedding": [1]}]}"#
        ]],
    );
    check(
        r#"{"data": [{"embedding": [1]}, {"embedding": [NaN]}]}"#,
        &expect![[
            r#"answer: the answer has no vectors (expected value at line 1 column 46): {"data": [{"embedding": [1]}, {"embedding": [NaN]}]}"#
        ]],
    );
    check(
        r#"{"data": [{"embedding": [1]}, {"embedding": [null]}]}"#,
        &expect![[
            r#"answer: the answer has no vectors (invalid type: null, expected f32 at line 1 column 49): {"data": [{"embedding": [1]}, {"embedding": [null]}]}"#
        ]],
    );
    check(
        r#"{"data": [{"embedding": "x"}]}"#,
        &expect![[
            r#"answer: the answer has no vectors (a vector is a text, and not the Base64 of numbers at line 1 column 27): {"data": [{"embedding": "x"}]}"#
        ]],
    );
    check(r#"{"error": {"message": "quota", "code": "insufficient_quota"}}"#, &expect!["quota: quota"]);
    check("<html>", &expect!["answer: the answer has no vectors (expected value at line 1 column 1): <html>"]);
    let long = format!(r#"{{"data": [{{"embedding": [{}1]}}]}}"#, "1,".repeat(20_000));
    let (_, error) = decode(
        protocol(Dialect::Openai).decoder(&asked(ModelTask::EmbedQuery), &HeaderMap::new()),
        long.as_bytes(),
        1 << 20,
    );
    let text = error.expect("refused").message;
    assert!(text.contains("a vector has more than 16384 dimensions"), "{text}");
    let many = format!(r#"{{"data": [{}{{"embedding": [1]}}]}}"#, r#"{"embedding": [1]},"#.repeat(3_000));
    let (_, error) = decode(
        protocol(Dialect::Openai).decoder(&asked(ModelTask::EmbedQuery), &HeaderMap::new()),
        many.as_bytes(),
        1 << 20,
    );
    let text = error.expect("refused").message;
    assert!(text.contains("a list has more than 2048 elements"), "{text}");
}

proptest! {
    /// Whatever a server sends is an answer or an error.
    #[test]
    fn no_answer_ends_the_program(body in prop::collection::vec(any::<u8>(), 0..200), place in 0..ALL.len()) {
        let decoder = protocol(ALL[place]).decoder(&asked(ModelTask::EmbedDocuments), &HeaderMap::new());
        decode(decoder, &body, 7);
    }

    #[test]
    fn vectors_come_in_the_order_of_their_texts(order in Just((0..20_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let entry = |place: &usize| format!(r#"{{"index": {place}, "embedding": [{place}, 1]}}"#);
        let entries: Vec<String> = order.iter().map(entry).collect();
        let body = format!(r#"{{"data": [{}]}}"#, entries.join(","));
        let answer = read::answer(Dialect::Openai, body.as_bytes(), "m", 20).expect("an answer");
        let first: Vec<usize> = answer.vectors(20).expect("vectors").iter().map(|vector| vector[0] as usize).collect();
        prop_assert_eq!(first, (0..20).collect::<Vec<_>>());
    }
}
