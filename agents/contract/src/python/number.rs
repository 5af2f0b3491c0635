//! Numbers whose type the schema does not fix: Python's `int()` and `float()` of a YAML value (compatibility §2.1).

use serde_json::Value;

/// `int(value)`: truncates numbers, parses text and accepts booleans.
pub fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(value) => Some(i64::from(*value)),
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => digits(text)?.parse().ok(),
        _ => None,
    }
}

/// `float(value)`, but none for an infinite value, which is not a valid time.
pub(crate) fn float(value: &Value) -> Option<f64> {
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
    // Both bounds are exact as floats; the upper bound itself is out of range.
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number).then_some(number as i64)
}

/// Removes surrounding white space, and underscores between digits.
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
