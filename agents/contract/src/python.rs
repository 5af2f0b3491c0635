//! Values in Python notation, for messages that clients of the Python library compare (compatibility §4) and for the
//! command line `atlas` (compatibility §17.1).

mod json;
pub(crate) mod number;

use serde_json::{Number, Value};

pub use json::json_fault;
pub use number::int;

/// Maximum length of one value in a message; the rest is replaced by an ellipsis.
const LEN_MAX: usize = 2_000;

/// `value` as Python's `repr` prints it, shortened to `LEN_MAX`.
pub fn repr(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, LEN_MAX);
    if text.len() > LEN_MAX {
        let end = (0..=LEN_MAX).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

/// `value` as Python's `str` prints it, not shortened: a string without quotes, everything else in Python notation.
pub fn display(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => {
            let mut text = String::new();
            write(&mut text, other, usize::MAX);
            text
        }
    }
}

fn write(out: &mut String, value: &Value, max: usize) {
    // Text beyond the limit is cut off, so stop early; otherwise each message would cost as much as a large input.
    if out.len() > max {
        return;
    }
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(value) => out.push_str(&number(value)),
        Value::String(text) => out.push_str(&quoted(text, max)),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write(out, item, max);
                if out.len() > max {
                    return;
                }
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                out.push_str(&quoted(name, max));
                out.push_str(": ");
                write(out, value, max);
                if out.len() > max {
                    return;
                }
            }
            out.push('}');
        }
    }
}

/// A string in Python quotes: double quotes if the text contains single but no double quotes, otherwise single quotes.
pub(crate) fn string(text: &str) -> String {
    quoted(text, LEN_MAX)
}

/// The first `max` + 1 characters of a text in quotes; with the extra character, the caller sees that the text is
/// longer than `max`.
fn quoted(text: &str, max: usize) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars().take(max.saturating_add(1)) {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => match u32::from(c) {
                code @ 0..=0xff => out.push_str(&format!("\\x{code:02x}")),
                code => out.push_str(&format!("\\u{code:04x}")),
            },
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// A number; floats always have a point or an exponent.
fn number(number: &Number) -> String {
    match number.as_f64() {
        // What no float holds keeps its digits.
        Some(value) if Number::from_f64(value).as_ref() == Some(number) => float(value),
        _ => number.to_string(),
    }
}

/// A float in Python's shortest notation: without an exponent between 1e-4 and 1e16, otherwise with a two-digit
/// exponent.
pub(crate) fn float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{value:e}");
        if let Some((digits, exponent)) = text.split_once('e') {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(rest) => ('-', rest),
                None => ('+', exponent),
            };
            return format!("{digits}e{sign}{exponent:0>2}");
        }
    }
    let text = format!("{value}");
    if text.contains('.') { text } else { format!("{text}.0") }
}

/// The Python name of a value's type.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

/// Whether Python treats the value as false: None, False, zero and empty values.
pub fn is_false(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_read_as_python_prints_them() {
        for (value, text) in [
            (json!(null), "None"),
            (json!([true, false, 1, 1.0, -0.5]), "[True, False, 1, 1.0, -0.5]"),
            (json!({"a": "b", "c": []}), "{'a': 'b', 'c': []}"),
            (json!("it's"), "\"it's\""),
            (json!("it's \"so\""), r#"'it\'s "so"'"#),
            (json!("a\nb\u{7}é"), r"'a\nb\x07é'"),
            (json!([1e16, 1e-5, 1.5e300, 123456789.25]), "[1e+16, 1e-05, 1.5e+300, 123456789.25]"),
        ] {
            assert_eq!(repr(&value), text);
        }
        assert_eq!(repr(&json!("x".repeat(1 << 20))).chars().count(), LEN_MAX + 1);
    }
}
