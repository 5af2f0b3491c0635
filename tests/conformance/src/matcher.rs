//! Compares values with the rows' patterns, and reports the first difference.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde_json::{Number, Value, json};

/// Values captured from earlier steps, by name.
pub type Captures = BTreeMap<String, Value>;

/// Maximum length of a displayed value in characters.
const SHOWN_CHARS: usize = 400;

/// The first place where a value does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// A JSON pointer into the value.
    pub pointer: String,
    /// The pattern.
    pub expected: String,
    /// The actual value.
    pub actual: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() { "/" } else { &self.pointer };
        write!(f, "at {pointer}: expected {}, got {}", self.expected, self.actual)
    }
}

/// Compares a value with a pattern.
///
/// An object with one member whose name starts with `$` is a pattern; a text may refer to captures as `{name}`; numbers
/// are compared by value; everything else must be equal.
pub fn difference(pattern: &Value, value: &Value, captures: &Captures) -> Option<Difference> {
    match pattern {
        Value::Object(members) => match operator(pattern) {
            Some((name, argument)) => operate(name, argument, value, captures),
            None => {
                let Value::Object(found) = value else { return differs(pattern, value) };
                if let Some(extra) = found.keys().find(|name| !members.contains_key(*name)) {
                    return Some(at(extra, "nothing", &shown(&found[extra])));
                }
                members.iter().find_map(|(name, pattern)| member(name, pattern, value, captures))
            }
        },
        Value::Array(patterns) => match value {
            Value::Array(items) if items.len() == patterns.len() => {
                let pairs = patterns.iter().zip(items).enumerate();
                pairs.into_iter().find_map(|(index, (pattern, item))| {
                    difference(pattern, item, captures).map(|found| below(&index.to_string(), found))
                })
            }
            _ => differs(pattern, value),
        },
        Value::String(text) => {
            let filled = fill(text, captures);
            let equal = value.as_str().is_some_and(|found| found == filled || found == text);
            (!equal).then(|| unequal(&Value::String(filled), value))
        }
        Value::Number(number) => {
            let equal = matches!(value, Value::Number(found) if same(number, found));
            (!equal).then(|| unequal(pattern, value))
        }
        Value::Bool(_) | Value::Null => (pattern != value).then(|| unequal(pattern, value)),
    }
}

/// Replaces `{name}` with the value captured under that name; an unknown name is kept.
pub(crate) fn fill(text: &str, captures: &Captures) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let name = from[1..].split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        let end = 1 + name.len();
        if name.is_empty() || !from[end..].starts_with('}') {
            out.push('{');
            rest = &from[1..];
            continue;
        }
        match captures.get(name) {
            Some(Value::String(value)) => out.push_str(value),
            Some(value) => out.push_str(&value.to_string()),
            None => out.push_str(&from[..=end]),
        }
        rest = &from[end + 1..];
    }
    out + rest
}

/// Replaces captures in all strings of a value.
pub(crate) fn fill_all(value: &Value, captures: &Captures) -> Value {
    match value {
        Value::String(text) => Value::String(fill(text, captures)),
        Value::Array(items) => items.iter().map(|item| fill_all(item, captures)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), fill_all(value, captures))).collect()
        }
        other => other.clone(),
    }
}

fn operator(pattern: &Value) -> Option<(&str, &Value)> {
    let members = pattern.as_object().filter(|members| members.len() == 1)?;
    let (name, argument) = members.iter().next()?;
    Some((name.strip_prefix('$')?, argument))
}

fn operate(name: &str, argument: &Value, value: &Value, captures: &Captures) -> Option<Difference> {
    let holds = match name {
        "any" => true,
        "number" => value.is_number(),
        "string" => value.is_string(),
        "min" => value.as_f64().zip(argument.as_f64()).is_some_and(|(found, least)| found >= least),
        "regex" => {
            let pattern = argument.as_str().unwrap_or_default();
            match Regex::new(pattern) {
                Ok(pattern) => value.as_str().is_some_and(|text| pattern.is_match(text)),
                Err(_) => return Some(at("", &format!("{pattern:?}, which is no pattern"), &shown(value))),
            }
        }
        "contains" => {
            let Value::Object(patterns) = argument else { return None };
            if !value.is_object() {
                return Some(unequal(&json!({ "$contains": argument }), value));
            }
            return patterns.iter().find_map(|(name, pattern)| member(name, pattern, value, captures));
        }
        "includes" => {
            let wanted = argument.as_array().map(Vec::as_slice).unwrap_or_default();
            let has = |items: &[Value], pattern: &Value| {
                items.iter().any(|item| operate("contains", pattern, item, captures).is_none())
            };
            let missing = match value {
                Value::Array(items) => wanted.iter().find(|pattern| !has(items, pattern)),
                _ => return Some(unequal(argument, value)),
            };
            return missing.map(|missing| at("", &format!("an item with {}", shown(missing)), &shown(value)));
        }
        "names" => {
            let sorted = |mut names: Vec<String>| {
                names.sort();
                names
            };
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let names = |value: &Value, name: &dyn Fn(&Value) -> Option<String>| {
                value.as_array().and_then(|items| items.iter().map(name).collect::<Option<Vec<_>>>()).map(sorted)
            };
            let found = names(value, &|item| item.get("name").and_then(text));
            found.is_some() && found == names(argument, &text)
        }
        _ => return Some(at("", &format!("${name}, which is no pattern"), &shown(value))),
    };
    (!holds).then(|| at("", &format!("${name} {}", shown(argument)), &shown(value)))
}

fn member(name: &str, pattern: &Value, value: &Value, captures: &Captures) -> Option<Difference> {
    match value.get(name) {
        Some(found) => difference(pattern, found, captures).map(|found| below(name, found)),
        None => Some(at(name, &shown(pattern), "nothing")),
    }
}

/// Whether two numbers have the same value: 0 equals 0.0.
fn same(left: &Number, right: &Number) -> bool {
    left == right || left.as_f64() == right.as_f64()
}

fn differs(pattern: &Value, value: &Value) -> Option<Difference> {
    Some(unequal(pattern, value))
}

fn unequal(pattern: &Value, value: &Value) -> Difference {
    at("", &shown(pattern), &shown(value))
}

fn at(name: &str, expected: &str, actual: &str) -> Difference {
    let found = Difference { pointer: String::new(), expected: expected.to_owned(), actual: actual.to_owned() };
    if name.is_empty() { found } else { below(name, found) }
}

fn below(name: &str, mut found: Difference) -> Difference {
    found.pointer = format!("/{}{}", name.replace('~', "~0").replace('/', "~1"), found.pointer);
    found
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn matches(pattern: &Value, value: &Value) -> bool {
        let captures = [("job".to_owned(), json!("job-1")), ("n".to_owned(), json!(7))].into();
        difference(pattern, value, &captures).is_none()
    }

    #[test]
    fn patterns_match_as_in_the_rows_own_matcher() {
        for (pattern, value) in [
            (json!({"$any": true}), json!(null)),
            (json!({"$number": true}), json!(1.5)),
            (json!({"$string": true}), json!("")),
            (json!({"$min": 2}), json!(2.0)),
            (json!({"$regex": "^job-[0-9a-f]{8,}$"}), json!("job-00112233")),
            (json!({"$regex": "b"}), json!("abc")),
            (json!({"$contains": {"a": {"$min": 1}}}), json!({"a": 1, "b": 2})),
            (json!({"$includes": [{"a": 1}, {"b": 2}]}), json!([{"b": 2, "a": 1}])),
            (json!({"$names": ["b", "a"]}), json!([{"name": "a", "x": 1}, {"name": "b"}])),
            (json!("x {job} {n} {other}"), json!("x job-1 7 {other}")),
            (json!("{job}"), json!("{job}")),
            (json!({"a": 0}), json!({"a": 0.0})),
            (json!([1, "x", null, true]), json!([1.0, "x", null, true])),
            (json!({"$a": 1, "$b": 2}), json!({"$a": 1, "$b": 2})),
        ] {
            assert!(matches(&pattern, &value), "{pattern} {value}");
        }
    }

    #[test]
    fn nothing_else_matches() {
        for (pattern, value) in [
            (json!({"$number": true}), json!(true)),
            (json!({"$string": true}), json!(1)),
            (json!({"$min": 2}), json!(1)),
            (json!({"$min": 0}), json!(false)),
            (json!({"$regex": "^b"}), json!("abc")),
            (json!({"$regex": ""}), json!(1)),
            (json!({"$contains": {"a": 1}}), json!({"b": 1})),
            (json!({"$contains": {"a": 1}}), json!([1])),
            (json!({"$includes": [{"a": 1, "b": 2}]}), json!([{"a": 1}, {"b": 2}])),
            (json!({"$names": ["a"]}), json!([{"name": "a"}, {"name": "a"}])),
            (json!({"$names": ["a"]}), json!([{"x": "a"}])),
            (json!({"a": 1}), json!({"a": 1, "b": 2})),
            (json!({"a": 1, "b": null}), json!({"a": 1})),
            (json!([1]), json!([1, 2])),
            (json!(1), json!(true)),
            (json!(true), json!(1)),
            (json!("1"), json!(1)),
            (json!(null), json!("")),
            (json!({"$other": 1}), json!(1)),
        ] {
            assert!(!matches(&pattern, &value), "{pattern} {value}");
        }
    }

    #[test]
    fn a_difference_names_its_place() {
        let pattern = json!({"jobs": [{"$contains": {"a/b": "{x}"}}], "n": 1});
        let captures = [("x".to_owned(), json!("y"))].into();
        let at =
            |value: Value| difference(&pattern, &value, &captures).map(|found| found.to_string()).unwrap_or_default();
        let found = [
            at(json!({"jobs": [{"a/b": "z"}], "n": 1})),
            at(json!({"jobs": [{}], "n": 1})),
            at(json!({"jobs": [], "n": 1})),
            at(json!({"jobs": [], "n": 1, "m": 2})),
            at(json!(5)),
        ];
        expect![[r#"
            at /jobs/0/a~1b: expected "y", got "z"
            at /jobs/0/a~1b: expected "{x}", got nothing
            at /jobs: expected [{"$contains":{"a/b":"{x}"}}], got []
            at /m: expected nothing, got 2
            at /: expected {"jobs":[{"$contains":{"a/b":"{x}"}}],"n":1}, got 5"#]]
        .assert_eq(&found.join("\n"));
    }
}
