//! Schemas that no value satisfies.

use serde_json::Value;

/// Deeper schemas are not looked at.
const DEPTH_MAX: u32 = 64;

/// Where and why no value satisfies a schema, as far as that is certain; none if one may.
///
/// ```
/// use atlas_contract::schema::never;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "required": ["a"], "properties": {"b": {}}, "additionalProperties": false});
/// let (pointer, why) = never(&schema).expect("nothing satisfies it");
/// assert_eq!((pointer.as_str(), why.as_str()), ("/required", "\"a\" is required, and additionalProperties allows no such field"));
/// assert_eq!(never(&json!({"required": ["a"]})), None);
/// ```
pub fn never(schema: &Value) -> Option<(String, String)> {
    found(schema, "", DEPTH_MAX)
}

fn found(schema: &Value, at: &str, depth: u32) -> Option<(String, String)> {
    let wrong = |keyword: &str, why: String| Some((format!("{at}/{keyword}"), why));
    if schema == &Value::Bool(false) {
        return Some((at.to_owned(), "the schema false allows nothing".to_owned()));
    }
    let types = types(schema);
    let of_type = |value: &Value| types.is_empty() || types.iter().any(|kind| is(value, kind));
    if let Some(values) = schema.get("enum").and_then(Value::as_array)
        && !values.iter().any(of_type)
    {
        let why = if values.is_empty() { "it lists no value" } else { "none of its values has the type" };
        return wrong("enum", format!("{why}{}", named(&types)));
    }
    if let Some(value) = schema.get("const").filter(|value| !of_type(value)) {
        return wrong("const", format!("{value} does not have the type{}", named(&types)));
    }
    for (kinds, least, most) in [
        (&["integer", "number"][..], "minimum", "maximum"),
        (&["string"], "minLength", "maxLength"),
        (&["array"], "minItems", "maxItems"),
        (&["object"], "minProperties", "maxProperties"),
    ] {
        let only = !types.is_empty() && types.iter().all(|kind| kinds.contains(kind));
        let number = |name: &str| schema.get(name).and_then(Value::as_f64);
        if let (true, Some(low), Some(high)) = (only, number(least), number(most))
            && low > high
        {
            return wrong(least, format!("{low} is more than {most}, {high}"));
        }
    }
    if depth == 0 {
        return None;
    }
    members(schema, &types, at, depth - 1).or_else(|| combined(schema, at, depth - 1))
}

/// What objects and lists must have.
fn members(schema: &Value, types: &[&str], at: &str, depth: u32) -> Option<(String, String)> {
    if types == ["object"] {
        let properties = schema.get("properties").and_then(Value::as_object);
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let closed = closed && schema.get("patternProperties").is_none();
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            match properties.and_then(|all| all.get(name)) {
                Some(inner) => {
                    let at = format!("{at}/properties/{}", crate::violation::escaped(name));
                    if let Some(found) = found(inner, &at, depth) {
                        return Some(found);
                    }
                }
                None if closed => {
                    let why = format!("\"{name}\" is required, and additionalProperties allows no such field");
                    return Some((format!("{at}/required"), why));
                }
                None => {}
            }
        }
    }
    let filled = types == ["array"] && schema.get("minItems").and_then(Value::as_u64).is_some_and(|least| least > 0);
    schema.get("items").filter(|_| filled).and_then(|items| found(items, &format!("{at}/items"), depth))
}

/// What several schemas say together.
fn combined(schema: &Value, at: &str, depth: u32) -> Option<(String, String)> {
    let listed = |keyword: &str| schema.get(keyword).and_then(Value::as_array);
    let each = |keyword: &'static str| {
        listed(keyword).into_iter().flatten().enumerate().map(move |(index, inner)| {
            let at = format!("{at}/{keyword}/{index}");
            found(inner, &at, depth)
        })
    };
    if let Some(found) = each("allOf").flatten().next() {
        return Some(found);
    }
    ["anyOf", "oneOf"].into_iter().find_map(|keyword| {
        let all: Vec<_> = each(keyword).collect();
        let none = !all.is_empty() && all.iter().all(Option::is_some);
        all.into_iter().flatten().next().filter(|_| none)
    })
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn named(types: &[&str]) -> String {
    if types.is_empty() { String::new() } else { format!(" {}", types.join(" or ")) }
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => super::exact::is_integer(value),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::schema::Validator;

    #[test]
    fn contradictions_are_found_where_they_are() {
        for (schema, expected) in [
            (json!({"type": "string", "enum": [false, 1]}), "/enum: none of its values has the type string"),
            (json!({"enum": []}), "/enum: it lists no value"),
            (json!({"type": "integer", "const": 1.5}), "/const: 1.5 does not have the type integer"),
            (json!({"type": "integer", "minimum": 5, "maximum": 1}), "/minimum: 5 is more than maximum, 1"),
            (
                json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "minLength": 2, "maxLength": 1}}}),
                "/properties/a/minLength: 2 is more than maxLength, 1",
            ),
            (json!({"type": "array", "minItems": 1, "items": false}), "/items: the schema false allows nothing"),
            (json!({"allOf": [{}, {"enum": []}]}), "/allOf/1/enum: it lists no value"),
            (json!({"anyOf": [false, {"enum": []}]}), "/anyOf/0: the schema false allows nothing"),
        ] {
            let told = never(&schema).map(|(at, why)| format!("{at}: {why}"));
            assert_eq!(told.as_deref(), Some(expected), "{schema}");
        }
    }

    #[test]
    fn what_may_be_satisfied_is_let_pass() {
        for schema in [
            json!({}),
            json!(true),
            json!({"enum": [1, "a"], "type": "string"}),
            json!({"minimum": 5, "maximum": 1}),
            json!({"properties": {"a": false}}),
            json!({"anyOf": [false, {}]}),
            json!({"type": "array", "items": false}),
        ] {
            assert_eq!(never(&schema), None, "{schema}");
        }
    }

    proptest! {
        /// A value that satisfies a schema is never in a schema that nothing satisfies.
        #[test]
        fn a_satisfied_schema_is_not_refused(low in 0..3, high in 0..3, length in 0..3_usize, kind in "string|array|object|integer") {
            let schema = json!({
                "type": kind, "minLength": low, "maxLength": high, "minItems": low, "maxItems": high, "minimum": low, "maximum": high,
                "minProperties": low, "maxProperties": high,
            });
            let members: serde_json::Map<String, Value> = (0..length).map(|index| (index.to_string(), json!(1))).collect();
            let value = match kind.as_str() {
                "string" => json!("x".repeat(length)),
                "array" => json!(vec![1; length]),
                "object" => Value::Object(members),
                _ => json!(length),
            };
            let satisfied = Validator::compile(&schema).expect("a schema").validate(&value).is_ok();
            prop_assert!(!(satisfied && never(&schema).is_some()), "{schema} {value}");
        }
    }
}
