//! Which objects a filter takes.

use serde_json::json;

use crate::Filter;

fn holds(text: &str) -> Result<bool, String> {
    let object = json!({
        "status": "failed", "attempt": 2, "labels": {"team": "a", "x-y": "1", "if": "c"}, "namespace": "b", "list": [1, 2.0], "warm": true, "none": null,
        "error": "Process exited with code 3",
    });
    Filter::parse(text).and_then(|filter| filter.admits(&object)).map_err(|problem| problem.to_string())
}

#[test]
fn expressions_hold_or_do_not() {
    for text in [
        "status == 'failed'",
        "status == \"failed\" && attempt > 1",
        "!(attempt == 1) || missing == 1",
        "missing == 1 || warm",
        "labels.team == 'a' && labels[\"x-y\"] == '1'",
        "2 in list && !('c' in labels) && 'team' in labels",
        "error.startsWith('Process') && error.contains('code 3') && error.endsWith('3')",
        "size(list) == 2 && list.size() == 2 && size('äö') == 2",
        "has(labels.team) && !has(labels.nobody) && !has(none)",
        "attempt * 2 + 1 == 5 && -attempt < 0 && attempt % 2 == 0 && 1 - 1 - 1 == -1 && 8 / 2 / 2 == 2",
        "warm ? attempt == 2 : false",
        "status in ['failed', 'cancelled'] && 'a' + 'b' == 'ab' && 'a' < 'b' && 1 <= 1.0 && 2 >= 1 && 1 != 2",
        "int('7') == 7 && string(attempt) == '2' && 'ABC'.lowerAscii() == 'abc' && none == null",
        "'it\\'s' == \"it's\"",
        "namespace == 'b' && has(namespace) && labels.if == 'c'",
        "has(labels['x-y']) && !has(list[9]) && !has(missing) && !has(missing.deeper)",
        "list.exists(item, item == 2) && error.matches('code [0-9]+$') && !status.deeper || true",
    ] {
        assert_eq!(holds(text), Ok(true), "{text}");
    }
    for text in [
        "status == 'completed'",
        "missing == 1",
        "missing.deeper",
        "labels.nobody == 'x'",
        "list[9] == 1",
        "status.deeper",
        "none.deeper == 1",
    ] {
        assert_eq!(holds(text), Ok(false), "{text}");
    }
}

#[test]
fn a_filter_may_list_many_ids() {
    let ids: Vec<String> = (0..1_000).map(|number| format!("'job-01k{number:04}-a.b-0123456789-0123456789'")).collect();
    let text = format!("id in [{}]", ids.join(", "));
    assert!(text.len() > 32 << 10, "{}", text.len());
    let filter = Filter::parse(&text).expect("a filter");
    assert_eq!(filter.admits(&json!({"id": "job-01k0999-a.b-0123456789-0123456789"})), Ok(true));
    assert_eq!(filter.admits(&json!({"id": "job-01k1000-a.b-0123456789-0123456789"})), Ok(false));
    let longer = format!("id == '{}'", "x".repeat(64 << 10));
    assert_eq!(
        Filter::parse(&longer).map(drop).expect_err("refused").to_string(),
        "line 1, column 1: an expression has at most 65536 bytes"
    );
    for deep in ["-".repeat(300), "1-".repeat(300), format!("'\\q{}'", "1-".repeat(300)), "[".repeat(30)] {
        assert!(Filter::parse(&format!("{deep}1")).is_err(), "{deep}");
    }
}

#[test]
fn a_filter_knows_which_members_it_names() {
    let text = "-a.b[c] > 1 && !('x' in d) || size(e) + f.size() == 2 ? has(g.h) : i in [j]";
    let filter = Filter::parse(text).expect("a filter");
    assert_eq!(filter.names().collect::<String>(), "acdefgij");
    let filter = Filter::parse("list.exists(x, x.a == namespace) && has(namespace)").expect("a filter");
    assert_eq!(filter.names().collect::<Vec<_>>(), ["list", "namespace"]);
}
