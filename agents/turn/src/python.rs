//! JSON text in the form of Python's `json.dumps`, which models of existing agents are used to: a space after commas and
//! colons.

use std::fmt::Write;

use serde_json::{Number, Value};

/// The value as `json.dumps` prints it with its default options, which escape characters beyond ASCII.
pub fn dumps(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, Form::Ascii);
    text
}

/// The value as `json.dumps` prints it with `ensure_ascii=False`.
pub fn text(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, Form::Utf8);
    text
}

/// How characters beyond ASCII are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Ascii,
    Utf8,
}

fn write(out: &mut String, value: &Value, form: Form) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(value) => number(out, value),
        Value::String(text) => quoted(out, text, form),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write(out, item, form);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                quoted(out, name, form);
                out.push_str(": ");
                write(out, value, form);
            }
            out.push('}');
        }
    }
}

fn quoted(out: &mut String, text: &str, form: Form) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            // As with `ensure_ascii=False`, which escapes control characters below the space alone.
            c if form == Form::Utf8 && c >= ' ' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string does not fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

/// Floats have a point or an exponent; the exponent has a sign and at least two digits, and is used outside of 1e-4 to 1e16.
fn number(out: &mut String, number: &Number) {
    // A number that no float holds is kept as its digits.
    let float = number.as_f64().filter(|&value| Number::from_f64(value).as_ref() == Some(number));
    let Some(value) = float else {
        let _ = write!(out, "{number}");
        return;
    };
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-4..1e16).contains(&magnitude) {
        let _ = write!(out, "{value:?}");
        return;
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
            let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
        }
        None => out.push_str(&text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_those_of_json_dumps() {
        for (value, text) in [
            (
                json!({"text": "hi", "n": [1, 2.0, -0.5, null, true, false]}),
                r#"{"text": "hi", "n": [1, 2.0, -0.5, null, true, false]}"#,
            ),
            (json!("é\u{7f}\u{1f600}\"\\/\n\u{8}\u{c}\u{1}"), r#""\u00e9\u007f\ud83d\ude00\"\\/\n\b\f\u0001""#),
            (
                json!([1e16, 1e15, 1e-4, 1e-5, 1.5e300, -0.0]),
                "[1e+16, 1000000000000000.0, 0.0001, 1e-05, 1.5e+300, -0.0]",
            ),
            (json!([u64::MAX, i64::MIN, 123_456_789.25]), "[18446744073709551615, -9223372036854775808, 123456789.25]"),
            (json!([{}, []]), "[{}, []]"),
        ] {
            assert_eq!(dumps(&value), text);
        }
        assert_eq!(text(&json!({"é": "\u{7f}日本\u{1f600}\"\n\u{1}"})), "{\"é\": \"\u{7f}日本😀\\\"\\n\\u0001\"}");
    }

    #[test]
    fn numbers_keep_their_digits() {
        for digits in ["123456789012345678901234567890", "0.1000000000000000055511151231257827"] {
            let value: Value = serde_json::from_str(digits).expect("a number");
            assert_eq!(dumps(&value), digits);
        }
    }
}
