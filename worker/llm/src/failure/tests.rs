use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn check(status: u16, body: &str, expected: &Expect) {
    let error = of_response(StatusCode::from_u16(status).expect("a status"), body.as_bytes());
    expected.assert_eq(&format!("{} {}", error.kind.name(), error.message));
}

#[test]
fn every_known_shape() {
    check(
        401,
        r#"{"error": {"message": "Incorrect API key provided: sk-abc***********wxyz.", "type": "invalid_request_error", "code": "invalid_api_key"}}"#,
        &expect!["credentials Incorrect API key provided: [redacted]"],
    );
    check(
        529,
        r#"{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}"#,
        &expect!["provider Overloaded"],
    );
    check(404, r#"{"errors": [{"code": "not_found", "message": "no such"}]}"#, &expect!["unknown_model no such"]);
    check(
        400,
        r#"[{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid."}}]"#,
        &expect!["credentials API key not valid."],
    );
    check(
        404,
        "<!DOCTYPE html>\n<html><head><TITLE>\n404 Not Found</TITLE></head><body><h1>Nope</h1></body></html>",
        &expect!["unknown_model the provider answered 404 Not Found with a page for people: 404 Not Found"],
    );
    check(
        502,
        "<html><body>bad</body></html>",
        &expect!["provider the provider answered 502 Bad Gateway with a page for people: bad"],
    );
    check(422, r#"{"detail": "Unprocessable", "status": 422}"#, &expect!["request Unprocessable"]);
    check(422, r#"{"detail": [{"loc": ["body"], "msg": "field required"}]}"#, &expect!["request field required"]);
    check(404, r#"{"error": "model 'x' not found"}"#, &expect!["unknown_model model 'x' not found"]);
    check(400, r#"{"message": "nope"}"#, &expect!["request nope"]);
}

#[test]
fn other_bodies_are_shown() {
    check(
        502,
        "<html>\n<b>Bad gateway</b>",
        &expect!["provider the provider answered 502 Bad Gateway with a page for people: Bad gateway"],
    );
    check(503, "", &expect!["provider the provider answered 503 Service Unavailable without a text"]);
    check(
        400,
        r#"{"error": {"odd": 1}}"#,
        &expect![[r#"request the provider reported an error and did not say which: {"odd":1}"#]],
    );
    check(302, "", &expect!["answer the provider answered 302 Found without a text"]);
}

#[test]
fn codes_decide_before_the_status() {
    check(429, r#"{"error": {"code": "insufficient_quota", "message": "pay"}}"#, &expect!["quota pay"]);
    check(429, r#"{"error": {"type": "tokens", "message": "slow down"}}"#, &expect!["rate_limited slow down"]);
    check(400, r#"{"error": {"code": "context_length_exceeded", "message": "m"}}"#, &expect!["too_long m"]);
    check(
        400,
        r#"{"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}}"#,
        &expect!["too_long prompt is too long: 9 > 8"],
    );
    check(
        400,
        r#"{"error": {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}, "message": "m"}}"#,
        &expect!["filtered m"],
    );
    check(400, r#"{"error": {"type": "invalid_request_error", "message": "odd"}}"#, &expect!["request odd"]);
    check(403, r#"{"error": {"status": "PERMISSION_DENIED", "message": "m"}}"#, &expect!["credentials m"]);
    check(402, "{}", &expect!["quota {}"]);
    check(408, "{}", &expect!["timeout {}"]);
    check(409, "{}", &expect!["provider {}"]);
    check(413, "{}", &expect!["too_long {}"]);
    check(415, "{}", &expect!["request {}"]);
}

#[test]
fn errors_inside_of_a_stream() {
    let check = |text: &str, expected: &Expect| {
        let error = of_value(&json::parse(text.as_bytes()).expect("JSON"));
        expected.assert_eq(&format!("{} {:?} {}", error.kind.name(), error.status, error.message));
    };
    check(r#"{"error": {"code": 429, "message": "busy"}}"#, &expect!["rate_limited None busy"]);
    check(r#"{"type": "error", "error": {"type": "overloaded_error", "message": "m"}}"#, &expect!["provider None m"]);
    check(r#"{"type": "error", "code": "rate_limit_exceeded", "message": "m"}"#, &expect!["rate_limited None m"]);
    check(r#"{"error": "boom"}"#, &expect!["provider None boom"]);
    check("7", &expect!["provider None 7"]);
}

#[test]
fn messages_are_bounded() {
    let error = of_response(StatusCode::BAD_REQUEST, "é".repeat(100_000).as_bytes());
    assert_eq!(error.message.len(), MESSAGE_BYTES_MAX);
}

proptest! {
    #[test]
    fn any_body_is_read(status in 300_u16..1000, body in prop::collection::vec(any::<u8>(), 0..300)) {
        let error = of_response(StatusCode::from_u16(status).expect("a status"), &body);
        prop_assert!(error.message.len() <= MESSAGE_BYTES_MAX);
    }
}
