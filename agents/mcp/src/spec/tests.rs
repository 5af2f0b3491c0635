use expect_test::{Expect, expect};

use super::*;

fn check(spec: &str, expected: &Expect) {
    expected.assert_eq(&match ServerSpec::read(spec.as_bytes()) {
        Ok(spec) => format!("ok {}", serde_json::to_string(&spec).expect("JSON")),
        Err(error) => format!("! {error}"),
    });
}

#[test]
fn addresses() {
    check(
        r#"{"transport":"http","url":"https://a.b/mcp","later":1}"#,
        &expect![[
            r#"ok {"transport":"http","url":"https://a.b/mcp","timeout_seconds":60,"start_timeout_seconds":30,"idle_timeout_seconds":300}"#
        ]],
    );
    check(r#"{"transport":"http"}"#, &expect!["! `spec.url` is needed for the transport http"]);
    check(r#"{"transport":"sse","url":"ftp://a"}"#, &expect!["! `spec.url` does not start with http:// or https://"]);
    check(
        r#"{"transport":"http","url":"http://a","args":["x"]}"#,
        &expect!["! `spec.args` is for the transport stdio, not for http"],
    );
    check(
        r#"{"transport":"http","url":"http://a","headers":{"authorization":"Bearer sk-1"}}"#,
        &expect![
            "! `spec.headers` has a value of authorization that contains no reference: write secret://NAME or {{NAME}}"
        ],
    );
}

#[test]
fn programs() {
    check(
        r#"{"transport":"stdio","command":"uvx","args":["x"],"env":{"A":"1"},"cwd":"/srv"}"#,
        &expect![[
            r#"ok {"transport":"stdio","command":"uvx","args":["x"],"env":{"A":"1"},"cwd":"/srv","timeout_seconds":60,"start_timeout_seconds":30,"idle_timeout_seconds":300}"#
        ]],
    );
    check(r#"{"transport":"stdio","command":" "}"#, &expect!["! `spec.command` is needed for the transport stdio"]);
    check(
        r#"{"transport":"stdio","command":"x","forward_inbound_auth":true}"#,
        &expect!["! `spec.forward_inbound_auth` is for the transports http and sse, not for stdio"],
    );
    check(
        r#"{"transport":"stdio","command":"x","env":{"A B":"1"}}"#,
        &expect![[r#"! `spec.env` has a member "A B", which is not the name of a variable"#]],
    );
    check(r#"{"transport":"stdio","command":"x\u0000"}"#, &expect!["! `spec.command` has a text with a NUL character"]);
}

#[test]
fn tools_and_times() {
    let with = |member: &str| format!(r#"{{"transport":"http","url":"http://a",{member}}}"#);
    check(&with(r#""tools":[""]"#), &expect![[r#"! `spec.tools` has the name "", which no tool can have"#]]);
    check(
        &with(r#""pins":{"a":"x"}"#),
        &expect![[r#"! `spec.pins` has a value of "a" that is not sha256: and 64 digits"#]],
    );
    check(&with(r#""timeout_seconds":0"#), &expect!["! `spec.timeout_seconds` is between 1 and 86400"]);
    let refused = ServerSpec::read(with(r#""effects":{"a":"once"}"#).as_bytes()).expect_err("refused").to_string();
    assert!(refused.contains("unknown variant `once`, expected `pure` or `idempotent`"), "{refused}");
}

#[test]
fn the_own_credential_wins() {
    let mut spec = ServerSpec { forward_inbound_auth: true, ..ServerSpec::http("https://a") };
    assert!(spec.forwards());
    spec.headers.insert("AUTHORIZATION".to_owned(), "Bearer {{K}}".to_owned());
    assert!(!spec.forwards());
}

#[test]
fn tools_are_allowed_by_name() {
    let spec = ServerSpec { tools: Some(vec!["a".to_owned(), "b*".to_owned()]), ..ServerSpec::http("https://a") };
    assert!(spec.allows("a") && spec.allows("b1") && !spec.allows("a1") && !spec.allows("c"));
    assert!(ServerSpec::http("https://a").allows("anything"));
}
