use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn check(text: &str, expected: &Expect) {
    let shown = match load_document(text.as_bytes(), Budget::default()) {
        Ok(document) if document.foreign.is_empty() => document.value.to_string(),
        Ok(document) => format!("{} with {:?}", document.value, document.foreign),
        Err(error) => format!("error: {error}"),
    };
    expected.assert_eq(&shown);
}

#[test]
fn words_of_yaml_1_1_are_booleans_and_nulls() {
    check("[yes, No, ON, off, true, FALSE]", &expect!["[true,false,true,false,true,false]"]);
    check("[y, n, tRue, 'yes', !!str no]", &expect![[r#"["y","n","tRue","yes","no"]"#]]);
    check("[~, null, Null, NULL, nULL, ]", &expect![[r#"[null,null,null,null,"nULL"]"#]]);
    check("a:\nb: ''", &expect![[r#"{"a":null,"b":""}"#]]);
    check("", &expect!["null"]);
}

#[test]
fn integers_have_four_bases_and_a_clock() {
    check("[010, 0x1F, 0b101, 1_000, 1:30, -1:30:15, +5, -0]", &expect!["[8,31,5,1000,90,-5415,5,0]"]);
    check("[08, 0o10, 1:60, 1.2.3, _1]", &expect![[r#"["08","0o10","1:60","1.2.3","_1"]"#]]);
    check("[18446744073709551615, -9223372036854775808]", &expect!["[18446744073709551615,-9223372036854775808]"]);
    check("[18446744073709551616]", &expect!["[18446744073709551616]"]);
}

#[test]
fn a_float_needs_a_dot_and_the_sign_of_its_exponent() {
    check("[1.0, .5, 1., 1.0e+3, 6.8523015e+5, 1:30.5, 1_0.5]", &expect!["[1.0,0.5,1.0,1000.0,685230.15,90.5,10.5]"]);
    check("[1e3, 1.0e3, 1e-5, '1.0']", &expect![[r#"["1e3","1.0e3","1e-5","1.0"]"#]]);
    check(
        "[.inf, -.INF, .nan]",
        &expect![[
            r#"[null,null,null] with [("/0", NonFinite(".inf")), ("/1", NonFinite("-.INF")), ("/2", NonFinite(".nan"))]"#
        ]],
    );
}

#[test]
fn dates_are_no_text() {
    check(
        "a: 2024-01-02\nb: '2024-01-02'\nc: 2024-01-02t1:02:03.5-5",
        &expect![[
            r#"{"a":"2024-01-02","b":"2024-01-02","c":"2024-01-02T01:02:03.500000-05:00"} with [("/a", Date("2024-01-02")), ("/c", Date("2024-01-02T01:02:03.500000-05:00"))]"#
        ]],
    );
    check("2024-02-30", &expect![[r#"error: line 1, column 1: "2024-02-30" is not a date that exists"#]]);
    check("{a: 2024-01-02, a: text}", &expect![[r#"{"a":"text"}"#]]);
}

#[test]
fn mappings_merge_and_the_last_duplicate_wins() {
    check("{a: 1, b: 2, a: 3}", &expect![[r#"{"a":3,"b":2}"#]]);
    check("base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}", &expect![[r#"{"base":{"x":1,"y":2},"own":{"x":1,"y":3}}"#]]);
    check("{<<: [{x: 1}, {x: 2, y: 2}]}", &expect![[r#"{"x":1,"y":2}"#]]);
    check("{<<: 5}", &expect!["error: line 1, column 6: a merge needs a mapping or a list of mappings"]);
    check("[<<]", &expect!["error: line 1, column 2: a plain << is allowed only as a key; quote it"]);
}

#[test]
fn keys_become_text_as_json_writes_them() {
    check(
        "{1: a, yes: b, ~: c, 1.5: d, 2024-01-02: e, =: f}",
        &expect![[r#"{"1":"a","true":"b","null":"c","1.5":"d","2024-01-02":"e","=":"f"}"#]],
    );
    check("{[1]: a}", &expect!["error: line 1, column 2: only a scalar can be a key"]);
}

#[test]
fn json_is_yaml() {
    check(r#"{"a": [1, true, null, "x\u00e9\n"], "b": {}}"#, &expect![[r#"{"a":[1,true,null,"xé\n"],"b":{}}"#]]);
}

#[test]
fn tags_beyond_the_core_are_refused() {
    check("!!int '7'", &expect!["7"]);
    check("!!omap [a: 1, b: 2]", &expect![[r#"[["a",1],["b",2]]"#]]);
    check(
        "[!!set {a}, !!binary aGk=]",
        &expect![[r#"[null,null] with [("/0", Tagged("!!set")), ("/1", Tagged("!!binary"))]"#]],
    );
    check(
        "!!python/object/apply:os.system [id]",
        &expect!["error: line 1, column 33: unsupported tag !!python/object/apply:os.system"],
    );
    check("!secret x", &expect!["error: line 1, column 9: unsupported tag !secret"]);
}

#[test]
fn a_tab_is_no_space() {
    check(
        "agent:\n\tname: a",
        &expect!["error: line 2, column 2: tabs disallowed within this context (block indentation)"],
    );
    check("\tagent: x", &expect!["error: line 1, column 1: a tab where only a space is allowed"]);
    check("a: b\t# c", &expect!["error: line 1, column 5: a tab where only a space is allowed"]);
    check("a:\n  b: [x,\n  y,\tz]\n", &expect!["error: line 3, column 5: a tab where only a space is allowed"]);
    check("a: \"x\ty\"\nb: |\n  x\ty\nc: d # \t\n", &expect![[r#"{"a":"x\ty","b":"x\ty\n","c":"d"}"#]]);
}

#[test]
fn what_cannot_be_read_says_where() {
    check("a: 1\nb: [1, 2", &expect!["error: line 2, column 4: unclosed bracket '['"]);
    check("a: b: c", &expect!["error: line 1, column 5: mapping values are not allowed in this context"]);
    check("--- 1\n--- 2", &expect!["error: line 2, column 1: a second document; only one is read"]);
    check("&a [*a]", &expect!["error: line 1, column 5: an alias inside its own value"]);
    check("*nobody", &expect!["error: line 1, column 1: while parsing node, found unknown anchor"]);
    check("a: \u{7}", &expect!["error: line 1, column 4: the character U+0007 is not allowed"]);
    let error = load(b"a: 1\nb: \xff", Budget::default()).map_err(|error| error.to_string());
    assert_eq!(error, Err("line 2, column 4: the file is not UTF-8".to_owned()));
}

/// Ten lists, each with nine aliases to the previous list: 9^9 values when expanded.
fn bomb(first: &str, then: impl Fn(char) -> String) -> String {
    let mut text = format!("a: &a {first}\n");
    for (before, name) in ('a'..='i').zip('b'..='j') {
        text.push_str(&format!("{name}: &{name} {}\n", then(before)));
    }
    text
}

/// PyYAML accepts these texts.
#[test]
fn lines_of_quoted_text_and_of_brackets_begin_anywhere() {
    for (text, expected) in [
        ("a:\n  b: \"one\n  two\"\n", json!({"a": {"b": "one two"}})),
        ("a:\n  b: 'one\n\n two'\n  c: 1\n", json!({"a": {"b": "one\ntwo", "c": 1}})),
        ("a:\n  b: [x,\n  y,\nz]\n  c: 1\n", json!({"a": {"b": ["x", "y", "z"], "c": 1}})),
        ("a:\n  b: {\n  x: 1,\n  y: {z: \"q\nr\"}\n}\n", json!({"a": {"b": {"x": 1, "y": {"z": "q r"}}}})),
    ] {
        assert_eq!(load(text.as_bytes(), Budget::default()), Ok(expected), "{text}");
    }
    // Positions refer to the original text, and a block with too little indentation is still an error.
    check("a:\n  b: [x,\n  y, *z]\n", &expect!["error: line 3, column 6: while parsing node, found unknown anchor"]);
    check(
        "a:\n   b: 1\n  c: 2\n",
        &expect!["error: line 3, column 3: while parsing a block mapping, did not find expected key"],
    );
    let many = format!("a:\n  b: [\n{}x]", "x,\n".repeat(50_000));
    assert!(load(many.as_bytes(), Budget::default()).is_err());
}

#[test]
fn a_block_that_ends_with_the_file_ends_without_a_line_break() {
    check("a: |\n  x\n  y", &expect![[r#"{"a":"x\ny"}"#]]);
    check("a: >\n  x\n  y", &expect![[r#"{"a":"x y"}"#]]);
    check("a: |\n  x\n", &expect![[r#"{"a":"x\n"}"#]]);
    check("- |\n  x\n- y", &expect![[r#"["x\n","y"]"#]]);
}

fn nine(name: char) -> String {
    vec![format!("*{name}"); 9].join(",")
}

#[test]
fn a_bomb_ends_at_the_budget() {
    let lists = bomb("[1,2,3]", |before| format!("[{}]", nine(before)));
    check(&lists, &expect!["error: the document has more than 30000 values"]);
    let merges = bomb("{k: 1}", |before| format!("{{<<: [{}], {before}: 1}}", nine(before)));
    check(&merges, &expect!["error: the document has more than 30000 values"]);
    let text = format!("a: &a {}\nb: [{}]", "x".repeat(100_000), vec!["*a"; 1_000].join(","));
    check(&text, &expect!["error: the document has more than 8388608 bytes of text"]);
    check(&"[".repeat(1_000), &expect!["error: line 1, column 256: recursion limit exceeded"]);
    let deep = bomb("[1]", |before| format!("[[[[[[[[[[*{before}]]]]]]]]]]"));
    check(&deep, &expect!["error: the document has more than 64 levels"]);
    check(&"x".repeat(2 << 20), &expect!["error: the document has more than 1048576 bytes"]);
}

#[test]
fn a_deep_key_and_many_small_values_take_no_time() {
    for text in ["? ".repeat(50_000), "- ".repeat(50_000), "{".repeat(50_000), "a: &a [*b, &b ".repeat(5_000)] {
        assert!(load(text.as_bytes(), Budget::default()).is_err());
    }
    let many = format!("[{}]", vec!["2024-01-01"; 25_000].join(","));
    let document = load_document(many.as_bytes(), Budget::default()).expect("within the budget");
    assert_eq!(document.foreign.len(), 25_000);
}

#[test]
fn dates_under_long_keys_and_repeated_keys_end_at_the_budget_or_soon() {
    // The pointer of each date is as long as the key above it.
    let key = "k".repeat(400_000);
    let pointers = format!("? {key}\n: [{}]", vec!["2024-01-01"; 25_000].join(","));
    check(&pointers, &expect!["error: the document has more than 8388608 bytes of text"]);
    let repeated = format!("a: [{}]\n{}", vec!["2024-01-01"; 9_000].join(","), "x: 1\n".repeat(9_000));
    assert_eq!(load(repeated.as_bytes(), Budget::default()).expect("within the budget")["x"], 1);
}

proptest! {
    #[test]
    fn any_bytes_give_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = load(&bytes, Budget::default());
    }

    #[test]
    fn any_text_of_marks_gives_a_value_or_an_error(text in r#"[-?:,\[\]{}#&*!|>'"%@` \n\ta-c0-2.<=~]{0,120}"#) {
        let _ = load(text.as_bytes(), Budget::default());
    }

    #[test]
    fn json_text_reads_as_json(number in any::<i64>(), text in "[ -~é]{0,40}") {
        let value = json!({"list": [number, text, {"deep": null}], "flag": true});
        prop_assert_eq!(load(value.to_string().as_bytes(), Budget::default()), Ok(value));
    }
}
