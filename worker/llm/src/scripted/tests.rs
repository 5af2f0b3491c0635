use atlas_model::ToolResult;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::testing::compact::{conversation, events_text};

fn check(yaml: &str, request: &Request, tries: u32, expected: &Expect) {
    let script = Script::parse(yaml.as_bytes()).expect("a script");
    let reply = script.call(request, tries);
    let (events, error) = match &reply.result {
        Ok(events) => (events.as_slice(), None),
        Err(error) => (&[][..], Some(error)),
    };
    expected.assert_eq(&format!("after {:?}\n{}", reply.delay, events_text(events, error)));
}

fn refused(yaml: &str) -> String {
    Script::parse(yaml.as_bytes()).expect_err("refused").to_string()
}

fn asking(text: &str) -> Request {
    Request { messages: vec![Message::user(text)].into(), ..Request::default() }
}

const SCRIPT: &str = r#"
- match: "*"
  times: 2
  error: { kind: rate_limited, message: slow down, retry_after_seconds: 1 }
- match: { regex: "^[Ww]eather", round: 1 }
  tool_calls:
    - { name: weather, arguments: { city: Bern } }
    - { id: x, name: weather, arguments: '{"ci' }
  usage: { input: 120, output: 9 }
- match: { round: 2 }
  delay_seconds: 0.25
  text: The sun shines.
- match: joke
  text: No.
  stop: refused
"#;

#[test]
fn errors_are_used_up_by_tries() {
    let request = Request { stream: true, ..asking("Weather?") };
    check(
        SCRIPT,
        &request,
        0,
        &expect![[r#"
        after 0ns
        error rate_limited: slow down"#]],
    );
    check(
        SCRIPT,
        &request,
        1,
        &expect![[r#"
        after 0ns
        error rate_limited: slow down"#]],
    );
    check(
        SCRIPT,
        &request,
        2,
        &expect![[r#"
        after 0ns
        call 0 call_1_0 weather
        arguments 0 "{\"city\":\"Bern\"}"
        call 1 x weather
        arguments 1 "{\"ci"
        parts:
          {"type":"tool_call","id":"call_1_0","name":"weather","arguments":{"city":"Bern"}}
          {"type":"tool_call","id":"x","name":"weather","arguments":"{\"ci"}
        stop: "tools"
        usage: {"input":120,"output":9,"cache_read":0,"cache_write":0,"reasoning":0}
        model: "mock"
        id: null"#]],
    );
}

#[test]
fn later_rounds_know_what_earlier_ones_used() {
    check(
        SCRIPT,
        &Request { stream: true, ..conversation() },
        0,
        &expect![[r#"
        after 250ms
        text "The "
        text "sun "
        text "shines."
        parts:
          {"type":"text","text":"The sun shines."}
        stop: "end"
        usage: {"input":75,"output":11,"cache_read":0,"cache_write":0,"reasoning":0}
        model: "mock"
        id: null"#]],
    );
    let twice = "[{match: '*', times: 1, text: one}, {match: '*', times: 1, text: two}]";
    let mut request = asking("?");
    for expected in [
        &expect![[r#"
        after 0ns
        parts:
          {"type":"text","text":"one"}
        stop: "end"
        usage: {"input":8,"output":8,"cache_read":0,"cache_write":0,"reasoning":0}
        model: "mock"
        id: null"#]],
        &expect![[r#"
        after 0ns
        parts:
          {"type":"text","text":"two"}
        stop: "end"
        usage: {"input":13,"output":8,"cache_read":0,"cache_write":0,"reasoning":0}
        model: "mock"
        id: null"#]],
    ] {
        check(twice, &request, 0, expected);
        request.messages.push(Message { role: Role::Assistant, parts: Vec::new() });
    }
    check(
        twice,
        &request,
        0,
        &expect![[r#"
        after 0ns
        error request: no rule of the script matches request 3 with the text "?""#]],
    );
}

#[test]
fn without_a_rule_the_call_fails() {
    check(
        SCRIPT,
        &asking("?"),
        2,
        &expect![[r#"
        after 0ns
        error request: no rule of the script matches request 1 with the text "?""#]],
    );
    check(
        "[]",
        &asking("x"),
        0,
        &expect![[r#"
        after 0ns
        error request: no rule of the script matches request 1 with the text "x""#]],
    );
}

#[test]
fn scripts_that_are_wrong() {
    let problems = [
        "{",
        "a: 1",
        "[1]",
        "[{}]",
        "[{match: '*'}]",
        "[{match: '*', txt: a}]",
        "[{match: {regexp: a}, text: a}]",
        "[{match: {regex: '('}, text: a}]",
        "[{match: '*', text: 1}]",
        "[{match: '*', text: a, error: b}]",
        "[{match: '*', error: {kind: bad}}]",
        "[{match: '*', text: a, delay_seconds: -1}]",
        "[{match: '*', text: a, times: 1.5}]",
        "[{match: '*', tool_calls: [{arguments: {}}]}]",
        "[{match: {regex: '(a{1000}){1000}'}, text: a}]",
    ];
    expect![[r#"
        the script is not readable YAML
        a script is a list of at most 1000 rules
        rule 1: a rule is not a mapping
        rule 1: the member "match" is missing
        rule 1: one of the members "text", "tool_calls" and "error" is missing
        rule 1: a rule has an unknown member "txt"; did you mean "text"?
        rule 1: match has an unknown member "regexp"; did you mean "regex"?
        rule 1: match.regex is not an expression: regex parse error:
            (
            ^
        error: unclosed group
        rule 1: text is not a text
        rule 1: a rule has either "error", or "text" and "tool_calls"
        rule 1: error.kind is "bad" and not one of credentials, login, unknown_model, too_long, request, rate_limited, quota, filtered, provider, connection, timeout, answer
        rule 1: delay_seconds is not a number of seconds from 0 to 3600
        rule 1: times is not a whole number from 0 on
        rule 1: a call has no name
        rule 1: match.regex is not an expression: Compiled regex exceeds size limit of 262144 bytes."#]].assert_eq(&problems.map(refused).join("\n"));
}

#[test]
fn the_example_of_the_module_is_a_script() {
    let text = include_str!("../scripted.rs");
    let (_, rest) = text.split_once("//! ```yaml\n").expect("an example");
    let (example, _) = rest.split_once("//! ```").expect("its end");
    let yaml = example.replace("//! ", "");
    assert_eq!(Script::parse(yaml.as_bytes()).map(|script| script.rules.len()), Ok(4));
}

proptest! {
    #[test]
    fn any_text_is_read(text in "(- match: ?|'\\*'|text: ?|error: ?|regex: ?|tool_calls: ?|[a-z0-9:{}\\[\\], \n(]){0,40}", tries in 0_u32..5) {
        if let Ok(script) = Script::parse(text.as_bytes()) {
            let request = conversation();
            prop_assert_eq!(script.call(&request, tries), script.call(&request, tries));
        }
    }
}

#[test]
fn arguments_that_are_no_json_stay_text() {
    let script = Script::parse(SCRIPT.as_bytes()).expect("a script");
    let events = script.call(&asking("Weather?"), 2).result.expect("an answer");
    let Some(Event::Answer(answer)) = events.last() else { panic!("no answer") };
    let arguments: Vec<&Value> = answer.tool_calls().map(|call| &call.arguments).collect();
    assert_eq!(arguments, [&json!({"city": "Bern"}), &json!("{\"ci")]);
}

#[test]
fn what_groups_matched_is_put_into_the_answer() {
    let script = r#"
- match: { regex: 'my name is (\w+)( indeed)?', round: 1 }
  tool_calls:
    - { name: keep, arguments: { entry: "{regex.1}{regex.2}", tags: ["{regex.0}", 1], other: "{regex.3} {system.1} {regex}" } }
- match: { system: 'Answer in (\w+)', result: '"id": ?(\d+)' }
  text: '{"kept": {result.1}, "in": "{system.1}"}'
- match: "*"
  text: "{result.1}"
"#;
    check(
        script,
        &asking("my name is {system.1}"),
        0,
        &expect![[r#"
        after 0ns
        parts:
          {"type":"text","text":"{result.1}"}
        stop: "end"
        usage: {"input":13,"output":10,"cache_read":0,"cache_write":0,"reasoning":0}
        model: "mock"
        id: null"#]],
    );
    check(
        script,
        &asking("Hello, my name is Ada."),
        0,
        &expect![[r#"
        after 0ns
        parts:
          {"type":"tool_call","id":"call_1_0","name":"keep","arguments":{"entry":"Ada","tags":["my name is Ada",1],"other":"{regex.3} {system.1} {regex}"}}
        stop: "tools"
        usage: {"input":13,"output":29,"cache_read":0,"cache_write":0,"reasoning":0}
        model: "mock"
        id: null"#]],
    );
    let returned = |content: &str| {
        let result =
            ToolResult { call: "1".to_owned(), name: "keep".to_owned(), content: content.to_owned(), error: false };
        let messages = vec![
            Message::user("my name is Ada"),
            Message { role: Role::Assistant, parts: Vec::new() },
            Message { role: Role::User, parts: vec![Part::ToolResult(result)] },
        ];
        Request { system: "Answer in German.".to_owned(), messages: messages.into(), ..Request::default() }
    };
    check(
        script,
        &returned(r#"{"id": 7}"#),
        0,
        &expect![[r#"
        after 0ns
        parts:
          {"type":"text","text":"{\"kept\": 7, \"in\": \"German\"}"}
        stop: "end"
        usage: {"input":34,"output":14,"cache_read":0,"cache_write":0,"reasoning":0}
        model: "mock"
        id: null"#]],
    );
    check(
        script,
        &returned("nothing"),
        0,
        &expect![[r#"
        after 0ns
        parts:
          {"type":"text","text":"{result.1}"}
        stop: "end"
        usage: {"input":33,"output":10,"cache_read":0,"cache_write":0,"reasoning":0}
        model: "mock"
        id: null"#]],
    );
}
