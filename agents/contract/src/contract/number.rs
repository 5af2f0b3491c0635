//! Numbers where the schema leaves the type open: Python's `int()` and `float()` of a YAML value (compatibility §2.1).

use serde_json::Value;

/// `int(value)`: numbers lose their fraction, text is read, booleans count.
pub(super) fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(value) => Some(i64::from(*value)),
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => digits(text)?.parse().ok(),
        _ => None,
    }
}

/// `float(value)`, but only finite: an infinite time is none.
pub(super) fn float(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => digits(text)?.parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

fn whole(number: f64) -> Option<i64> {
    let number = number.trunc();
    // Both bounds are exact in a float; the upper one itself is already too large.
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number).then_some(number as i64)
}

/// The text without blanks around it and without underscores between digits.
fn digits(text: &str) -> Option<String> {
    let text = text.trim();
    let between = |at: usize| {
        let bytes = text.as_bytes();
        let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
        digit(at.checked_sub(1)) && digit(Some(at + 1))
    };
    text.match_indices('_').all(|(at, _)| between(at)).then(|| text.replace('_', ""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_and_fractions_convert_as_in_python() {
        for (value, expected) in [
            (json!(3), Some(3)),
            (json!(2.9), Some(2)),
            (json!(-2.9), Some(-2)),
            (json!(" 1_000 "), Some(1000)),
            (json!(true), Some(1)),
            (json!("2.5"), None),
            (json!("1__0"), None),
            (json!(null), None),
            (json!(1e300), None),
        ] {
            assert_eq!(int(&value), expected, "{value}");
        }
        assert_eq!(float(&json!("1e3")), Some(1000.0));
        assert_eq!(float(&json!("inf")), None);
        assert_eq!(float(&json!([])), None);
    }
}
