//! Models that take other settings than most.

use super::*;
use crate::openai::Responses;

fn settings(model: &str) -> Request {
    Request {
        model: model.to_owned(),
        max_tokens: Some(100),
        temperature: Some(0.5),
        top_p: Some(0.9),
        stop: vec!["END".to_owned()],
        ..asking(false)
    }
}

/// The settings of a request as they are sent, and what was left out.
fn sent(protocol: &dyn Protocol, request: &Request) -> String {
    let endpoint = Endpoint { base_url: "https://api.test".to_owned(), headers: Vec::new() };
    let parts = protocol.encode(&endpoint, request).expect("encodes");
    let Value::Object(mut body) = serde_json::from_slice(&parts.body).expect("JSON") else { panic!("no object") };
    for name in ["model", "messages", "input", "store"] {
        body.shift_remove(name);
    }
    format!("{} without {:?}", Value::Object(body), parts.dropped)
}

fn check(protocol: &dyn Protocol, request: &Request, expected: &Expect) {
    expected.assert_eq(&sent(protocol, request));
}

#[test]
fn reasoning_models_get_what_they_take() {
    let (openai, azure) = (Chat::openai("sk".into()), Chat::azure("sk".into(), None));
    let check = |request: &Request, expected: &Expect| {
        check(&openai, request, expected);
        assert_eq!(sent(&azure, request), sent(&openai, request));
        assert_eq!(sent(&Chat::compatible("", None), request), sent(&openai, request));
    };
    check(
        &settings("gpt-5-mini"),
        &expect![[r#"{"max_completion_tokens":100} without ["temperature", "top_p", "stop"]"#]],
    );
    check(
        &settings("o1"),
        &expect![[r#"{"max_completion_tokens":100,"stop":["END"]} without ["temperature", "top_p"]"#]],
    );
    check(
        &settings("o3-mini"),
        &expect![[r#"{"max_completion_tokens":100} without ["temperature", "top_p", "stop"]"#]],
    );
    check(
        &settings("o4-mini-2025-04-16"),
        &expect![[r#"{"max_completion_tokens":100} without ["temperature", "top_p", "stop"]"#]],
    );
    check(
        &settings("gpt-5-chat-latest"),
        &expect![[r#"{"max_completion_tokens":100,"temperature":0.5,"top_p":0.9,"stop":["END"]} without []"#]],
    );
    check(
        &settings("gpt-5.1"),
        &expect![[r#"{"max_completion_tokens":100,"temperature":0.5,"top_p":0.9} without ["stop"]"#]],
    );
    let reasons = Request { reasoning_effort: Some("low".to_owned()), ..settings("gpt-5.1") };
    check(
        &reasons,
        &expect![[
            r#"{"max_completion_tokens":100,"reasoning_effort":"low"} without ["temperature", "top_p", "stop"]"#
        ]],
    );
    // Models that nobody knows keep the usual request.
    check(
        &settings("gpt-4o"),
        &expect![[r#"{"max_tokens":100,"temperature":0.5,"top_p":0.9,"stop":["END"]} without []"#]],
    );
    check(
        &settings("my-deployment"),
        &expect![[r#"{"max_tokens":100,"temperature":0.5,"top_p":0.9,"stop":["END"]} without []"#]],
    );
}

#[test]
fn reasoning_models_get_what_they_take_in_responses() {
    let responses = Responses::openai("sk".into());
    check(
        &responses,
        &settings("gpt-5-mini"),
        &expect![[r#"{"max_output_tokens":100} without ["stop", "temperature", "top_p"]"#]],
    );
    check(
        &responses,
        &settings("gpt-4o"),
        &expect![[r#"{"max_output_tokens":100,"temperature":0.5,"top_p":0.9} without ["stop"]"#]],
    );
}
