//! Tests how the body of a submission is parsed.

use expect_test::expect;

use super::*;

fn read_text(body: &str) -> String {
    match read_submission(&Bytes::copy_from_slice(body.as_bytes())) {
        Ok((submission, _)) => {
            format!("{} {} {}", submission.agent, String::from_utf8_lossy(&submission.input), submission.priority)
        }
        Err(Problem::Service(error)) => format!("{}: {error}", error.entry().code),
        Err(other) => format!("{other:?}"),
    }
}

#[test]
fn a_title_is_one_short_line() {
    let title = |title: &str| {
        let body = serde_json::json!({"agent": "echo", "title": title}).to_string();
        read_submission(&body.into()).map(|(submission, unknown)| (submission.title, unknown)).map_err(|_| ())
    };
    assert_eq!(title("weekly report"), Ok((Some("weekly report".into()), Vec::new())));
    assert_eq!(title(""), Ok((None, Vec::new())));
    assert_eq!(title(&"é".repeat(200)), Ok((Some("é".repeat(200).into()), Vec::new())));
    assert_eq!([title(&"é".repeat(201)), title("two\nlines")], [Err(()), Err(())]);
    assert_eq!([title("two\u{2028}lines"), title("paid\u{202e}elif")], [Err(()), Err(())]);
}

#[test]
fn bodies_are_read_as_the_source_system_reads_them() {
    let bodies = [
        r#"{"agent": "echo"}"#,
        r#"{"agent": "echo", "input": {"a": [1, 2]}, "priority": 2.9}"#,
        r#"{"agent": "echo", "input": null, "priority": " 5 "}"#,
        r#"{"agent": "x", "agent": "echo", "priority": true}"#,
        r#"{"agent": "echo", "priority": -7.5}"#,
        r#"{"agent": "echo", "priority": 1e30}"#,
        r#"{"agent": "echo", "priority": "high"}"#,
        r#"{"agent": "echo", "priority": null}"#,
        r#"{"agent": "echo", "priority": []}"#,
        r#"{"input": {}}"#,
        r#"{"agent": ""}"#,
        r#"{"agent": null}"#,
        r#"{"agent": 5}"#,
        r#"{"agent": "a/b"}"#,
        r#"{"agent": "echo", "labels": {"a": 1}}"#,
        r#"{"agent": "echo", "timeout": -1}"#,
        r#"{"agent": "echo", "timeout": 1e-9}"#,
        r#"{"agent": "echo", "timeout": 1e10}"#,
        r#"{"agent": "echo", "timeout": "soon"}"#,
        r#"{"agent": "echo", "at": 1795348867000}"#,
        r#"{"agent": "echo", "budget_usd": -1}"#,
        r#"{"agent": "echo", "budget_usd": 1e-2}"#,
        r#"{"agent": "echo", "budget_usd": []}"#,
        r#"{"agent": "echo", "budget_usd": "much"}"#,
        "[]",
        "\"text\"",
        "{",
        "",
        "\u{0}",
        r#"{"agent": "echo"} x"#,
    ];
    let lines: String = bodies.iter().map(|body| format!("{body:?} → {}\n", read_text(body))).collect();
    expect![[r#"
        "{\"agent\": \"echo\"}" → echo {} 0
        "{\"agent\": \"echo\", \"input\": {\"a\": [1, 2]}, \"priority\": 2.9}" → echo {"a": [1, 2]} 2
        "{\"agent\": \"echo\", \"input\": null, \"priority\": \" 5 \"}" → echo null 5
        "{\"agent\": \"x\", \"agent\": \"echo\", \"priority\": true}" → echo {} 1
        "{\"agent\": \"echo\", \"priority\": -7.5}" → echo {} -7
        "{\"agent\": \"echo\", \"priority\": 1e30}" → E1104: 'priority' must be a whole number
        "{\"agent\": \"echo\", \"priority\": \"high\"}" → E1104: 'priority' must be a whole number
        "{\"agent\": \"echo\", \"priority\": null}" → E1104: 'priority' must be a whole number
        "{\"agent\": \"echo\", \"priority\": []}" → E1104: 'priority' must be a whole number
        "{\"input\": {}}" → E1104: Missing 'agent' field
        "{\"agent\": \"\"}" → E1104: Missing 'agent' field
        "{\"agent\": null}" → E1104: Missing 'agent' field
        "{\"agent\": 5}" → E1104: 'agent' must be a string
        "{\"agent\": \"a/b\"}" → a/b {} 0
        "{\"agent\": \"echo\", \"labels\": {\"a\": 1}}" → E1104: 'labels' must be an object of strings
        "{\"agent\": \"echo\", \"timeout\": -1}" → E1104: 'timeout' is -1; it must be from 0.001 to 1000000000 seconds
        "{\"agent\": \"echo\", \"timeout\": 1e-9}" → E1104: 'timeout' is 1e-9; it must be from 0.001 to 1000000000 seconds
        "{\"agent\": \"echo\", \"timeout\": 1e10}" → E1104: 'timeout' is 1e10; it must be from 0.001 to 1000000000 seconds
        "{\"agent\": \"echo\", \"timeout\": \"soon\"}" → E1104: 'timeout' must be a number of seconds
        "{\"agent\": \"echo\", \"at\": 1795348867000}" → E1104: 'at' is 1795348867000; it must be Unix seconds from 1970 to the year 9999
        "{\"agent\": \"echo\", \"budget_usd\": -1}" → E1104: 'budget_usd' must be US dollars such as "0.01"
        "{\"agent\": \"echo\", \"budget_usd\": 1e-2}" → E1104: 'budget_usd' must be US dollars such as "0.01"
        "{\"agent\": \"echo\", \"budget_usd\": []}" → E1104: 'budget_usd' must be US dollars such as "0.01"
        "{\"agent\": \"echo\", \"budget_usd\": \"much\"}" → E1104: 'budget_usd' must be US dollars such as "0.01"
        "[]" → E1104: the body must be a JSON object
        "\"text\"" → E1104: the body must be a JSON object
        "{" → E1104: Invalid JSON
        "" → E1104: Invalid JSON
        "\0" → E1104: Invalid JSON
        "{\"agent\": \"echo\"} x" → E1104: Invalid JSON
    "#]]
    .assert_eq(&lines);
}

#[test]
fn an_input_is_not_copied() {
    let body = Bytes::from_static(br#"{"agent": "echo", "input": {"a": 1}}"#);
    let (submission, unknown) = read_submission(&body).expect("well-formed");
    assert_eq!(unknown, Vec::<String>::new());
    assert_eq!(submission.input.as_ptr(), body[27..].as_ptr());
}

#[test]
fn budgets_are_exact() {
    let budget = |value: &str| {
        let body = format!(r#"{{"agent": "echo", "budget_usd": {value}}}"#);
        read_submission(&Bytes::from(body)).map(|(submission, _)| submission.budget_nanodollars).ok()
    };
    let cases = [("0.01", 10_000_000), (r#""0.000000001""#, 1), ("3", 3_000_000_000), ("0", 0)];
    for (text, nanos) in cases {
        assert_eq!(budget(text), Some(Some(nanos)), "{text}");
    }
    assert_eq!(budget("null"), Some(None));
}

#[test]
fn members_that_mean_nothing_are_named() {
    let unknown =
        |body: &str| read_submission(&Bytes::copy_from_slice(body.as_bytes())).expect("an object").1.join(" ");
    assert_eq!(unknown(r#"{"agent": "a", "inptu": {"x": 1}, "Priority": 1}"#), "inptu Priority");
    let many: String = (0..99).map(|number| format!(r#", "x{number}": 1"#)).collect();
    // All of them: one that looks like ours may be the last.
    assert_eq!(unknown(&format!(r#"{{"agent": "a"{many}, "timout": 1}}"#)).split(' ').count(), 100);
}
