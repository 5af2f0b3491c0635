//! Numbers, comparisons and members of values.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Number, Value};

use crate::evaluate::{Cell, Wrong};

/// What a value is, in words.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// The steps that a copy of a value costs.
pub(crate) fn weight(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len() as u64 / 32,
        Value::Array(items) => 1 + items.iter().map(weight).sum::<u64>(),
        Value::Object(members) => {
            1 + members.iter().map(|(key, value)| key.len() as u64 / 32 + weight(value)).sum::<u64>()
        }
    }
}

/// The member of a map.
pub(crate) fn member<'a>(value: Cell<'a>, name: &str) -> Result<Cell<'a>, Wrong> {
    let missing = || Wrong::Missing(format!("no such member: {name}"));
    match value {
        Cow::Borrowed(Value::Object(members)) => members.get(name).map(Cow::Borrowed).ok_or_else(missing),
        Cow::Owned(Value::Object(mut members)) => members.remove(name).map(Cow::Owned).ok_or_else(missing),
        other => Err(Wrong::Missing(format!("is {} and has no member {name}", kind(&other)))),
    }
}

/// A member of a map, or an item of a list.
pub(crate) fn index<'a>(value: Cell<'a>, at: &Value) -> Result<Cell<'a>, Wrong> {
    let position = match at {
        Value::String(name) => return member(value, name),
        Value::Number(number) => number.as_u64().and_then(|position| usize::try_from(position).ok()),
        other => return Err(format!("{} is no index", kind(other)).into()),
    };
    let missing = || Wrong::Missing(format!("no item {at}"));
    let position = position.ok_or_else(missing)?;
    match value {
        Cow::Borrowed(Value::Array(items)) => items.get(position).map(Cow::Borrowed).ok_or_else(missing),
        Cow::Owned(Value::Array(mut items)) if position < items.len() => Ok(Cow::Owned(items.swap_remove(position))),
        Cow::Owned(Value::Array(_)) => Err(missing()),
        other => Err(Wrong::Missing(format!("is {} and has no items", kind(&other)))),
    }
}

/// A whole number, if it is one that has no fraction by its form.
fn whole(number: &Number) -> Option<i128> {
    number.as_i128()
}

/// Whether a number has more digits than the numbers that are calculated with. It is passed on as it is, and is equal to itself.
fn is_long(number: &Number) -> bool {
    whole(number).is_none() && number.as_f64().and_then(Number::from_f64).as_ref() != Some(number)
}

/// Refuses numbers that would lose digits.
fn short(numbers: [&Number; 2]) -> Result<(), String> {
    match numbers.into_iter().find(|number| is_long(number)) {
        None => Ok(()),
        Some(number) => Err(format!("{number} has more digits than can be calculated with")),
    }
}

/// Numbers are compared by their values, whatever their forms.
pub(crate) fn numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ if is_long(left) || is_long(right) => (left == right).then_some(Ordering::Equal),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// Values of different kinds are not equal.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => numbers(left, right) == Some(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same = |(key, value): (&String, &Value)| right.get(key).is_some_and(|other| equal(value, other));
            left.len() == right.len() && left.iter().all(same)
        }
        (left, right) => left == right,
    }
}

/// The order of two numbers or two texts.
pub(crate) fn order(left: &Value, right: &Value) -> Result<Ordering, String> {
    let found = match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            short([left, right])?;
            numbers(left, right)
        }
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        _ => None,
    };
    found.ok_or_else(|| format!("{} and {} have no order", kind(left), kind(right)))
}

/// A sum, difference, product, quotient or remainder.
pub(crate) fn arithmetic(sign: char, left: &Value, right: &Value) -> Result<Value, String> {
    let (Value::Number(a), Value::Number(b)) = (left, right) else {
        return Err(format!("{} {sign} {} is not defined", kind(left), kind(right)));
    };
    short([a, b])?;
    if let (Some(a), Some(b)) = (whole(a), whole(b)) {
        if b == 0 && matches!(sign, '/' | '%') {
            return Err("divides by zero".to_owned());
        }
        let result = match sign {
            '+' => a.checked_add(b),
            '-' => a.checked_sub(b),
            '*' => a.checked_mul(b),
            '/' => a.checked_div(b),
            _ => a.checked_rem(b),
        };
        return result.and_then(integer).ok_or_else(|| "the number is too large".to_owned());
    }
    let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) else { return Err("is no number".to_owned()) };
    let result = match sign {
        '+' => a + b,
        '-' => a - b,
        '*' => a * b,
        '/' => a / b,
        _ => return Err("the remainder is defined for whole numbers".to_owned()),
    };
    Number::from_f64(result).map(Value::Number).ok_or_else(|| "the result is no number".to_owned())
}

/// A whole number that fits in 64 bits.
pub(crate) fn integer(number: i128) -> Option<Value> {
    i64::try_from(number).map(Value::from).or_else(|_| u64::try_from(number).map(Value::from)).ok()
}
