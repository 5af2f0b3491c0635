use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const VALUE: &str = "s3cr3t/é\"+ key";

fn redactor(secrets: &[(&str, &str)]) -> Redactor {
    let secrets: Vec<_> = secrets.iter().map(|(name, value)| (*name, SecretText::new(*value))).collect();
    Redactor::new(secrets.iter().map(|(name, value)| (*name, value)))
}

fn check(secrets: &[(&str, &str)], text: &str, expected: &Expect) {
    expected.assert_eq(&redactor(secrets).text(text));
}

#[test]
fn values_are_replaced_by_names() {
    check(&[("key", "s3cr3t")], "a s3cr3t b s3cr3ts", &expect!["a [redacted:key] b [redacted:key]s"]);
    check(&[("key", "s3cr3t")], "nothing here", &expect!["nothing here"]);
    check(&[], "s3cr3t", &expect!["s3cr3t"]);
    check(&[("a", "s3cr3t"), ("b", "s3cr3t")], "s3cr3t", &expect!["[redacted:a]"]);
    check(&[("a", "s3cr"), ("b", "s3cr3t")], "s3cr3t s3cr", &expect!["[redacted:b] [redacted:a]"]);
}

#[test]
fn short_values_are_not_searched() {
    check(&[("pin", "123"), ("empty", "")], "123", &expect!["123"]);
    check(&[("pin", "1234")], "1234", &expect!["[redacted:pin]"]);
    check(&[("é", "éééé")], "éééé ééé", &expect!["[redacted:é] ééé"]);
}

#[test]
fn common_encodings_are_found() {
    let key: &[_] = &[("key", VALUE)];
    check(key, "s3cr3t%2F%C3%A9%22%2B%20key", &expect!["[redacted:key]"]);
    check(key, "s3cr3t%2f%c3%a9%22%2b%20key", &expect!["[redacted:key]"]);
    check(key, "s3cr3t%2F%C3%A9%22%2B+key", &expect!["[redacted:key]"]);
    check(key, r#"{"a":"s3cr3t/é\"+ key"}"#, &expect![[r#"{"a":"[redacted:key]"}"#]]);
    check(key, r#"{"a":"s3cr3t/\u00e9\"+ key"}"#, &expect![[r#"{"a":"[redacted:key]"}"#]]);
}

#[test]
fn base64_is_found_with_what_surrounds_it() {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    let redactor = redactor(&[("key", VALUE)]);
    for around in ["", "u", "us", "user:", "a>?>", "a>?>?"] {
        for (before, after) in [(around, ""), ("", around), (around, around)] {
            let text = format!("{before}{VALUE}{after}");
            for encoded in [STANDARD.encode(&text), URL_SAFE.encode(&text)] {
                let redacted = redactor.text(&encoded);
                assert!(redacted.contains("[redacted:key]"), "{text}: {encoded}");
                assert!(redacted.len() < "[redacted:key]".len() + 2 * around.len() + 8, "{text}: {redacted}");
            }
        }
    }
}

#[test]
fn lines_of_a_value_are_found() {
    let key = "-----BEGIN KEY-----\n  MIIEvQIBADAN\nshort\n-----END KEY-----\n";
    check(&[("key", key)], "log: MIIEvQIBADAN", &expect!["log: [redacted:key]"]);
    check(&[("key", key)], "short", &expect!["short"]);
    check(&[("key", key)], key.trim(), &expect!["[redacted:key]"]);
}

#[test]
fn pieces_of_values_at_the_edges_are_removed() {
    let redactor = redactor(&[("key", "abcdefgh")]);
    let fragment = |text: &str| redactor.fragment(text).into_owned();
    assert_eq!(fragment("efgh and abcd"), "[redacted:key] and [redacted:key]");
    assert_eq!(fragment("fgh and abc"), "fgh and abc");
    assert_eq!(fragment("abcdefgh"), "[redacted:key]");
    assert_eq!(fragment("bcdefg"), "bcdefg");
    assert_eq!(fragment(""), "");
}

#[test]
fn json_keeps_its_form() {
    let redactor = redactor(&[("key", "s3cr3t"), ("pin", "12345")]);
    let mut value = json!({"a": ["x s3cr3t"], "s3cr3t": {"n": 12345, "m": 1, "t": true}, "z": null});
    assert!(redactor.json(&mut value));
    let expected =
        json!({"a": ["x [redacted:key]"], "[redacted:key]": {"n": "[redacted:pin]", "m": 1, "t": true}, "z": null});
    assert_eq!(value, expected);
    assert!(!redactor.json(&mut value));
    assert!(!Redactor::default().json(&mut json!("s3cr3t")));
}

proptest! {
    /// However a text is split, the joined pieces are those of the whole text.
    #[test]
    fn splitting_changes_nothing(
        text in "[abcd]{0,60}",
        values in proptest::collection::vec("[abcd]{4,8}", 1..4),
        cuts in proptest::collection::vec(0_usize..61, 0..6),
    ) {
        let secrets: Vec<_> = values.iter().map(|value| ("k", SecretText::new(value.as_str()))).collect();
        let redactor = Redactor::new(secrets.iter().map(|(name, value)| (*name, value)));
        let (mut pieces, mut joined, mut from) = (redactor.pieces(), String::new(), 0);
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.sort_unstable();
        for cut in cuts {
            joined.push_str(&pieces.push(&text[from..cut]));
            from = cut;
        }
        joined.push_str(&pieces.push(&text[from..]));
        joined.push_str(&pieces.end());
        for value in &values {
            prop_assert!(!joined.replace("[redacted:k]", "|").contains(value.as_str()), "{joined}");
        }
    }

    /// Any text and any values: no panic, and what is left contains no value.
    #[test]
    fn nothing_is_left(text in ".{0,80}", at in 0_usize..80, value in ".{4,12}") {
        let at = text.floor_char_boundary(at.min(text.len()));
        let text = format!("{}{value}{}", &text[..at], &text[at..]);
        let redactor = redactor(&[("k", &value)]);
        prop_assume!(!"[redacted:k]".contains(&value));
        prop_assert!(redactor.text(&text).contains("[redacted:k]"));
        let mut pieces = redactor.pieces();
        let passed: String = text.chars().map(|character| pieces.push(&character.to_string())).collect();
        prop_assert!((passed + &pieces.end()).contains("[redacted:k]"));
    }
}
