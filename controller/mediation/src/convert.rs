//! Which types can be converted to which, and the conversion of a value (compatibility §11.4).

use serde_json::{Number, Value, json};

/// The declared type of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
    Null,
    /// Not declared, or declared in a form that is not read.
    Unknown,
}

impl Type {
    pub(crate) fn of(property: &Value) -> Self {
        match property.get("type").and_then(Value::as_str) {
            Some("string") => Self::String,
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("boolean") => Self::Boolean,
            Some("array") => Self::Array,
            Some("object") => Self::Object,
            Some("null") => Self::Null,
            _ => Self::Unknown,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
            Self::Null => "null",
            Self::Unknown => "unknown",
        }
    }

    fn is_scalar(self) -> bool {
        matches!(self, Self::String | Self::Integer | Self::Number | Self::Boolean)
    }
}

/// Whether a value of one property can be that of the other without a change, as far as their types say.
pub fn fits_property(from: &Value, to: &Value) -> bool {
    fits(Type::of(from), Type::of(to))
}

/// Whether a value fits without a change.
pub(crate) fn fits(from: Type, to: Type) -> bool {
    from == to || from == Type::Unknown || to == Type::Unknown || (from, to) == (Type::Integer, Type::Number)
}

/// Whether there is a conversion to a property. Some values can fail it.
pub(crate) fn is_castable(from: Type, property: &Value) -> bool {
    match (from, Type::of(property)) {
        (Type::Integer | Type::Number | Type::Boolean, Type::String)
        | (Type::Integer | Type::String, Type::Number)
        | (Type::Number | Type::String, Type::Integer)
        | (Type::String, Type::Boolean) => true,
        (from, Type::Array) => from.is_scalar(),
        (from, Type::Object) => from.is_scalar() && wrapper(property).is_some(),
        _ => false,
    }
}

/// Converts a value to the type of a property. The error says why not.
pub(crate) fn cast(value: &Value, property: &Value) -> Result<Value, String> {
    let to = Type::of(property);
    let no = || Err(format!("cannot convert {} to {}", shortened(value), to.as_str()));
    Ok(match (to, value) {
        (Type::String, Value::Number(number)) => Value::String(number.to_string()),
        (Type::String, Value::Bool(value)) => Value::String(value.to_string()),
        (Type::Integer, Value::Number(number)) => match integral(number) {
            Some(number) => number,
            None => return no(),
        },
        (Type::Integer, Value::String(text)) => match parsed(text).as_ref().and_then(integral) {
            Some(number) => number,
            None => return no(),
        },
        (Type::Number, Value::String(text)) => match parsed(text) {
            Some(number) => Value::Number(number),
            None => return no(),
        },
        (Type::Boolean, Value::String(text)) => match text.trim().to_lowercase().as_str() {
            "true" | "1" | "yes" => Value::Bool(true),
            "false" | "0" | "no" => Value::Bool(false),
            _ => return no(),
        },
        (Type::Object, Value::String(_) | Value::Number(_) | Value::Bool(_)) => match wrapper(property) {
            Some(name) => json!({ name: value }),
            None => return no(),
        },
        (Type::Array, Value::String(_) | Value::Number(_) | Value::Bool(_)) => json!([value]),
        // The value is not of its declared type, or already of the wanted one; the next step validates its input.
        _ => value.clone(),
    })
}

/// The property of an object that takes a scalar: the only one, the only required one, or `value`.
fn wrapper(property: &Value) -> Option<&str> {
    let properties = property.get("properties").and_then(Value::as_object);
    let required: Vec<&str> = property["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match (properties.filter(|all| all.len() == 1).and_then(|all| all.keys().next()), required.as_slice()) {
        (Some(only), _) => Some(only),
        (None, [only]) => Some(only),
        (None, _) => properties.is_some_and(|all| all.contains_key("value")).then_some("value"),
    }
}

/// The number as an integer, if it is one.
fn integral(number: &Number) -> Option<Value> {
    if !number.to_string().contains(['.', 'e', 'E']) {
        return Some(Value::Number(number.clone()));
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0)?;
    #[expect(clippy::cast_possible_truncation, reason = "integers below 2^53 are exact")]
    let integer = float as i64;
    Some(json!(integer))
}

/// A text that is a JSON number.
fn parsed(text: &str) -> Option<Number> {
    match serde_json::from_str(text.trim()) {
        Ok(Value::Number(number)) => Some(number),
        _ => None,
    }
}

fn shortened(value: &Value) -> String {
    const CHARS_MAX: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "the tests read better")]
    fn check(value: Value, to: Value, expected: Result<Value, &str>) {
        assert_eq!(cast(&value, &to), expected.map_err(str::to_owned), "{value} to {to}");
    }

    #[test]
    fn scalars_are_converted() {
        let to = |name: &str| json!({ "type": name });
        check(json!(42), to("string"), Ok(json!("42")));
        check(json!(3.25), to("string"), Ok(json!("3.25")));
        check(json!(true), to("string"), Ok(json!("true")));
        check(json!(2.0), to("integer"), Ok(json!(2)));
        check(json!(2.5), to("integer"), Err("cannot convert 2.5 to integer"));
        check(json!(1e300), to("integer"), Err("cannot convert 1e+300 to integer"));
        check(json!(" 42 "), to("integer"), Ok(json!(42)));
        check(json!("4.0"), to("integer"), Ok(json!(4)));
        check(json!("1.5e1"), to("number"), Ok(json!(15.0)));
        check(json!("012"), to("number"), Err("cannot convert \"012\" to number"));
        check(json!("YES"), to("boolean"), Ok(json!(true)));
        check(json!("0"), to("boolean"), Ok(json!(false)));
        check(json!("maybe"), to("boolean"), Err("cannot convert \"maybe\" to boolean"));
        check(json!("x"), to("array"), Ok(json!(["x"])));
        check(json!("x"), to("object"), Err("cannot convert \"x\" to object"));
        let object = json!({"type": "object", "properties": {"a": {}, "value": {}}});
        check(json!(1), object, Ok(json!({"value": 1})));
        let object = json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]});
        check(json!(1), object, Ok(json!({"b": 1})));
        let long = json!("x".repeat(100));
        assert!(cast(&long, &to("number")).is_err_and(|why| why.len() < 100));
    }
}
