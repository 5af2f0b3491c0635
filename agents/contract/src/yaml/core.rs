//! The values of plain scalars in the core schema of YAML 1.2, as tools of the Rust world read it.

use serde_json::{Number, Value};

use super::Foreign;
use super::scalar::Scalar;

/// Resolves a plain scalar. What has no other type is text.
pub(super) fn plain(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Json(Value::Null),
        "true" | "True" | "TRUE" => return Scalar::Json(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Scalar::Json(Value::Bool(false)),
        _ => {}
    }
    if let Some(integer) = integer(text) {
        return Scalar::Json(integer);
    }
    if matches!(text.trim_start_matches(['+', '-']), ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return Scalar::Foreign(Foreign::NonFinite(text.to_owned()));
    }
    float(text).map_or_else(|| Scalar::Json(Value::from(text)), |number| Scalar::Json(Value::Number(number)))
}

fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let radixes = [("0x", 16), ("0o", 8), ("0b", 2)];
    let (radix, digits) = radixes
        .into_iter()
        .find_map(|(prefix, radix)| Some((radix, digits.strip_prefix(prefix)?)))
        .unwrap_or((10, digits));
    // `007` is text, and `from_str_radix` accepts a second sign.
    if digits.starts_with(['+', '-']) || radix == 10 && digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if !negative {
        return Some(Value::from(magnitude));
    }
    i64::try_from(-i128::from(magnitude)).ok().map(Value::from)
}

/// A number with a point or an exponent, or an integer that has more than 64 bits.
fn float(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    let leads_with_zero =
        digits.len() > 1 && digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.starts_with('0');
    if !is_number || leads_with_zero {
        return None;
    }
    // `.5`, `5.` and `+5` are numbers here and not in JSON.
    text.parse().ok().or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::yaml::{Budget, load_core};

    #[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
    fn check(text: &str, expected: Value) {
        let marked = load_core(text.as_bytes(), Budget::default()).expect("valid");
        assert_eq!(marked.value, expected, "{text}");
    }

    use super::*;

    #[test]
    fn words_and_dates_are_text() {
        check(
            "[yes, no, on, off, y, 2024-01-01, 1:30, 010, 1_000]",
            json!(["yes", "no", "on", "off", "y", "2024-01-01", "1:30", "010", "1_000"]),
        );
        check("<<: {a: 1}\n=: 2", json!({"<<": {"a": 1}, "=": 2}));
    }

    #[test]
    fn numbers_booleans_and_null_have_their_types() {
        check("[1, -2, +3, 0x1f, 0o17, 0b11, 0]", json!([1, -2, 3, 31, 15, 3, 0]));
        check(
            "[1.5, 1e3, .5, -1.0, 12345678901234567890]",
            json!([1.5, 1000.0, 0.5, -1.0, 12_345_678_901_234_567_890_u64]),
        );
        check("[true, True, FALSE, null, ~, '', \"1\"]", json!([true, true, false, null, null, "", "1"]));
        check("[--1, +-1, e3, 1.2.3, inf, '-']", json!(["--1", "+-1", "e3", "1.2.3", "inf", "-"]));
    }

    #[test]
    fn what_json_cannot_represent_is_refused_with_its_place() {
        for (text, told) in [
            (
                "a: 1\nb: [-.inf]",
                "line 2, column 5: -.inf is no number that JSON has; write a number, or quote it as text",
            ),
            ("a: .NaN", "line 1, column 4: .NaN is no number that JSON has; write a number, or quote it as text"),
            ("a: !!binary aGk=", "line 1, column 13: JSON has no value for !!binary; write a text or a list"),
        ] {
            assert_eq!(load_core(text.as_bytes(), Budget::default()).expect_err(text).to_string(), told);
        }
    }

    #[test]
    fn a_value_has_the_line_of_its_key() {
        let marked = load_core(b"a:\n  b:\n    - 1\n    - c~/d: 2\n", Budget::default()).expect("valid");
        let lines: Vec<(&str, usize)> = marked.lines.iter().map(|(at, line)| (at.as_str(), *line)).collect();
        assert_eq!(lines, [("", 1), ("/a", 1), ("/a/b", 2), ("/a/b/0", 3), ("/a/b/1", 4), ("/a/b/1/c~0~1d", 4)]);
    }
}
