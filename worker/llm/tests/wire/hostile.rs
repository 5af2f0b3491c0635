//! Servers that answer what no provider should: each call ends with an error of a kind, within bounds.

use std::time::Duration;

use atlas_llm::client::{Backend, Client, Target};
use atlas_model::{Message, Request};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::chat::{HOST, KEY, finish, strict, target, text};
use crate::machine::run;
use crate::server::{Reply, Server};

/// The error of one try, and the virtual time it took.
fn check(reply: Reply, stream: bool, expected: &Expect) {
    let line = run(|env, network| async move {
        let server = Server::start(&env, &network, HOST, strict, vec![reply]);
        let request = Request { messages: vec![Message::user("Hi")].into(), stream, ..Request::default() };
        let target = Target { attempts: 1, ..target() };
        let begin = env.clock.monotonic();
        let limit = Duration::from_secs(3600);
        let called = Client::new(env.clone()).call(&[target], &request, limit, &mut |_| {}).await;
        let error = called.expect_err("an error").error;
        assert_eq!(server.left(), 0, "the request was accepted");
        assert!(error.message.len() <= 2048, "bounded");
        let (length, message) = (error.message.len(), error.message.replace(&"x".repeat(20), "").replace("[[[[", ""));
        let shown: String = message.chars().take(150).collect();
        format!(
            "{} after {:?}, {length} bytes: {shown}",
            error.kind.name(),
            env.clock.monotonic().saturating_sub(begin)
        )
    });
    assert!(!line.contains(KEY) && !line.contains("canary"), "{line}");
    expected.assert_eq(&line);
}

fn sse(text: &str) -> Reply {
    Reply::new(200, "text/event-stream", text.to_owned())
}

#[test]
fn whole_answers() {
    check(
        Reply::new(200, "application/json", ""),
        false,
        &expect!["answer after 0ns, 69 bytes: the answer is not JSON: EOF while parsing a value at line 1 column 0:"],
    );
    check(
        Reply::new(200, "application/json", "{\"choices\": ["),
        false,
        &expect![[
            r#"answer after 0ns, 83 bytes: the answer is not JSON: EOF while parsing a list at line 1 column 13: {"choices": ["#
        ]],
    );
    check(
        Reply::new(200, "text/html", "<html>maintenance</html>"),
        false,
        &expect![
            "answer after 0ns, 240 bytes: the answer is not JSON: expected value at line 1 column 1: <html>maintenance</html>: the API is not at localhost:1/…/chat/completions; the base_url of"
        ],
    );
    check(
        Reply::json(200, &json!({"choices": []})),
        false,
        &expect!["answer after 0ns, 25 bytes: the answer has no choices"],
    );
    check(
        Reply::json(200, &json!({"error": {"message": "no", "code": "insufficient_quota"}})),
        false,
        &expect!["quota after 0ns, 2 bytes: no"],
    );
    check(
        Reply::new(200, "application/json", "[".repeat(100_000)),
        false,
        &expect![
            "answer after 0ns, 583 bytes: the answer is not JSON: recursion limit exceeded at line 1 column 128: "
        ],
    );
    check(
        Reply::new(200, "application/json", format!("[{}0]", "0,".repeat(300_000))),
        false,
        &expect![
            "answer after 0ns, 561 bytes: the answer is JSON with more than 200000 values: [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
        ],
    );
    check(
        Reply::new(200, "application/json", "{").endless(vec![b' '; 65_536], Duration::ZERO),
        false,
        &expect!["answer after 0ns, 39 bytes: the answer is larger than 8388608 bytes"],
    );
    check(
        Reply::new(200, "application/json", "{").cut(),
        false,
        &expect!["connection after 1ms, 51 bytes: the connection ended before the answer was complete"],
    );
    let calls: Vec<Value> =
        (0..500).map(|at| json!({"id": at.to_string(), "function": {"name": "f", "arguments": "{}"}})).collect();
    check(
        Reply::json(200, &json!({"choices": [{"message": {"tool_calls": calls}}]})),
        false,
        &expect!["answer after 0ns, 36 bytes: the answer calls more than 128 tools"],
    );
}

#[test]
fn streams() {
    check(Reply::json(200, &json!({"a": 1})), true, &expect!["answer after 0ns, 25 bytes: the answer has no choices"]);
    check(
        Reply::new(200, "text/html", "<html>").endless("x".repeat(9999), Duration::ZERO),
        true,
        &expect![
            "answer after 0ns, 711 bytes: the answer is text/html and not a stream: <html>xxxxxx: the API is not at localhost:1/…/chat/completions; the base_url of this model is what comes bef"
        ],
    );
    check(
        sse("data: {\"choi\n\n"),
        true,
        &expect![[
            r#"answer after 0ns, 88 bytes: a piece of the stream is not JSON: EOF while parsing a string at line 1 column 6: {"choi"#
        ]],
    );
    check(
        sse("data: [DONE]\n\n"),
        true,
        &expect!["connection after 0ns, 51 bytes: the connection ended before the answer was complete"],
    );
    check(
        sse(""),
        true,
        &expect!["connection after 0ns, 51 bytes: the connection ended before the answer was complete"],
    );
    check(
        Reply::events(&[text("x"), json!({"error": {"message": format!("key {KEY}"), "code": 500}}), finish()]),
        true,
        &expect!["provider after 0ns, 14 bytes: key [redacted]"],
    );
    check(
        sse("data: ").endless("x".repeat(65_536), Duration::ZERO),
        true,
        &expect!["answer after 0ns, 51 bytes: an event of the stream is larger than 8388608 bytes"],
    );
    let piece = format!("data: {}\n\n", text(&"x".repeat(60_000)));
    check(
        sse("").endless(piece, Duration::ZERO),
        true,
        &expect!["answer after 0ns, 39 bytes: the answer is larger than 8388608 bytes"],
    );
    check(
        sse("").endless(": keep-alive\n\n", Duration::from_secs(10)),
        true,
        &expect!["timeout after 60s, 21 bytes: no answer within 60 s"],
    );
    check(
        sse("").endless(format!(": {}\n", "x".repeat(60_000)), Duration::ZERO),
        true,
        &expect!["answer after 0ns, 40 bytes: the stream is longer than 67108864 bytes"],
    );
}

#[test]
fn refusals() {
    check(
        Reply::new(500, "text/plain", format!("stack trace with {KEY}")),
        false,
        &expect!["provider after 0ns, 27 bytes: stack trace with [redacted]"],
    );
    check(
        Reply::new(403, "text/plain", format!("{}{KEY}", "x".repeat(2030))),
        false,
        &expect!["credentials after 0ns, 2040 bytes: xxxxxxxxxx[redacted]"],
    );
    check(
        Reply::new(400, "application/json", "{\"error\": ").endless("x".repeat(9999), Duration::ZERO),
        true,
        &expect![[r#"request after 0ns, 2048 bytes: {"error": xxxxxxxxxxxxxxxxxx"#]],
    );
    check(
        Reply::new(503, "text/plain", "wait").wait(Duration::from_secs(21)),
        false,
        &expect!["provider after 20s, 4 bytes: wait"],
    );
    check(Reply::new(502, "text/plain", "gone").cut(), false, &expect!["provider after 1ms, 4 bytes: gone"]);
    check(
        Reply::json(429, &json!({"error": {"message": "slow"}})).header("retry-after", "NaN"),
        false,
        &expect!["rate_limited after 0ns, 4 bytes: slow"],
    );
}

/// The error of a call whose base URL is wrong, or whose model is.
fn check_address(reply: Reply, expected: &Expect) {
    check_address_of(target(), reply, expected);
}

fn check_address_of(target: Target, reply: Reply, expected: &Expect) {
    let line = run(|env, network| async move {
        let _server = Server::start(&env, &network, HOST, |_| Ok(()), vec![reply]);
        let request = Request { messages: vec![Message::user("Hi")].into(), ..Request::default() };
        let target = Target { attempts: 1, ..target };
        let limit = Duration::from_secs(60);
        let called = Client::new(env.clone()).call(&[target], &request, limit, &mut |_| {}).await;
        let error = called.expect_err("an error").error;
        format!("{} {:?}: {}", error.kind.name(), error.status, error.message)
    });
    expected.assert_eq(&line);
}

#[test]
fn a_wrong_base_url_is_told_from_an_unknown_model() {
    check_address(
        Reply::new(404, "text/plain", "404 page not found"),
        &expect![[
            r#"answer Some(404): 404 page not found: the API is not at localhost:1/…/chat/completions; the base_url of this model is what comes before "/chat/completions"; at most servers it ends with "/v1""#
        ]],
    );
    check_address(
        Reply::json(404, &json!({"detail": "Not Found"})),
        &expect![[
            r#"answer Some(404): Not Found: the API is not at localhost:1/…/chat/completions; the base_url of this model is what comes before "/chat/completions"; at most servers it ends with "/v1""#
        ]],
    );
    check_address(
        Reply::json(404, &json!({"error": {"message": "Invalid URL (POST /v1/chat/completions)"}})),
        &expect![[
            r#"answer Some(404): Invalid URL (POST /…/chat/completions): the API is not at localhost:1/…/chat/completions; the base_url of this model is what comes before "/chat/completions"; at most servers it ends with "/v1""#
        ]],
    );
    check_address(
        Reply::new(405, "text/html", "<h1>405 Not Allowed</h1>"),
        &expect![[
            r#"answer Some(405): <h1>405 Not Allowed</h1>: the API is not at localhost:1/…/chat/completions; the base_url of this model is what comes before "/chat/completions"; at most servers it ends with "/v1""#
        ]],
    );
    check_address(
        Reply::new(200, "text/html", "<html>Welcome</html>"),
        &expect![[
            r#"answer Some(200): the answer is not JSON: expected value at line 1 column 1: <html>Welcome</html>: the API is not at localhost:1/…/chat/completions; the base_url of this model is what comes before "/chat/completions"; at most servers it ends with "/v1""#
        ]],
    );
    check_address(
        Reply::json(404, &json!({"error": {"message": "The model `gpt-test` does not exist"}})),
        &expect!["unknown_model Some(404): The model `gpt-test` does not exist"],
    );
    check_address(
        Reply::json(404, &json!({"error": {"message": "gpt-test: not found"}})),
        &expect!["unknown_model Some(404): gpt-test: not found"],
    );
    check_address(Reply::json(200, &json!({"error": {"message": "oops"}})), &expect!["provider Some(200): oops"]);
}

#[test]
fn a_key_in_the_path_of_a_base_url_is_not_repeated() {
    let mut target = target();
    let Backend::Http(http) = &mut target.backend else { unreachable!("the target is a provider") };
    http.endpoint.base_url = format!("http://{HOST}/0123456789abcdef/openai");
    check_address_of(
        target,
        Reply::json(404, &json!({"error": "Cannot POST /0123456789abcdef/openai/chat/completions"})),
        &expect![[
            r#"answer Some(404): Cannot POST /…/chat/completions: the API is not at localhost:1/…/chat/completions; the base_url of this model is what comes before "/chat/completions"; at most servers it ends with "/v1""#
        ]],
    );
}
