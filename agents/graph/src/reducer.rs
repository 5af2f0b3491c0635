//! Reducers: how a write is combined with the value that a key already has.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};

/// A rule that combines a write with the current value of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reducer {
    /// Adds the value to a list as one element.
    Append,
    /// Adds the elements of a list.
    Extend,
    /// Adds text on a new line.
    Concat,
    Sum,
    Max,
    Min,
    /// Adds the members of an object; they replace those of the same name.
    Merge,
    /// Replaces the value; of several writers the last node wins.
    Overwrite,
}

/// A value that a reducer cannot combine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the reducer \"{reducer}\" needs {wants}, and the {position} value is {got}")]
pub struct ReducerError {
    pub reducer: &'static str,
    /// The type that it needs: `array`, `string`, `number` or `object`.
    pub wants: &'static str,
    /// `current` or `incoming`.
    pub position: &'static str,
    /// The type of the value.
    pub got: &'static str,
}

impl Reducer {
    pub const ALL: [Self; 8] =
        [Self::Append, Self::Extend, Self::Concat, Self::Sum, Self::Max, Self::Min, Self::Merge, Self::Overwrite];

    pub fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Extend => "extend",
            Self::Concat => "concat",
            Self::Sum => "sum",
            Self::Max => "max",
            Self::Min => "min",
            Self::Merge => "merge",
            Self::Overwrite => "overwrite",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reducer| reducer.name() == name)
    }

    /// The new value of a key. `current` is none if the state does not have the key; a null is a value.
    pub fn fold(self, current: Option<&Value>, incoming: &Value) -> Result<Value, ReducerError> {
        match self {
            Self::Append => {
                let mut items = self.list(current)?;
                items.push(incoming.clone());
                Ok(Value::Array(items))
            }
            Self::Extend => {
                let mut items = self.list(current)?;
                items.extend(self.wanted("array", "incoming", incoming, incoming.as_array())?.iter().cloned());
                Ok(Value::Array(items))
            }
            Self::Concat => {
                let current =
                    current.map(|value| self.wanted("string", "current", value, value.as_str())).transpose()?;
                let added = self.wanted("string", "incoming", incoming, incoming.as_str())?;
                Ok(Value::from(match current {
                    None | Some("") => added.to_owned(),
                    Some(current) => format!("{current}\n{added}"),
                }))
            }
            Self::Sum | Self::Max | Self::Min => {
                let number = |position, value: &Value| match value {
                    Value::Number(number) => Ok(number.clone()),
                    other => Err(self.wrong("number", position, other)),
                };
                let current = current.map(|value| number("current", value)).transpose()?;
                let incoming = number("incoming", incoming)?;
                Ok(match (self, current) {
                    (Self::Sum, current) => {
                        let current = current.unwrap_or_else(|| Number::from(0));
                        for (position, number) in [("current", &current), ("incoming", &incoming)] {
                            if is_long(number) {
                                return Err(self.wrong(
                                    "number with fewer digits",
                                    position,
                                    &Value::Number(number.clone()),
                                ));
                            }
                        }
                        sum(&current, &incoming)
                    }
                    (_, None) => Value::Number(incoming),
                    (_, Some(current)) => {
                        let keeps =
                            if self == Self::Max { less(&incoming, &current) } else { less(&current, &incoming) };
                        Value::Number(if keeps { current } else { incoming })
                    }
                })
            }
            Self::Merge => {
                let current =
                    current.map(|value| self.wanted("object", "current", value, value.as_object())).transpose()?;
                let added = self.wanted("object", "incoming", incoming, incoming.as_object())?;
                let mut members = current.cloned().unwrap_or_default();
                members.extend(added.iter().map(|(name, value)| (name.clone(), value.clone())));
                Ok(Value::Object(members))
            }
            Self::Overwrite => Ok(incoming.clone()),
        }
    }

    fn list(self, current: Option<&Value>) -> Result<Vec<Value>, ReducerError> {
        let items = current.map(|value| self.wanted("array", "current", value, value.as_array())).transpose()?;
        Ok(items.cloned().unwrap_or_default())
    }

    fn wanted<'v, T: ?Sized>(
        self,
        wants: &'static str,
        position: &'static str,
        value: &Value,
        found: Option<&'v T>,
    ) -> Result<&'v T, ReducerError> {
        found.ok_or_else(|| self.wrong(wants, position, value))
    }

    fn wrong(self, wants: &'static str, position: &'static str, value: &Value) -> ReducerError {
        ReducerError { reducer: self.name(), wants, position, got: type_name(value) }
    }
}

/// The name of a value's type in messages.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Exact for integers. Otherwise a sum of floats, as an integer if it is whole.
fn sum(left: &Number, right: &Number) -> Value {
    if let Some(total) = left.as_i128().zip(right.as_i128()).and_then(|(left, right)| left.checked_add(right)) {
        if let Ok(total) = i64::try_from(total) {
            return json!(total);
        }
        if let Ok(total) = u64::try_from(total) {
            return json!(total);
        }
        if let Some(total) = Number::from_i128(total) {
            return Value::Number(total);
        }
    }
    let total = left.as_f64().unwrap_or_default() + right.as_f64().unwrap_or_default();
    // Whole floats below 2^53 are exact integers.
    if total.fract() == 0.0 && total.abs() < 9_007_199_254_740_992.0 { json!(total as i64) } else { json!(total) }
}

/// Whether a sum would lose digits of a number.
fn is_long(number: &Number) -> bool {
    number.as_i128().is_none() && number.as_f64().and_then(Number::from_f64).as_ref() != Some(number)
}

fn less(left: &Number, right: &Number) -> bool {
    match left.as_i128().zip(right.as_i128()) {
        Some((left, right)) => left < right,
        None => left.as_f64() < right.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
    fn check(reducer: &str, current: Option<Value>, incoming: Value, expected: &str) {
        let reducer = Reducer::named(reducer).expect("a reducer");
        let shown =
            reducer.fold(current.as_ref(), &incoming).map_or_else(|error| format!("! {error}"), |v| v.to_string());
        assert_eq!(shown, expected, "{reducer:?} {current:?} {incoming}");
    }

    #[test]
    fn no_digit_is_lost() {
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("a number");
        check("sum", Some(read("123456789012345678901234567890")), json!(1), "123456789012345678901234567891");
        check("sum", None, read("123456789012345678901234567890"), "123456789012345678901234567890");
        check("max", Some(json!(1)), read("123456789012345678901234567890"), "123456789012345678901234567890");
        let long = read("0.1000000000000000055511151231257827");
        check("append", None, long.clone(), "[0.1000000000000000055511151231257827]");
        assert!(Reducer::named("sum").expect("a reducer").fold(None, &long).is_err(), "a sum would lose digits");
    }

    #[test]
    fn lists_grow() {
        check("append", None, json!([1]), "[[1]]");
        check("append", Some(json!([0])), json!([1, 2]), "[0,[1,2]]");
        check("extend", None, json!([1]), "[1]");
        check("extend", Some(json!([0])), json!([1, 2]), "[0,1,2]");
        check(
            "extend",
            Some(json!([0])),
            json!("x"),
            "! the reducer \"extend\" needs array, and the incoming value is string",
        );
        check(
            "append",
            Some(Value::Null),
            json!(1),
            "! the reducer \"append\" needs array, and the current value is null",
        );
    }

    #[test]
    fn text_is_joined_by_lines() {
        check("concat", None, json!("a"), "\"a\"");
        check("concat", Some(json!("")), json!("a"), "\"a\"");
        check("concat", Some(json!("x")), json!(""), "\"x\\n\"");
        check("concat", None, json!(1), "! the reducer \"concat\" needs string, and the incoming value is number");
    }

    #[test]
    fn integers_are_added_exactly_and_whole_sums_are_integers() {
        check("sum", None, json!(2.0), "2");
        check("sum", Some(json!(9_007_199_254_740_993_i64)), json!(2), "9007199254740995");
        check("sum", Some(json!(i64::MAX)), json!(1), "9223372036854775808");
        check("sum", Some(json!(1.5)), json!(1.5), "3");
        check("sum", Some(json!(1)), json!(0.25), "1.25");
        check("max", Some(json!(1)), json!(1.5), "1.5");
        check("min", Some(json!(-1)), json!(3), "-1");
        check("max", None, json!({}), "! the reducer \"max\" needs number, and the incoming value is object");
    }

    #[test]
    fn objects_are_united_and_values_replaced() {
        check("merge", Some(json!({"a": 1, "b": {"x": 1}})), json!({"b": {"y": 2}}), r#"{"a":1,"b":{"y":2}}"#);
        check(
            "merge",
            Some(json!([])),
            json!({}),
            "! the reducer \"merge\" needs object, and the current value is array",
        );
        check("overwrite", Some(json!(1)), json!("x"), "\"x\"");
        assert_eq!(Reducer::named("Sum"), None);
    }
}
