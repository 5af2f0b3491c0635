//! Whether two JSON values are the same.

use serde_json::{Number, Value};

/// Whether two values are the same. Numbers are compared by value, exactly, so `1` is `1.0`; the order of members is ignored.
pub fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => same_number(left, right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let equal = |(name, value): (&String, &Value)| right.get(name).is_some_and(|other| same(value, other));
            left.len() == right.len() && left.iter().all(equal)
        }
        _ => left == right,
    }
}

fn same_number(left: &Number, right: &Number) -> bool {
    match (integer(left), integer(right)) {
        // What no float holds is the same only as itself.
        (None, None) => left == right,
        (left, right) => left == right,
    }
}

/// The integer that a number is; none for fractions, and for floats from 2^126 on.
fn integer(number: &Number) -> Option<i128> {
    number.as_i128().or_else(|| {
        let is_float = |&float: &f64| Number::from_f64(float).as_ref() == Some(number);
        let float = number.as_f64().filter(is_float)?;
        let float = Some(float).filter(|float| float.fract() == 0.0 && float.abs() < 2_f64.powi(126))?;
        // In range, and whole.
        Some(float as i128)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        for (left, right, expected) in [
            ("1", "1.0", true),
            ("0", "-0.0", true),
            ("123456789012345678901234567890", "123456789012345678901234567890", true),
            ("123456789012345678901234567890", "123456789012345678901234567891", false),
            ("0.1000000000000000055511151231257827", "0.1", false),
            ("1", "1.5", false),
            ("0.1", "0.1", true),
            ("1e300", "1e300", true),
            ("1e300", "1", false),
            ("1000000000000000000", "1000000000000000001", false),
            ("1000000000000000000", "1e18", true),
            ("1000000000000000001", "1e18", false),
            ("18446744073709551615", "18446744073709551614", false),
            ("18446744073709551615", "18446744073709551616", false),
            ("1", "true", false),
            ("[1, 2]", "[1.0, 2]", true),
            (r#"{"a": 1, "b": 2}"#, r#"{"b": 2.0, "a": 1}"#, true),
            (r#"{"a": 1}"#, r#"{"a": 1, "b": null}"#, false),
        ] {
            let [first, second] = [left, right].map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
            assert_eq!(same(&first, &second), expected, "{left} and {right}");
            assert_eq!(same(&second, &first), expected, "{right} and {left}");
        }
    }
}
