//! Whether a path of an `input_map` can find anything, by the schemas of what it refers to.

use serde_json::Value;

use crate::path::segments;

/// The schemas of what paths can refer to.
#[derive(Debug, Clone)]
pub struct Schemas<'a> {
    /// The input of the chain.
    pub trigger: &'a Value,
    /// The current data.
    pub data: &'a Value,
    /// The steps before: their names and the schemas of their outputs. Of several steps with one name, the last counts.
    pub steps: Vec<(&'a str, &'a Value)>,
}

/// Why a path never finds anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    #[error("a path has names with dots between them, at most 64")]
    NoPath,
    #[error("there is no step \"{name}\" before this one")]
    Step { name: String, known: Vec<String> },
    #[error("{at} has the members output and name, and no \"{name}\"")]
    Record { at: String, name: String, known: Vec<String> },
    #[error("{at} has no field \"{name}\"")]
    Field { at: String, name: String, known: Vec<String> },
    #[error("{at} is of the type {kind}, which has no field \"{name}\"")]
    Scalar { at: String, kind: String, name: String },
    #[error("{at} is a list, and \"{name}\" is no number")]
    Index { at: String, name: String },
}

impl Unreachable {
    /// The name that is not there, and those that are.
    pub fn names(&self) -> Option<(&str, &[String])> {
        match self {
            Self::Step { name, known } | Self::Record { name, known, .. } | Self::Field { name, known, .. } => {
                Some((name, known))
            }
            Self::NoPath | Self::Scalar { .. } | Self::Index { .. } => None,
        }
    }
}

/// The schema of what a path finds; none if the schemas do not say. The same rules as [`Context`](crate::Context) has for values.
pub fn reach<'a>(path: &str, schemas: &Schemas<'a>) -> Result<Option<&'a Value>, Unreachable> {
    let segments = path.strip_prefix("$.").and_then(segments).ok_or(Unreachable::NoPath)?;
    let names: Vec<&str> = segments.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["trigger", rest @ ..] if !rest.is_empty() && path.starts_with("$.trigger.") => {
            walk(schemas.trigger, "the input of the chain".to_owned(), rest)
        }
        ["steps", step, rest @ ..] => record(path, schemas, step, rest),
        all => walk(schemas.data, "the data of the step before".to_owned(), all),
    }
}

/// Follows a path into the record of a step.
fn record<'a>(path: &str, schemas: &Schemas<'a>, step: &str, rest: &[&str]) -> Result<Option<&'a Value>, Unreachable> {
    let found = match path.starts_with("$.steps[") {
        true => step.parse::<usize>().ok().and_then(|number| schemas.steps.get(number)),
        false => schemas.steps.iter().rev().find(|(name, _)| *name == step),
    };
    let Some((name, output)) = found else {
        let known = schemas.steps.iter().map(|(name, _)| (*name).to_owned()).collect();
        return Err(Unreachable::Step { name: step.to_owned(), known });
    };
    match rest {
        [] | ["name"] => Ok(None),
        ["output", rest @ ..] => walk(output, format!("the output of \"{name}\""), rest),
        [other, ..] => Err(Unreachable::Record {
            at: format!("the record of \"{name}\""),
            name: (*other).to_owned(),
            known: vec!["output".to_owned(), "name".to_owned()],
        }),
    }
}

/// Follows names into a schema. What it leaves open can be there.
fn walk<'a>(schema: &'a Value, mut at: String, names: &[&str]) -> Result<Option<&'a Value>, Unreachable> {
    let mut schema = schema;
    for name in names {
        let Some(next) = member(schema, &at, name)? else { return Ok(None) };
        at = format!("\"{name}\" of {at}");
        schema = next;
    }
    Ok(Some(schema))
}

fn member<'a>(schema: &'a Value, at: &str, name: &str) -> Result<Option<&'a Value>, Unreachable> {
    let (at, name) = (at.to_owned(), name.to_owned());
    let is_open = ["$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "if", "patternProperties"];
    if is_open.iter().any(|keyword| schema.get(keyword).is_some()) {
        return Ok(None);
    }
    let properties = schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty());
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => match name.parse::<usize>() {
            Ok(_) => Ok(schema.get("items").filter(|items| items.is_object())),
            Err(_) => Err(Unreachable::Index { at, name }),
        },
        Some(kind @ ("string" | "integer" | "number" | "boolean" | "null")) => {
            Err(Unreachable::Scalar { at, kind: kind.to_owned(), name })
        }
        _ => match (properties.and_then(|all| all.get(&name)), schema.get("additionalProperties")) {
            (Some(found), _) => Ok(Some(found)),
            (None, Some(Value::Bool(true))) => Ok(None),
            (None, Some(rest @ Value::Object(_))) => Ok(Some(rest)),
            // A schema that lists fields and says nothing about others: a name that it does not list is a mistake.
            (None, closed) if properties.is_some() || closed == Some(&Value::Bool(false)) => {
                let known = properties.into_iter().flat_map(|all| all.keys().cloned()).collect();
                Err(Unreachable::Field { at, name, known })
            }
            (None, _) => Ok(None),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn told(path: &str) -> String {
        let text = json!({"type": "string"});
        let output = json!({"properties": {
            "text": text, "list": {"type": "array", "items": {"properties": {"id": {"type": "integer"}}}},
            "open": {"type": "object"}, "any": {"anyOf": []}, "map": {"additionalProperties": {"type": "number"}},
            "free": {"properties": {"a": {}}, "additionalProperties": true},
        }});
        let (trigger, closed) = (json!({}), json!({"additionalProperties": false}));
        let schemas = Schemas { trigger: &trigger, data: &output, steps: vec![("write", &output), ("shut", &closed)] };
        match reach(path, &schemas) {
            Ok(Some(schema)) => schema.to_string(),
            Ok(None) => "open".to_owned(),
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn what_a_path_can_find_is_known_by_the_schemas() {
        for (path, expected) in [
            ("$.text", r#"{"type":"string"}"#),
            ("$.list[0].id", r#"{"type":"integer"}"#),
            ("$.steps.write.output.text", r#"{"type":"string"}"#),
            ("$.steps[0].output.list.3.id", r#"{"type":"integer"}"#),
            ("$.map.x", r#"{"type":"number"}"#),
            ("$.open.x.y", "open"),
            ("$.any.x", "open"),
            ("$.free.b", "open"),
            ("$.trigger.whatever", "open"),
            ("$.steps.write", "open"),
            ("$.steps[1].name", "open"),
        ] {
            assert_eq!(told(path), expected, "{path}");
        }
    }

    #[test]
    fn a_path_that_never_finds_anything_says_where_it_ends() {
        for (path, expected) in [
            ("text", "a path has names with dots between them, at most 64"),
            ("$.txt", "the data of the step before has no field \"txt\""),
            ("$.text.x", "\"text\" of the data of the step before is of the type string, which has no field \"x\""),
            ("$.list.id", "\"list\" of the data of the step before is a list, and \"id\" is no number"),
            ("$.trigger", "the data of the step before has no field \"trigger\""),
            ("$.steps.none.output.x", "there is no step \"none\" before this one"),
            ("$.steps[2].output.x", "there is no step \"2\" before this one"),
            ("$.steps.write.text", "the record of \"write\" has the members output and name, and no \"text\""),
            ("$.steps.shut.output.x", "the output of \"shut\" has no field \"x\""),
        ] {
            assert_eq!(told(path), expected, "{path}");
        }
    }

    proptest! {
        /// What is refused by the schemas is not found in any value that satisfies them: here, one with all fields.
        #[test]
        fn a_path_that_finds_a_value_is_not_refused(path in "\\$\\.(text|list|open|steps|write|output|[0-2]|\\.|\\[0\\]){1,6}") {
            let value = json!({"text": "t", "list": [{"id": 1}], "open": {"x": 1}});
            let context = crate::Context { trigger: json!({}), steps: vec![("write".to_owned(), value.clone())] };
            let found = context.resolve(&path, &value).is_some();
            let refused = {
                let schema = json!({"properties": {
                    "text": {"type": "string"}, "list": {"type": "array", "items": {"properties": {"id": {"type": "integer"}}}},
                    "open": {"type": "object"},
                }});
                let trigger = json!({});
                reach(&path, &Schemas { trigger: &trigger, data: &schema, steps: vec![("write", &schema)] }).is_err()
            };
            prop_assert!(!(found && refused), "{path}");
        }
    }
}
