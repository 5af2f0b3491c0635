//! `--filter`: evaluates an expression on an object, in a subset of CEL.
//!
//! Names are members of the object. A missing member makes an expression false instead of an error, if members of that
//! name exist; a value of the wrong type is an error. `&&` and `||` ignore an error on one side if the other side
//! decides.

mod parse;

use std::str::FromStr;

use serde_json::{Number, Value};

use crate::failure::Failure;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Filter {
    text: String,
    root: Node,
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Value(Value),
    Name(String),
    List(Vec<Node>),
    Member(Box<Node>, String),
    Index(Box<Node>, Box<Node>),
    Call(Option<Box<Node>>, String, Vec<Node>),
    Not(Box<Node>),
    Minus(Box<Node>),
    Binary(&'static str, Box<Node>, Box<Node>),
    Choice(Box<Node>, Box<Node>, Box<Node>),
}

/// Why a part of an expression has no value.
#[derive(Debug, PartialEq)]
enum Trouble {
    /// The object does not have the member.
    Absent,
    /// A type error.
    Wrong(String),
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let root = parse::expression(text).map_err(|error| compared(text).unwrap_or(error))?;
        Ok(Self { text: text.to_owned(), root })
    }
}

/// The error about `status=failed`, which is how other programs compare.
fn compared(text: &str) -> Option<String> {
    let (name, value) = text.split_once('=')?;
    let (name, value) = (name.trim(), value.trim().trim_matches(['"', '\'']));
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let is_plain = !name.is_empty() && name.chars().all(is_name) && !value.is_empty() && !value.contains(['=', '"']);
    let is_text = serde_json::from_str::<Value>(value).is_err();
    let quote = if is_text { "\"" } else { "" };
    is_plain.then(|| format!("one = does not compare; write {name} == {quote}{value}{quote}"))
}

impl Filter {
    /// The members of an object that the expression uses.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.names(&mut names);
        names
    }

    /// Whether the expression is true for an object.
    pub(crate) fn admits(&self, object: &Value) -> Result<bool, Failure> {
        let wrong = |what: String| Failure::usage(format!("the filter {} cannot be applied: {what}", self.text));
        match self.root.value(object) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(wrong(format!("it evaluates to {other}, not to true or false"))),
            Err(Trouble::Absent) => Ok(false),
            Err(Trouble::Wrong(what)) => Err(wrong(what)),
        }
    }
}

impl Node {
    fn names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::Value(_) => {}
            Self::Name(name) => names.push(name),
            Self::List(items) => items.iter().for_each(|item| item.names(names)),
            Self::Member(of, _) | Self::Not(of) | Self::Minus(of) => of.names(names),
            Self::Index(left, right) | Self::Binary(_, left, right) => {
                left.names(names);
                right.names(names);
            }
            Self::Call(of, _, arguments) => {
                of.iter().for_each(|of| of.names(names));
                arguments.iter().for_each(|argument| argument.names(names));
            }
            Self::Choice(condition, yes, no) => [condition, yes, no].into_iter().for_each(|node| node.names(names)),
        }
    }

    fn value(&self, object: &Value) -> Result<Value, Trouble> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::Name(name) => object.get(name).cloned().ok_or(Trouble::Absent),
            Self::List(items) => items.iter().map(|item| item.value(object)).collect(),
            Self::Member(of, name) => of.value(object)?.get(name).cloned().ok_or(Trouble::Absent),
            Self::Index(of, at) => {
                let (of, at) = (of.value(object)?, at.value(object)?);
                let found = match &at {
                    Value::String(name) => of.get(name),
                    at => at.as_u64().and_then(|at| of.get(usize::try_from(at).ok()?)),
                };
                found.cloned().ok_or(Trouble::Absent)
            }
            Self::Call(of, name, arguments) => call(object, of.as_deref(), name, arguments),
            Self::Not(of) => truth(&of.value(object)?).map(|holds| Value::Bool(!holds)),
            Self::Minus(of) => number(&of.value(object)?).map(|of| float(-of)),
            Self::Binary("&&", left, right) => both(false, left.truth(object), right.truth(object)),
            Self::Binary("||", left, right) => both(true, left.truth(object), right.truth(object)),
            Self::Binary(sign, left, right) => binary(sign, &left.value(object)?, &right.value(object)?),
            Self::Choice(condition, yes, no) => {
                if condition.truth(object)? {
                    yes.value(object)
                } else {
                    no.value(object)
                }
            }
        }
    }

    fn truth(&self, object: &Value) -> Result<bool, Trouble> {
        truth(&self.value(object)?)
    }
}

/// `&&` or `||`: if either side is `decisive`, that is the result, even if the other side is an error.
fn both(decisive: bool, left: Result<bool, Trouble>, right: Result<bool, Trouble>) -> Result<Value, Trouble> {
    if left == Ok(decisive) || right == Ok(decisive) {
        return Ok(Value::Bool(decisive));
    }
    left.and(right).map(|_| Value::Bool(!decisive))
}

fn truth(value: &Value) -> Result<bool, Trouble> {
    value.as_bool().ok_or_else(|| Trouble::Wrong(format!("{value} is not true or false")))
}

fn number(value: &Value) -> Result<f64, Trouble> {
    value.as_f64().ok_or_else(|| Trouble::Wrong(format!("{value} is not a number")))
}

fn float(number: f64) -> Value {
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

fn binary(sign: &str, left: &Value, right: &Value) -> Result<Value, Trouble> {
    use atlas_contract::same;
    let ordered = || match (left, right) {
        (Value::String(left), Value::String(right)) => Ok(left.cmp(right)),
        (left, right) => Ok(number(left)?.total_cmp(&number(right)?)),
    };
    Ok(match sign {
        "==" => Value::Bool(same(left, right)),
        "!=" => Value::Bool(!same(left, right)),
        "<" => Value::Bool(ordered()?.is_lt()),
        "<=" => Value::Bool(ordered()?.is_le()),
        ">" => Value::Bool(ordered()?.is_gt()),
        ">=" => Value::Bool(ordered()?.is_ge()),
        "in" => match (left, right) {
            (left, Value::Array(items)) => Value::Bool(items.iter().any(|item| same(left, item))),
            (Value::String(name), Value::Object(members)) => Value::Bool(members.contains_key(name)),
            (_, right) => return Err(Trouble::Wrong(format!("{right} cannot contain values"))),
        },
        "+" => match (left, right) {
            (Value::String(left), Value::String(right)) => Value::String(left.clone() + right),
            (left, right) => float(number(left)? + number(right)?),
        },
        "-" => float(number(left)? - number(right)?),
        "*" => float(number(left)? * number(right)?),
        "/" => float(number(left)? / number(right)?),
        _ => float(number(left)? % number(right)?),
    })
}

fn call(object: &Value, of: Option<&Node>, name: &str, arguments: &[Node]) -> Result<Value, Trouble> {
    if let (None, "has", [argument]) = (of, name, arguments) {
        return match argument.value(object) {
            Err(Trouble::Absent) => Ok(Value::Bool(false)),
            other => other.map(|value| Value::Bool(!value.is_null())),
        };
    }
    let mut values: Vec<Value> = of.into_iter().map(|of| of.value(object)).collect::<Result<_, _>>()?;
    for argument in arguments {
        values.push(argument.value(object)?);
    }
    let text = |at: usize| match values.get(at) {
        Some(Value::String(text)) => Ok(text.as_str()),
        other => Err(Trouble::Wrong(format!("{name} requires text, not {}", other.unwrap_or(&Value::Null)))),
    };
    Ok(match (name, values.len()) {
        ("size", 1) => match &values[0] {
            Value::String(text) => text.chars().count().into(),
            Value::Array(items) => items.len().into(),
            Value::Object(members) => members.len().into(),
            other => return Err(Trouble::Wrong(format!("{other} has no size"))),
        },
        ("contains", 2) => Value::Bool(text(0)?.contains(text(1)?)),
        ("startsWith", 2) => Value::Bool(text(0)?.starts_with(text(1)?)),
        ("endsWith", 2) => Value::Bool(text(0)?.ends_with(text(1)?)),
        ("lowerAscii", 1) => Value::String(text(0)?.to_ascii_lowercase()),
        ("string", 1) => match &values[0] {
            Value::String(text) => Value::String(text.clone()),
            other => Value::String(other.to_string()),
        },
        ("double" | "int", 1) => match &values[0] {
            Value::String(text) => {
                let number: f64 = text.parse().map_err(|_| Trouble::Wrong(format!("\"{text}\" is not a number")))?;
                float(if name == "int" { number.trunc() } else { number })
            }
            other => float(if name == "int" { number(other)?.trunc() } else { number(other)? }),
        },
        _ => return Err(Trouble::Wrong(format!("no such function with these arguments: \"{name}\""))),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(text: &str) -> Result<bool, String> {
        let object = json!({
            "status": "failed", "attempt": 2, "labels": {"team": "a", "x-y": "1"}, "list": [1, 2.0], "warm": true, "none": null,
            "error": "Process exited with code 3",
        });
        let filter: Filter = text.parse()?;
        filter.admits(&object).map_err(|failure| failure.message)
    }

    #[test]
    fn one_equals_sign_is_what_other_programs_compare_with() {
        let told = |text: &str| text.parse::<Filter>().expect_err("refused");
        assert_eq!(told("status=failed"), "one = does not compare; write status == \"failed\"");
        assert_eq!(told("labels.a = 'b'"), "one = does not compare; write labels.a == \"b\"");
        assert_eq!(told("attempt=2"), "one = does not compare; write attempt == 2");
        assert_eq!(told("a = b == c"), "unexpected \"=\"");
    }

    #[test]
    fn expressions_hold_or_do_not() {
        for text in [
            "status == 'failed'",
            "status == \"failed\" && attempt > 1",
            "!(attempt == 1) || missing == 1",
            "missing == 1 || warm",
            "labels.team == 'a' && labels[\"x-y\"] == '1'",
            "2 in list && !('c' in labels) && 'team' in labels",
            "error.startsWith('Process') && error.contains('code 3') && error.endsWith('3')",
            "size(list) == 2 && list.size() == 2 && size('äö') == 2",
            "has(labels.team) && !has(labels.nobody) && !has(none)",
            "attempt * 2 + 1 == 5 && -attempt < 0 && attempt % 2 == 0 && 1 - 1 - 1 == -1 && 8 / 2 / 2 == 2",
            "warm ? attempt == 2 : false",
            "status in ['failed', 'cancelled'] && 'a' + 'b' == 'ab' && 'a' < 'b' && 1 <= 1.0 && 2 >= 1 && 1 != 2",
            "int('7') == 7 && string(attempt) == '2' && 'ABC'.lowerAscii() == 'abc' && none == null",
            "'it\\'s' == \"it's\"",
        ] {
            assert_eq!(holds(text), Ok(true), "{text}");
        }
        for text in ["status == 'completed'", "missing == 1", "missing.deeper", "labels.nobody == 'x'", "list[9] == 1"]
        {
            assert_eq!(holds(text), Ok(false), "{text}");
        }
    }

    #[test]
    fn a_filter_knows_which_members_it_names() {
        let text = "-a.b[c] > 1 && !('x' in d) || size(e) + f.size() == 2 ? has(g.h) : i in [j]";
        let filter: Filter = text.parse().expect("a filter");
        assert_eq!(filter.names().concat(), "acdefgij");
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (text, problem) in [
            ("attempt", "it evaluates to 2, not to true or false"),
            ("status < 1", "\"failed\" is not a number"),
            ("status && true", "not true or false"),
            ("frob(1)", "no such function with these arguments: \"frob\""),
            ("1 in 2", "2 cannot contain values"),
        ] {
            assert!(holds(text).is_err_and(|error| error.contains(problem)), "{text}: {:?}", holds(text));
        }
        for text in ["", "a ==", "(a", "a b", "'open", "a = 1", "1 2", "[1", "a.", "a ? b", "#", &"(".repeat(5000)] {
            assert!(text.parse::<Filter>().is_err(), "{text}");
        }
    }
}
