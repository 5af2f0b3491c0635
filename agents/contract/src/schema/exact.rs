//! Keywords that compare numbers: `minimum` and its siblings, `const`, `enum` and `uniqueItems`, and the type `integer`. The engine compares
//! by `f64` what no type of Rust holds, such as integers from 2^64 on; here the digits decide.

use std::cmp::Ordering;
use std::collections::HashSet;

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError, ValidationOptions};
use serde_json::{Map, Number, Value};

/// Replaces the keywords of the engine.
pub(super) fn keywords(options: ValidationOptions<'_>) -> ValidationOptions<'_> {
    options
        .with_keyword("minimum", |_, limit, _| bound(limit, |order| order != Ordering::Less))
        .with_keyword("maximum", |_, limit, _| bound(limit, |order| order != Ordering::Greater))
        .with_keyword("exclusiveMinimum", |_, limit, _| bound(limit, |order| order == Ordering::Greater))
        .with_keyword("exclusiveMaximum", |_, limit, _| bound(limit, |order| order == Ordering::Less))
        .with_keyword("const", constant)
        .with_keyword("enum", choice)
        .with_keyword("uniqueItems", unique)
        .with_keyword("type", kind)
}

/// A keyword that says of a value whether it fits. Its texts come from [`super::message`].
struct Test<F>(F);

impl<'i, F: Fn(&Value) -> bool + Send + Sync> Keyword<'i> for Test<F> {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.0(instance) { Ok(()) } else { Err(ValidationError::custom("does not fit")) }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.0(instance)
    }
}

type Made<'a> = Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>>;

fn bound<'a>(limit: &'a Value, fits: fn(Ordering) -> bool) -> Made<'a> {
    let limit = limit.as_number().cloned();
    Ok(Box::new(Test(move |value: &Value| match (value, &limit) {
        (Value::Number(value), Some(limit)) => fits(compare(value, limit)),
        _ => true,
    })))
}

fn constant<'a>(_parent: &'a Map<String, Value>, wanted: &'a Value, _at: Location) -> Made<'a> {
    let wanted = wanted.clone();
    Ok(Box::new(Test(move |value: &Value| same(value, &wanted))))
}

fn choice<'a>(_parent: &'a Map<String, Value>, choices: &'a Value, _at: Location) -> Made<'a> {
    let choices = choices.as_array().cloned().unwrap_or_default();
    // Most are texts, and there can be many.
    let texts: HashSet<String> = choices.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect();
    let others: Vec<Value> = choices.into_iter().filter(|one| !one.is_string()).collect();
    Ok(Box::new(Test(move |value: &Value| match value {
        Value::String(text) => texts.contains(text),
        value => others.iter().any(|one| same(value, one)),
    })))
}

fn unique<'a>(_parent: &'a Map<String, Value>, wanted: &'a Value, _at: Location) -> Made<'a> {
    let wanted = wanted == &Value::Bool(true);
    Ok(Box::new(Test(move |value: &Value| match value {
        Value::Array(items) if wanted && items.len() > 1 => {
            let mut seen = HashSet::new();
            items.iter().all(|item| seen.insert(written(item)))
        }
        _ => true,
    })))
}

fn kind<'a>(_parent: &'a Map<String, Value>, wanted: &'a Value, _at: Location) -> Made<'a> {
    let names = wanted.as_array().map_or(std::slice::from_ref(wanted), Vec::as_slice);
    // The engine has checked the names with the schema of schemas.
    let kinds: Vec<Kind> = names.iter().filter_map(|name| Kind::of(name.as_str()?)).collect();
    Ok(Box::new(Test(move |value: &Value| kinds.iter().any(|kind| kind.is(value)))))
}

/// A type of values.
#[derive(Clone, Copy)]
enum Kind {
    Array,
    Boolean,
    Integer,
    Null,
    Number,
    Object,
    String,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "array" => Self::Array,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "null" => Self::Null,
            "number" => Self::Number,
            "object" => Self::Object,
            "string" => Self::String,
            _ => return None,
        })
    }

    fn is(self, value: &Value) -> bool {
        match self {
            Self::Array => value.is_array(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => is_integer(value),
            Self::Null => value.is_null(),
            Self::Number => value.is_number(),
            Self::Object => value.is_object(),
            Self::String => value.is_string(),
        }
    }
}

/// Whether a value is a number without a fraction, by its digits: `1.0`, `1e30` and `12345678901234567890.0` are.
pub(crate) fn is_integer(value: &Value) -> bool {
    let Value::Number(number) = value else { return false };
    number.is_i64() || number.is_u64() || Decimal::of(number).places() == 0
}

/// Whether two values are the same: numbers by what they mean, members in any order.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare(left, right) == Ordering::Equal,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let in_right = |(name, value): (&String, &Value)| right.get(name).is_some_and(|other| same(value, other));
            left.len() == right.len() && left.iter().all(in_right)
        }
        (left, right) => left == right,
    }
}

/// A text that two values have in common exactly if they are the same.
fn written(value: &Value) -> String {
    match value {
        Value::Number(number) => {
            let Decimal { negative, digits, power } = Decimal::of(number);
            format!("{}{}e{power}", if negative { "-" } else { "" }, String::from_utf8_lossy(&digits))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let member =
                |(name, value): (&String, &Value)| format!("{}:{}", Value::from(name.as_str()), written(value));
            let mut members: Vec<String> = members.iter().map(member).collect();
            members.sort_unstable();
            format!("{{{}}}", members.join(","))
        }
        other => other.to_string(),
    }
}

/// How two numbers compare, by all their digits.
fn compare(left: &Number, right: &Number) -> Ordering {
    if let (Some(left), Some(right)) = (left.as_i128(), right.as_i128()) {
        return left.cmp(&right);
    }
    if let (Some(left), Some(right)) = (double(left), double(right))
        && let Some(order) = left.partial_cmp(&right)
    {
        return order;
    }
    Decimal::of(left).order(&Decimal::of(right))
}

/// The number if an `f64` holds it.
fn double(number: &Number) -> Option<f64> {
    number.as_f64().filter(|double| number.is_f64() && Number::from_f64(*double).as_ref() == Some(number))
}

/// Whether no type of Rust holds a number.
pub(super) fn is_beyond(number: &Number) -> bool {
    number.is_f64() && double(number).is_none()
}

/// A number by its digits, 0.D₁D₂… times a power of ten, without zeros at either end; zero has none.
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    power: i64,
}

impl Decimal {
    fn of(number: &Number) -> Self {
        let text = number.to_string();
        let (negative, text) = text.strip_prefix('-').map_or((false, text.as_str()), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        // One that does not fit is farther away than any digits reach.
        let far = if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
        let exponent = exponent.parse().unwrap_or(far).clamp(i64::MIN / 2, i64::MAX / 2);
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let Some(first) = all.iter().position(|digit| *digit != b'0') else {
            return Self { negative: false, digits: Vec::new(), power: 0 };
        };
        let end = all.iter().rposition(|digit| *digit != b'0').map_or(first, |last| last + 1);
        let power = exponent + i64::try_from(whole.len()).unwrap_or(0) - i64::try_from(first).unwrap_or(0);
        Self { negative, digits: all[first..end].to_vec(), power }
    }

    fn order(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.digits.is_empty(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let amount = || self.power.cmp(&other.power).then_with(|| self.digits.cmp(&other.digits));
        sign(self).cmp(&sign(other)).then_with(|| if self.negative { amount().reverse() } else { amount() })
    }

    /// The digits after the point.
    fn places(&self) -> i64 {
        i64::try_from(self.digits.len()).unwrap_or(i64::MAX).saturating_sub(self.power).max(0)
    }

    /// The digits of the number times ten to the power of `places`, which makes it whole.
    fn scaled(&self, places: i64) -> impl Iterator<Item = u128> + '_ {
        let count = usize::try_from(self.power + places).unwrap_or(0);
        let digit = |at: usize| self.digits.get(at).map_or(0, |digit| u128::from(digit - b'0'));
        (0..count).map(digit)
    }
}

/// Most digits with which a multiple is looked at.
const SCALED_MAX: i64 = 2_000;

/// Whether one number is a multiple of another, by their digits. None if that would take too many of them.
pub(super) fn is_multiple(value: &Number, of: &Number) -> Option<bool> {
    let (value, of) = (Decimal::of(value), Decimal::of(of));
    if value.digits.is_empty() || of.digits.is_empty() {
        return Some(value.digits.is_empty() && !of.digits.is_empty());
    }
    let places = value.places().max(of.places());
    if [value.power, of.power].iter().any(|power| power.saturating_add(places) > SCALED_MAX) || places > SCALED_MAX {
        return None;
    }
    let divisor = of.scaled(places).try_fold(0_u128, |all, digit| all.checked_mul(10)?.checked_add(digit))?;
    // The remainder is below the divisor, so ten times it must fit.
    if divisor == 0 || divisor > u128::MAX / 16 {
        return None;
    }
    Some(value.scaled(places).fold(0, |rest, digit| (rest * 10 + digit) % divisor) == 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schema::Validator;

    fn read(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn large_and_long_numbers_are_compared_by_their_digits() {
        let big = "123456789012345678901234567890";
        for (schema, value, fits) in [
            (format!(r#"{{"minimum": {big}}}"#), "123456789012345678901234567889", false),
            (format!(r#"{{"minimum": {big}}}"#), big, true),
            (format!(r#"{{"maximum": {big}}}"#), "123456789012345678901234567891", false),
            (format!(r#"{{"exclusiveMaximum": {big}}}"#), "123456789012345678901234567889", true),
            (format!(r#"{{"exclusiveMaximum": {big}}}"#), big, false),
            (format!(r#"{{"exclusiveMinimum": -{big}}}"#), "-123456789012345678901234567889", true),
            (r#"{"maximum": 0.1}"#.to_owned(), "0.10000000000000000001", false),
            (r#"{"maximum": 18446744073709551615}"#.to_owned(), "18446744073709551616", false),
            (r#"{"maximum": 18446744073709551616}"#.to_owned(), "18446744073709551615", true),
            (r#"{"minimum": 1e300}"#.to_owned(), big, false),
            (format!(r#"{{"const": {big}}}"#), "123456789012345678901234567891", false),
            (format!(r#"{{"const": {{"a": [{big}]}}}}"#), r#"{"a": [123456789012345678901234567890.0]}"#, true),
            (format!(r#"{{"enum": ["x", {big}]}}"#), "123456789012345678901234567891", false),
            (format!(r#"{{"enum": ["x", {big}]}}"#), r#""x""#, true),
            (r#"{"const": 1}"#.to_owned(), "1.0", true),
            (r#"{"enum": [1, null]}"#.to_owned(), "true", false),
            (r#"{"uniqueItems": true}"#.to_owned(), "[18446744073709551616, 18446744073709551617]", true),
            (r#"{"uniqueItems": true}"#.to_owned(), r#"[{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]"#, false),
            (r#"{"uniqueItems": true}"#.to_owned(), r#"[1, "1", true, "true", [1], ["1"]]"#, true),
            (r#"{"type": "integer"}"#.to_owned(), "1e30", true),
            (r#"{"type": "integer"}"#.to_owned(), "1.5e300", true),
            (r#"{"type": "integer"}"#.to_owned(), "-1.0", true),
            (r#"{"type": "integer"}"#.to_owned(), "0.0", true),
            (r#"{"type": "integer"}"#.to_owned(), "12345678901234567890.0", true),
            (r#"{"type": "integer"}"#.to_owned(), "12345678901234567890.5", false),
            (r#"{"type": "integer"}"#.to_owned(), "1e-400", false),
            (r#"{"type": ["integer", "null"]}"#.to_owned(), "9007199254740993.5", false),
            (r#"{"type": ["string", "null"]}"#.to_owned(), "null", true),
            (r#"{"type": "integer"}"#.to_owned(), "true", false),
            (r#"{"type": "number"}"#.to_owned(), "12345678901234567890.5", true),
            (r#"{"multipleOf": 7}"#.to_owned(), "123456789012345678901234567890123456789014", false),
            (r#"{"multipleOf": 10}"#.to_owned(), "123456789012345678901234567890123456789010", true),
            (r#"{"multipleOf": 0.01}"#.to_owned(), "1234567890123456789.01", true),
            (r#"{"multipleOf": 0.01}"#.to_owned(), "1234567890123456789.011", false),
        ] {
            let validator = Validator::compile(&read(&schema)).expect("a schema");
            let value = read(value);
            assert_eq!(validator.is_valid(&value), fits, "{value} of {schema}");
            assert_eq!(validator.validate(&value).is_ok(), fits, "{value} of {schema}");
        }
    }

    #[test]
    fn the_violation_has_the_digits() {
        let validator = Validator::compile(&read(r#"{"maximum": 18446744073709551616}"#)).expect("a schema");
        let violations = validator.validate(&read("18446744073709551617")).expect_err("too large");
        assert_eq!(violations[0].rule, "maximum");
        let text = "18446744073709551617 is greater than the maximum of 18446744073709551616";
        assert_eq!(violations[0].message, text);
    }

    #[test]
    fn exponents_beyond_all_bounds_cost_nothing() {
        assert!(!is_integer(&read("1e-999999999999999999999")));
        let tiny = read("1e-999999999999999999999");
        let (Value::Number(tiny), Value::Number(one)) = (&tiny, &read("1")) else { return };
        assert_eq!(compare(tiny, one), Ordering::Less);
        assert_ne!(is_multiple(one, tiny), Some(false));
    }

    proptest! {
        #[test]
        fn numbers_that_rust_has_compare_as_there(left in any::<i64>(), right in any::<f64>()) {
            let Some(float) = Number::from_f64(right) else { return Ok(()) };
            prop_assert_eq!(compare(&float, &float), Ordering::Equal);
            let decimal = Decimal::of(&Number::from(left)).order(&Decimal::of(&float));
            // Below 2^53, a double has no other integers.
            if left.unsigned_abs() < 1 << 53 {
                prop_assert_eq!(Some(decimal), (left as f64).partial_cmp(&right));
            }
        }

        #[test]
        fn integers_compare_by_their_digits(left in any::<i128>(), right in any::<i128>(), of in 1..1_000_000_i128) {
            let number = |number: i128| match read(&number.to_string()) {
                Value::Number(number) => number,
                _ => Number::from(0),
            };
            prop_assert_eq!(Decimal::of(&number(left)).order(&Decimal::of(&number(right))), left.cmp(&right));
            prop_assert_eq!(is_multiple(&number(left), &number(of)), Some(left % of == 0));
        }
    }
}
