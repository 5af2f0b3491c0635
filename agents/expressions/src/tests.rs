//! What expressions mean, and what is refused.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Expression, STEPS_MAX};

const NAMES: [&str; 3] = ["input", "output", "steps"];

fn read(number: &str) -> Value {
    serde_json::from_str(number).expect("a number")
}

fn data() -> Value {
    json!({
        "kind": "bug", "score": 0.75, "count": 3, "big": u64::MAX, "none": null, "tags": ["a", "b"],
        "items": [{"n": 1}, {"n": 2}, {"n": 3}], "text": "Größe\nzwei",
        "id": read("123456789012345678901234567890"), "share": read("0.1000000000000000055511151231257827"),
    })
}

fn shown(source: &str) -> String {
    let data = data();
    let result = Expression::parse(source, &NAMES).and_then(|expression| expression.value(&[("input", &data)]));
    match result {
        Ok(value) => value.to_string(),
        Err(problem) => format!("! {problem}"),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "tests write expectations in place")]
fn check(sources: &[&str], expected: Expect) {
    let lines = sources.iter().map(|source| format!("{source:?} → {}\n", shown(source)));
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn values_and_operators() {
    check(
        &[
            "1 + 2 * 3 - 4 / 2 % 3",
            "-input.count",
            "1.5 + 1",
            "input.score >= 0.5 && input.kind == 'bug'",
            "input.kind in ['bug', \"idea\"]",
            "'kind' in input",
            "input['tags'][1] + '!'",
            "has(input.kind) && !has(input.other)",
            "input.count > 2 ? 'many' : 'few'",
            "[1, 'a', null] + [true]",
            "{'a': input.count}.a",
            "1 == 1.0 && 2 != 3 && [1] == [1.0] && {'a': 1} == {'a': 1}",
            "input.big > 9223372036854775807",
            "steps == null",
        ],
        expect![[r#"
            "1 + 2 * 3 - 4 / 2 % 3" → 5
            "-input.count" → -3
            "1.5 + 1" → 2.5
            "input.score >= 0.5 && input.kind == 'bug'" → true
            "input.kind in ['bug', \"idea\"]" → true
            "'kind' in input" → true
            "input['tags'][1] + '!'" → "b!"
            "has(input.kind) && !has(input.other)" → true
            "input.count > 2 ? 'many' : 'few'" → "many"
            "[1, 'a', null] + [true]" → [1,"a",null,true]
            "{'a': input.count}.a" → 3
            "1 == 1.0 && 2 != 3 && [1] == [1.0] && {'a': 1} == {'a': 1}" → true
            "input.big > 9223372036854775807" → true
            "steps == null" → true
        "#]],
    );
}

#[test]
fn functions_and_loops() {
    check(
        &[
            "size(input.text) + input.tags.size() + size(input)",
            "input.text.contains('zwei') && input.kind.startsWith('b') && input.kind.endsWith('g')",
            "input.kind.matches('^b.g$')",
            "[int('7'), int(3.9), double('1.5'), string(3), bool('true'), type(1), type(1.0), type([])]",
            "input.kind.upperAscii().lowerAscii() + '  x '.trim()",
            "input.items.map(i, i.n * 2)",
            "input.items.map(i, i.n > 1, i.n)",
            "input.items.filter(i, i.n > 1).map(i, i.n)",
            "input.items.all(i, i.n > 0) && input.items.exists(i, i.n == 2) && input.items.exists_one(i, i.n == 3)",
            "input.items.map(a, input.items.map(b, a.n * b.n))",
            "input.map(key, key)[0]",
        ],
        expect![[r#"
            "size(input.text) + input.tags.size() + size(input)" → 22
            "input.text.contains('zwei') && input.kind.startsWith('b') && input.kind.endsWith('g')" → true
            "input.kind.matches('^b.g$')" → true
            "[int('7'), int(3.9), double('1.5'), string(3), bool('true'), type(1), type(1.0), type([])]" → [7,3,1.5,"3",true,"int","double","list"]
            "input.kind.upperAscii().lowerAscii() + '  x '.trim()" → "bugx"
            "input.items.map(i, i.n * 2)" → [2,4,6]
            "input.items.map(i, i.n > 1, i.n)" → [2,3]
            "input.items.filter(i, i.n > 1).map(i, i.n)" → [2,3]
            "input.items.all(i, i.n > 0) && input.items.exists(i, i.n == 2) && input.items.exists_one(i, i.n == 3)" → false
            "input.items.map(a, input.items.map(b, a.n * b.n))" → [[1,2,3],[2,4,6],[3,6,9]]
            "input.map(key, key)[0]" → "kind"
        "#]],
    );
}

#[test]
fn one_side_that_decides_is_enough() {
    check(
        &[
            "input.other == 1 || true",
            "false && input.other == 1",
            "input.other == 1 && true",
            "input.items.exists(i, i.n == 1 || i.m == 2)",
        ],
        expect![[r#"
            "input.other == 1 || true" → true
            "false && input.other == 1" → false
            "input.other == 1 && true" → ! line 1, column 6: no such member: other
            "input.items.exists(i, i.n == 1 || i.m == 2)" → true
        "#]],
    );
}

#[test]
fn what_is_wrong_has_a_place() {
    check(
        &[
            "",
            "1 +",
            "input.kind =",
            "other.kind",
            "input.kind == 'bug' &&\n  inputs.x",
            "input.kind.shout()",
            "input.other",
            "input.kind.other",
            "input.tags[5]",
            "input.tags[-1]",
            "input.kind + 1",
            "1 / 0",
            "9223372036854775807 * 9223372036854775807",
            "input.kind < 3",
            "input.kind && true",
            "b'bytes'",
            "atlas.Message{a: 1}",
            "input.kind.matches('(')",
            "input.kind.matches('(a{1000}){1000}')",
            "timestamp('2026-01-01T00:00:00Z')",
            "input.map(1, 2)",
            "has(input)",
            "1e999",
            "99999999999999999999999",
            "'a' 'b'",
            "input.?kind",
            "@result",
            "ö == 1",
            "'unclosed",
        ],
        expect![[r#"
            "" → ! line 1, column 1: it ends too early
            "1 +" → ! line 1, column 4: it ends too early
            "input.kind =" → ! line 1, column 12: unexpected =
            "other.kind" → ! line 1, column 1: no such variable: other; there are input, output, steps
            "input.kind == 'bug' &&\n  inputs.x" → ! line 2, column 3: no such variable: inputs; there are input, output, steps
            "input.kind.shout()" → ! line 1, column 17: no such function: shout with 0 arguments
            "input.other" → ! line 1, column 6: no such member: other
            "input.kind.other" → ! line 1, column 11: is a text and has no member other
            "input.tags[5]" → ! line 1, column 11: no item 5
            "input.tags[-1]" → ! line 1, column 11: no item -1
            "input.kind + 1" → ! line 1, column 12: a text + a number is not defined
            "1 / 0" → ! line 1, column 3: divides by zero
            "9223372036854775807 * 9223372036854775807" → ! line 1, column 21: the number is too large
            "input.kind < 3" → ! line 1, column 12: a text and a number have no order
            "input.kind && true" → ! line 1, column 6: is a text, not true or false
            "b'bytes'" → ! line 1, column 1: bytes are not supported
            "atlas.Message{a: 1}" → ! line 1, column 14: messages are not supported
            "input.kind.matches('(')" → ! line 1, column 19: the pattern is wrong or too large
            "input.kind.matches('(a{1000}){1000}')" → ! line 1, column 19: the pattern is wrong or too large
            "timestamp('2026-01-01T00:00:00Z')" → ! line 1, column 10: no such function: timestamp with 1 arguments
            "input.map(1, 2)" → ! line 1, column 11: argument must be a simple name
            "has(input)" → ! line 1, column 5: invalid argument to has() macro
            "1e999" → ! line 1, column 1: invalid double literal
            "99999999999999999999999" → ! line 1, column 1: invalid int literal
            "'a' 'b'" → ! line 1, column 5: unexpected 'b'
            "input.?kind" → ! line 1, column 6: unsupported syntax '.?'
            "@result" → ! line 1, column 1: unexpected @
            "ö == 1" → ! line 1, column 1: unexpected ö
            "'unclosed" → ! line 1, column 1: 'unclosed has no closing quote
        "#]],
    );
}

#[test]
fn hostile_expressions_are_refused() {
    let many = |text: &str, count| text.repeat(count);
    let doubled = format!("['{}']{}", many("x", 100), many(".map(x,x+x)", 60));
    let deep = |open: &str, close: &str| format!("{}1{}", many(open, 600), many(close, 600));
    let sources = [
        many("x", 3000),
        deep("(", ")"),
        deep("[", "]"),
        many("!", 1500) + "true",
        many("-", 1500) + "1",
        many("1+", 900) + "1",
        many("true?", 300) + "1",
        many("true?1:", 250) + "1",
        "input".to_owned() + &many(".a", 900),
        "input".to_owned() + &many("[0]", 600),
        doubled,
        "input.big_list.map(a, input.big_list.map(b, input.big_list.map(c, a + b + c)))".to_owned(),
        "input.big_list.all(a, input.big_list.exists(b, 'x'.matches('y' + string(a * 1000 + b))))".to_owned(),
        "[input, input, input].map(a, [a, a, a]).map(b, [b, b, b]).map(c, [c, c, c, c]).map(d, [d, d, d, d])"
            .to_owned(),
    ];
    let mut data = data();
    data["big_list"] = (0..1_000).collect();
    let mut lines = String::new();
    for source in sources {
        let result = Expression::parse(&source, &NAMES).and_then(|found| found.value(&[("input", &data)]));
        let problem = result.expect_err(&source);
        let begin: String = source.chars().take(20).collect();
        lines += &format!("{begin} → {problem}\n");
    }
    expect![[r#"
        xxxxxxxxxxxxxxxxxxxx → line 1, column 1: an expression has at most 2048 bytes
        (((((((((((((((((((( → line 1, column 25: more than 24 brackets are inside each other
        [[[[[[[[[[[[[[[[[[[[ → line 1, column 25: more than 24 brackets are inside each other
        !!!!!!!!!!!!!!!!!!!! → line 1, column 201: more than 200 operators and brackets
        -------------------- → line 1, column 201: more than 200 operators and brackets
        1+1+1+1+1+1+1+1+1+1+ → line 1, column 402: more than 200 operators and brackets
        true?true?true?true? → line 1, column 1005: more than 200 operators and brackets
        true?1:true?1:true?1 → line 1, column 705: more than 200 operators and brackets
        input.a.a.a.a.a.a.a. → line 1, column 406: more than 200 operators and brackets
        input[0][0][0][0][0] → line 1, column 606: more than 200 operators and brackets
        ['xxxxxxxxxxxxxxxxxx → line 1, column 652: more than 200 operators and brackets
        input.big_list.map(a → line 1, column 69: takes more than 100000 steps
        input.big_list.all(a → line 1, column 59: takes more than 100000 steps
        [input, input, input → line 1, column 73: takes more than 100000 steps
    "#]]
    .assert_eq(&lines);
}

#[test]
fn conditions_are_true_or_false() {
    let condition = Expression::parse("input.count", &NAMES).expect("an expression");
    let problem = condition.holds(&[("input", &data())]).expect_err("a number");
    assert_eq!(problem.to_string(), "line 1, column 6: is a number, not true or false");
    assert_eq!(STEPS_MAX, 100_000);
}

proptest! {
    /// Whatever text comes, there is an answer.
    #[test]
    fn no_text_panics(source in r#"([a-z]{1,3}|input|[0-9]{1,3}|['"()\[\]{}.,?:!<>=+*/%&|@`\\ \n-]|\PC|has|\.map\(x,|in|null){0,40}"#) {
        let _shown = shown(&source);
    }

    /// Arithmetic never panics.
    #[test]
    fn numbers_are_bounded(a in any::<i64>(), b in any::<i64>(), c in any::<f64>(), sign in "[-+*/%]") {
        let (a, b, c) = (json!(a), json!(b), json!(c));
        for source in [format!("input {sign} output"), format!("input {sign} steps"), format!("int(steps) {sign} input"), "-input".to_owned()] {
            let expression = Expression::parse(&source, &NAMES).expect("an expression");
            let _value = expression.value(&[("input", &a), ("output", &b), ("steps", &c)]);
        }
    }
}

#[test]
fn expressions_share_their_steps() {
    let list = Value::Array((0..1_000).map(Value::from).collect());
    let slow = Expression::parse("l.all(x, x >= 0)", &["l"]).expect("an expression");
    let (mut steps, mut held) = (0, 0);
    while slow.holds_after(&[("l", &list)], &mut steps).is_ok() {
        held += 1;
    }
    assert!((2..100).contains(&held) && steps > STEPS_MAX, "{held} evaluations took {steps} steps");
    let quick = Expression::parse("true", &[]).expect("an expression");
    assert!(quick.holds_after(&[], &mut steps).is_err());
    assert_eq!(quick.holds(&[]), Ok(true));
}

#[test]
fn no_digit_is_lost() {
    check(
        &[
            "input.id",
            "[input.share, {'id': input.id}]",
            "input.id == input.id && input.id != input.id - 1",
            "input.share == input.share && input.share != 0.1",
            "input.id > 1",
            "type(input.id) + ' ' + type(input.share)",
            "string(input.id)",
            "int(input.id)",
            "input.share + 1",
            "input.share > 0.1",
        ],
        expect![[r#"
            "input.id" → 123456789012345678901234567890
            "[input.share, {'id': input.id}]" → [0.1000000000000000055511151231257827,{"id":123456789012345678901234567890}]
            "input.id == input.id && input.id != input.id - 1" → ! line 1, column 46: the number is too large
            "input.share == input.share && input.share != 0.1" → true
            "input.id > 1" → true
            "type(input.id) + ' ' + type(input.share)" → "int double"
            "string(input.id)" → "123456789012345678901234567890"
            "int(input.id)" → 123456789012345678901234567890
            "input.share + 1" → ! line 1, column 13: 0.1000000000000000055511151231257827 has more digits than can be calculated with
            "input.share > 0.1" → ! line 1, column 13: 0.1000000000000000055511151231257827 has more digits than can be calculated with
        "#]],
    );
}
