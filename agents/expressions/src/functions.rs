//! The functions that expressions may call.

use std::borrow::Cow;
use std::cmp::Ordering;

use cel::common::ast::operators as op;
use regex::{Regex, RegexBuilder};
use serde_json::{Number, Value};

use crate::evaluate::{Cell, Evaluation, Wrong};
use crate::operators::{arithmetic, equal, index, integer, kind, order, weight};

/// The steps that a pattern costs when it is compiled.
const PATTERN_STEPS: u64 = 500;
/// Most bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 256 * 1024;

/// The functions with their numbers of values; the value before the dot is one of them.
const FUNCTIONS: [(&str, bool, usize); 34] = [
    (op::CONDITIONAL, false, 3),
    (op::LOGICAL_AND, false, 2),
    (op::LOGICAL_OR, false, 2),
    (op::LOGICAL_NOT, false, 1),
    (op::NOT_STRICTLY_FALSE, false, 1),
    (op::ADD, false, 2),
    (op::SUBSTRACT, false, 2),
    (op::MULTIPLY, false, 2),
    (op::DIVIDE, false, 2),
    (op::MODULO, false, 2),
    (op::NEGATE, false, 1),
    (op::EQUALS, false, 2),
    (op::NOT_EQUALS, false, 2),
    (op::LESS, false, 2),
    (op::LESS_EQUALS, false, 2),
    (op::GREATER, false, 2),
    (op::GREATER_EQUALS, false, 2),
    (op::INDEX, false, 2),
    (op::IN, false, 2),
    ("size", false, 1),
    ("size", true, 1),
    ("contains", true, 2),
    ("startsWith", true, 2),
    ("endsWith", true, 2),
    ("matches", true, 2),
    ("matches", false, 2),
    ("lowerAscii", true, 1),
    ("upperAscii", true, 1),
    ("trim", true, 1),
    ("int", false, 1),
    ("double", false, 1),
    ("string", false, 1),
    ("bool", false, 1),
    ("type", false, 1),
];

/// Whether there is a function of this name.
pub(crate) fn is_known(name: &str, has_target: bool, arguments: usize) -> bool {
    FUNCTIONS.contains(&(name, has_target, arguments + usize::from(has_target)))
}

pub(crate) fn call<'a>(evaluation: &mut Evaluation<'a>, name: &str, values: Vec<Cell<'a>>) -> Result<Cell<'a>, Wrong> {
    let mut values = values.into_iter();
    let first = values.next().unwrap_or(Cow::Owned(Value::Null));
    let Some(second) = values.next() else { return Ok(Cow::Owned(one(evaluation, name, &first)?)) };
    if name == op::INDEX {
        return index(first, &second);
    }
    Ok(Cow::Owned(two(evaluation, name, &first, &second)?))
}

fn one(evaluation: &mut Evaluation<'_>, name: &str, value: &Value) -> Result<Value, String> {
    let undefined = || Err(format!("{} of {} is not defined", plain(name), kind(value)));
    if let Value::String(text) = value {
        evaluation.spend(text.len() as u64 / 32)?;
    }
    match (name, value) {
        (op::NEGATE, number) => arithmetic('-', &Value::from(0), number),
        ("size", Value::String(text)) => Ok(Value::from(text.chars().count())),
        ("size", Value::Array(items)) => Ok(Value::from(items.len())),
        ("size", Value::Object(members)) => Ok(Value::from(members.len())),
        ("lowerAscii", Value::String(text)) => Ok(Value::String(text.to_ascii_lowercase())),
        ("upperAscii", Value::String(text)) => Ok(Value::String(text.to_ascii_uppercase())),
        ("trim", Value::String(text)) => Ok(Value::String(text.trim().to_owned())),
        ("string", Value::String(text)) => Ok(Value::String(text.clone())),
        ("string", Value::Bool(_) | Value::Number(_)) => Ok(Value::String(value.to_string())),
        ("int", Value::Number(number)) => to_integer(number),
        ("int", Value::String(text)) => {
            text.trim().parse::<i64>().map(Value::from).map_err(|_| "the text is no whole number".to_owned())
        }
        ("double", Value::Number(number)) => {
            let number = number.as_f64().and_then(Number::from_f64).map(Value::Number);
            number.ok_or_else(|| "is no number".to_owned())
        }
        ("double", Value::String(text)) => {
            let number = text.trim().parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number);
            number.ok_or_else(|| "the text is no number".to_owned())
        }
        ("bool", Value::Bool(_)) => Ok(value.clone()),
        ("bool", Value::String(text)) => match text.as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err("the text is neither true nor false".to_owned()),
        },
        ("type", value) => Ok(Value::from(type_name(value))),
        _ => undefined(),
    }
}

/// A function as it is written: the parser calls `in` `@in`.
fn plain(name: &str) -> &str {
    name.trim_matches(['@', '_'])
}

fn to_integer(number: &Number) -> Result<Value, String> {
    if number.as_i128().is_some() {
        return Ok(Value::Number(number.clone()));
    }
    // A cast of a float is bounded, so numbers beyond 64 bits are found by `integer`.
    let found = number.as_f64().and_then(|number| integer(number.trunc() as i128));
    found.ok_or_else(|| "the number is too large".to_owned())
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null_type",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() && number.as_i128().is_none() => "double",
        Value::Number(_) => "int",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    }
}

fn two(evaluation: &mut Evaluation<'_>, name: &str, left: &Value, right: &Value) -> Result<Value, String> {
    let ordered = |test: fn(Ordering) -> bool| order(left, right).map(|order| Value::Bool(test(order)));
    match (name, left, right) {
        (op::EQUALS | op::NOT_EQUALS, left, right) => {
            evaluation.spend(weight(left).min(weight(right)))?;
            Ok(Value::Bool(equal(left, right) == (name == op::EQUALS)))
        }
        (op::LESS, ..) => ordered(Ordering::is_lt),
        (op::LESS_EQUALS, ..) => ordered(Ordering::is_le),
        (op::GREATER, ..) => ordered(Ordering::is_gt),
        (op::GREATER_EQUALS, ..) => ordered(Ordering::is_ge),
        (op::ADD, Value::String(a), Value::String(b)) => {
            evaluation.spend(weight(left) + weight(right))?;
            Ok(Value::String(format!("{a}{b}")))
        }
        (op::ADD, Value::Array(a), Value::Array(b)) => {
            evaluation.spend(weight(left) + weight(right))?;
            Ok(Value::Array(a.iter().chain(b).cloned().collect()))
        }
        (op::ADD, ..) => arithmetic('+', left, right),
        (op::SUBSTRACT, ..) => arithmetic('-', left, right),
        (op::MULTIPLY, ..) => arithmetic('*', left, right),
        (op::DIVIDE, ..) => arithmetic('/', left, right),
        (op::MODULO, ..) => arithmetic('%', left, right),
        (op::IN, item, Value::Array(items)) => {
            evaluation.spend(items.iter().map(|other| weight(other).min(weight(item))).sum())?;
            Ok(Value::Bool(items.iter().any(|other| equal(other, item))))
        }
        (op::IN, Value::String(key), Value::Object(members)) => Ok(Value::Bool(members.contains_key(key))),
        (_, Value::String(text), Value::String(other)) => texts(evaluation, name, text, other).map(Value::Bool),
        _ => Err(format!("{} of {} and {} is not defined", plain(name), kind(left), kind(right))),
    }
}

fn texts(evaluation: &mut Evaluation<'_>, name: &str, text: &str, other: &str) -> Result<bool, String> {
    evaluation.spend(text.len() as u64 / 32)?;
    match name {
        "contains" => Ok(text.contains(other)),
        "startsWith" => Ok(text.starts_with(other)),
        "endsWith" => Ok(text.ends_with(other)),
        "matches" => {
            evaluation.spend(text.len() as u64 / 4)?;
            Ok(pattern(evaluation, other)?.is_match(text))
        }
        _ => Err(format!("{name} of two texts is not defined")),
    }
}

fn pattern<'e>(evaluation: &'e mut Evaluation<'_>, pattern: &str) -> Result<&'e Regex, String> {
    if !evaluation.patterns.contains_key(pattern) {
        evaluation.spend(PATTERN_STEPS)?;
        let built = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX).build();
        let built = built.map_err(|_| "the pattern is wrong or too large".to_owned())?;
        evaluation.patterns.insert(pattern.to_owned(), built);
    }
    evaluation.patterns.get(pattern).ok_or_else(|| "the pattern is lost".to_owned())
}
