//! Bodies of submissions.

use crate::write::{Cases, Kind};

/// The agent that they go to.
pub(crate) const AGENT: &str = r##"{"agent": {"name": "corpus", "version": "1.0.0", "input": {"schema": {
  "type": "object",
  "properties": {
    "n": {"type": "integer"}, "text": {"type": "string", "maxLength": 10, "pattern": "^[a-z]*$"},
    "tree": {"$ref": "#/$defs/tree"}, "list": {"type": "array", "uniqueItems": true, "maxItems": 2000}
  },
  "$defs": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}}}},
  "required": ["n"], "additionalProperties": false
}}}}"##;

/// Members of a submission to the agent, besides `agent`, that hold.
const GOOD: &[(&str, &str)] = &[
    ("plain", r#""input": {"n": 1}"#),
    ("whole-float", r#""input": {"n": 1.0}"#),
    ("large-number", r#""input": {"n": 123456789012345678901234567890}"#),
    ("priority-fraction", r#""input": {"n": 1}, "priority": 2.9"#),
    ("priority-text", r#""input": {"n": 1}, "priority": " 7 ""#),
    ("priority-boolean", r#""input": {"n": 1}, "priority": true"#),
    ("priority-lowest", r#""input": {"n": 1}, "priority": -9223372036854775808"#),
    ("version", r#""input": {"n": 1}, "version": "^1.0.0""#),
    ("version-any", r#""input": {"n": 1}, "version": "*""#),
    ("version-null", r#""input": {"n": 1}, "version": null"#),
    ("labels", r#""input": {"n": 1}, "labels": {"a": "b", "\u00e9": ""}"#),
    ("labels-null", r#""input": {"n": 1}, "labels": null"#),
    ("timeout", r#""input": {"n": 1}, "timeout": 0.5"#),
    ("unknown-member", r#""input": {"n": 1}, "colour": [1, {"a": null}]"#),
    ("last-of-two", r#""input": {"m": 1}, "input": {"n": 1}"#),
    ("escapes", r#""input": {"n": 1, "text": "\u0061"}"#),
    ("tree", r#""input": {"n": 1, "tree": {"left": {"right": {}}}}"#),
];

/// Members that are refused.
const BAD: &[(&str, &str)] = &[
    ("input-missing", r#""priority": 1"#),
    ("input-null", r#""input": null"#),
    ("input-list", r#""input": [1]"#),
    ("required", r#""input": {}"#),
    ("misspelt", r#""input": {"nn": 1}"#),
    ("wrong-type", r#""input": {"n": "1"}"#),
    ("boolean", r#""input": {"n": true}"#),
    ("fraction", r#""input": {"n": 1.5}"#),
    ("too-long", r#""input": {"n": 1, "text": "abcdefghijk"}"#),
    ("pattern", r#""input": {"n": 1, "text": "A"}"#),
    ("not-unique", r#""input": {"n": 1, "list": [1, 1.0]}"#),
    ("tree", r#""input": {"n": 1, "tree": {"left": {"right": 5}}}"#),
    ("infinite", r#""input": {"n": 1e999}"#),
    ("half-surrogate", r#""input": {"n": 1, "text": "\ud800"}"#),
    ("priority-text", r#""input": {"n": 1}, "priority": "high""#),
    ("priority-fraction-text", r#""input": {"n": 1}, "priority": "1.5""#),
    ("priority-null", r#""input": {"n": 1}, "priority": null"#),
    ("priority-list", r#""input": {"n": 1}, "priority": [1]"#),
    ("priority-huge", r#""input": {"n": 1}, "priority": 1e30"#),
    ("version-number", r#""input": {"n": 1}, "version": 1"#),
    ("version-nonsense", r#""input": {"n": 1}, "version": "newest""#),
    ("version-none", r#""input": {"n": 1}, "version": "9.9.9""#),
    ("labels-list", r#""input": {"n": 1}, "labels": ["a"]"#),
    ("labels-numbers", r#""input": {"n": 1}, "labels": {"a": 1}"#),
    ("labels-empty-key", r#""input": {"n": 1}, "labels": {"": "x"}"#),
    ("timeout-zero", r#""input": {"n": 1}, "timeout": 0"#),
    ("timeout-negative", r#""input": {"n": 1}, "timeout": -1"#),
    ("timeout-text", r#""input": {"n": 1}, "timeout": "1""#),
];

/// Whole bodies that are refused.
const NONE: &[(&str, &str)] = &[
    ("empty", ""),
    ("blank", "  \n"),
    ("null", "null"),
    ("number", "1"),
    ("text", "\"corpus\""),
    ("list", "[{\"agent\": \"corpus\"}]"),
    ("cut", "{\"agent\": \"corpus\""),
    ("comma", "{\"agent\": \"corpus\",}"),
    ("single-quotes", "{'agent': 'corpus'}"),
    ("comment", "{\"agent\": \"corpus\" /* x */}"),
    ("nan", "{\"agent\": \"corpus\", \"input\": {\"n\": NaN}}"),
    ("two", "{\"agent\": \"corpus\"} {}"),
    ("agent-missing", "{}"),
    ("agent-null", "{\"agent\": null}"),
    ("agent-empty", "{\"agent\": \"\"}"),
    ("agent-number", "{\"agent\": 5}"),
    ("agent-list", "{\"agent\": [\"corpus\"]}"),
    ("agent-unknown", "{\"agent\": \"corpsu\"}"),
    ("agent-path", "{\"agent\": \"../corpus\"}"),
    ("agent-control", "{\"agent\": \"a\\u0000b\"}"),
    ("agent-surrogate", "{\"agent\": \"\\ud800\"}"),
    ("form", "agent=corpus&input=%7B%7D"),
    ("xml", "<?xml version=\"1.0\"?><agent>corpus</agent>"),
    ("control-character", "{\"agent\": \"cor\u{1}pus\"}"),
    ("byte-order-mark", "\u{feff}{\"agent\": \"corpus\", \"input\": {\"n\": 1}}"),
];

pub(crate) fn cases() -> Cases {
    let mut cases = Cases::of(Kind::Json);
    let with = |members: &str| format!("{{\"agent\": \"corpus\", {members}}}");
    GOOD.iter().for_each(|(what, members)| cases.accepted(what, with(members)));
    BAD.iter().for_each(|(what, members)| cases.refused(what, with(members)));
    NONE.iter().for_each(|(what, body)| cases.refused(what, *body));
    cases.refused("not-utf-8", b"{\"agent\": \"\xff\"}".as_slice());
    cases.refused("utf-16", "{\0}\0".as_bytes());
    let nested = |open: &str, close: &str, depth: usize| open.repeat(depth) + "1" + &close.repeat(depth);
    let tree = nested("{\"left\": ", "}", 90).replace('1', "{}");
    cases.accepted("deep-tree", with(&format!("\"input\": {{\"n\": 1, \"tree\": {tree}}}")));
    for depth in [120, 10_000, 200_000] {
        cases.refused(&format!("lists-{depth}-deep"), with(&format!("\"input\": {}", nested("[", "]", depth))));
        cases.refused(&format!("maps-{depth}-deep"), with(&format!("\"input\": {}", nested("{\"left\":", "}", depth))));
    }
    cases.refused("too-large", with(&format!("\"input\": {{\"n\": 1, \"text\": \"{}\"}}", "x".repeat(2 << 20))));
    cases.refused("long-name", format!("{{\"agent\": \"{}\"}}", "x".repeat(100_000)));
    // The first is the integer 1, the second is none, although floats make 2 of it.
    cases.accepted("long-digits", with(&format!("\"input\": {{\"n\": 1.{}}}", "0".repeat(500_000))));
    cases.refused("long-fraction", with(&format!("\"input\": {{\"n\": 1.{}}}", "9".repeat(500_000))));
    let items: Vec<String> = (0..2_000).map(|n| format!("[{n}]")).collect();
    cases.accepted("many-unique-items", with(&format!("\"input\": {{\"n\": 1, \"list\": [{}]}}", items.join(","))));
    let many: Vec<String> = (0..50_000).map(|n| format!("\"k{n}\": {n}")).collect();
    cases.refused("many-members", with(&format!("\"input\": {{\"n\": 1, {}}}", many.join(","))));
    let labels: Vec<String> = (0..1_000).map(|n| format!("\"k{n}\": \"\"")).collect();
    cases.refused("many-labels", with(&format!("\"input\": {{\"n\": 1}}, \"labels\": {{{}}}", labels.join(","))));
    let whole = with(r#""input": {"n": 12, "text": "abc", "tree": {"left": {}}}, "priority": 3, "labels": {"a": "b"}"#);
    cases.broken("broken", whole.as_bytes(), 40);
    cases
}
