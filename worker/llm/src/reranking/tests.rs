use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::Secret;
use crate::testing::compact::{decode, request_text};

fn protocol(dialect: Dialect) -> RerankingProtocol {
    RerankingProtocol { dialect, access: Access::Bearer { key: Secret::from("canary"), organization: None } }
}

fn asked() -> Request {
    Request { model: "m-1".to_owned(), ..Request::rank("why?", ["one".to_owned(), "two".to_owned()]) }
}

fn check_request(dialect: Dialect, expected: &Expect) {
    let endpoint = Endpoint { base_url: "https://e.test/v1".to_owned(), headers: Vec::new() };
    let parts = protocol(dialect).encode(&endpoint, &asked()).expect("encodes");
    expected.assert_eq(&request_text(&parts));
}

fn check_answer(body: &str, expected: &Expect) {
    let decoder = protocol(Dialect::Jina).decoder(&asked(), &HeaderMap::new());
    let (events, error) = decode(decoder, body.as_bytes(), 5);
    let shown = match (events.first(), error) {
        (_, Some(error)) => format!("{}: {}", error.kind.name(), error.message),
        (Some(crate::Event::Answer(answer)), None) => {
            format!("{:?} {} tokens", answer.scores(2).expect("two"), answer.usage.input)
        }
        _ => "nothing".to_owned(),
    };
    expected.assert_eq(&shown);
}

#[test]
fn requests_for_scores() {
    check_request(
        Dialect::Jina,
        &expect![[r#"
            POST https://e.test/v1/rerank
            content-type: "application/json"
            authorization: Sensitive
            model: "m-1"
            query: "why?"
            documents:
              "one"
              "two"
            top_n: 2
            return_documents: false"#]],
    );
    check_request(
        Dialect::Voyage,
        &expect![[r#"
            POST https://e.test/v1/rerank
            content-type: "application/json"
            authorization: Sensitive
            model: "m-1"
            query: "why?"
            documents:
              "one"
              "two"
            top_k: 2
            truncation: false"#]],
    );
    check_request(
        Dialect::Cohere,
        &expect![[r#"
            POST https://e.test/v1/rerank
            content-type: "application/json"
            authorization: Sensitive
            model: "m-1"
            query: "why?"
            documents:
              "one"
              "two"
            top_n: 2"#]],
    );
    let error = protocol(Dialect::Cohere).encode(&Endpoint::default(), &Request::default()).expect_err("refused");
    assert_eq!(error.to_string(), "a reranker does not support other work");
}

#[test]
fn answers_with_scores() {
    check_answer(
        r#"{"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 1e-3}], "usage": {"total_tokens": 6}}"#,
        &expect!["[0.001, 0.9] 6 tokens"],
    );
    // Voyage and servers of their own.
    check_answer(
        r#"{"data": [{"index": 0, "score": -2}, {"index": 1, "score": 3}]}"#,
        &expect!["[-2.0, 3.0] 0 tokens"],
    );
}

#[test]
fn answers_without_a_score_for_each_text() {
    check_answer(
        r#"{"results": [{"index": 1, "relevance_score": 0.9}]}"#,
        &expect!["answer: the answer has 1 scores for 2 texts"],
    );
    check_answer(
        r#"{"results": [{"index": 1, "relevance_score": 0.9}, {"index": 1, "relevance_score": 0.9}]}"#,
        &expect!["answer: two scores have the index 1"],
    );
    check_answer(
        r#"{"results": [{"index": 2, "relevance_score": 0.9}]}"#,
        &expect!["answer: a score has the index 2, and there are 2 texts"],
    );
    check_answer(
        r#"{"results": [{"index": 0, "relevance_score": 1e99}, {"index": 1, "relevance_score": 1}]}"#,
        &expect![[
            r#"answer: the answer has no scores (number out of range at line 1 column 49): {"results": [{"index": 0, "relevance_score": 1e99}, {"index": 1, "relevance_score": 1}]}"#
        ]],
    );
    check_answer(
        r#"{"results": [{"relevance_score": 1}]}"#,
        &expect![[
            r#"answer: the answer has no scores (missing field `index` at line 1 column 35): {"results": [{"relevance_score": 1}]}"#
        ]],
    );
    check_answer(
        r#"{"detail": "busy"}"#,
        &expect![[
            r#"answer: the answer has no scores (missing field `results` at line 1 column 18): {"detail": "busy"}"#
        ]],
    );
}

proptest! {
    #[test]
    fn no_answer_ends_the_program(body in prop::collection::vec(any::<u8>(), 0..200)) {
        decode(protocol(Dialect::Jina).decoder(&asked(), &HeaderMap::new()), &body, 7);
    }
}
