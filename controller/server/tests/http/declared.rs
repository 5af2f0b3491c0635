//! Every answer that a test gets is what the interface says: no member is missing, and none is there that it does not tell.

use atlas_api::types::{self, Shape, of, schemas};
use atlas_api::{Content, route};
use http::{Method, StatusCode};
use serde_json::Value;

use crate::client::Reply;

/// Fails if the answer to a request is not one that its row and the types tell.
#[track_caller]
pub(crate) fn check(method: &str, path: &str, reply: &Reply) {
    if let Some(Err(wrong)) = found(method, path, reply) {
        panic!("{method} {path}: {wrong}: {reply:?}");
    }
}

/// None if there is nothing to check.
fn found(method: &str, path: &str, reply: &Reply) -> Option<Result<(), String>> {
    let status = StatusCode::from_u16(reply.status).ok()?;
    let kind = reply.header("content-type")?.split(';').next()?;
    let one = |shape: Shape, value: &Value| fits(&schemas()[&*shape.name()], value, &shape.name());
    let json = || serde_json::from_str::<Value>(&reply.body).map_err(|error| error.to_string());
    if kind == "application/problem+json" {
        return Some(json().and_then(|value| one(of::<types::Problem>(), &value)));
    }
    let path = path.split('?').next().unwrap_or_default();
    let operation = route(path)?.operation(&Method::from_bytes(method.as_bytes()).ok()?)?;
    if reply.body.is_empty() || method == "HEAD" {
        return None;
    }
    if kind == "application/json" && !status.is_success() {
        let is_openai = operation.has_openai_errors();
        let shape = if is_openai { of::<types::ApiError>() } else { of::<types::Error>() };
        return Some(json().and_then(|value| one(shape, &value)));
    }
    let mut contents = operation.contents(status);
    match kind {
        "application/json" => contents.find_map(|content| match content {
            Content::Json(shape) => Some(json().and_then(|value| one(*shape, &value))),
            Content::List(shape) => Some(json().and_then(|value| {
                let items = value.as_array().ok_or("no array")?;
                items.iter().try_for_each(|item| one(*shape, item))
            })),
            Content::Events(_) | Content::Other(_) => None,
        }),
        _ => None,
    }
}

/// Whether a value is one of a schema, and has no member that the schema does not tell.
fn fits(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return fits(&schemas()[name], value, at);
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => Vec::from_iter(kind.as_str()),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind, value)) {
        return Err(format!("{at} is no {}", kinds.join(" or ")));
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return Err(format!("{at} has another word"));
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return Err(format!("{at} has another value"));
    }
    for item in value.as_array().into_iter().flatten() {
        fits(&schema["items"], item, &format!("{at}[]"))?;
    }
    let Some(members) = value.as_object() else { return Ok(()) };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.clone().find(|name| !members.contains_key(*name)) {
        return Err(format!("{at} has no {missing}"));
    }
    for (name, member) in members {
        let at = format!("{at}.{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, others @ Value::Object(_)) => fits(others, member, &at)?,
            // Nothing is told about the members, or those of another type are among them.
            (Value::Null, _) if schema["properties"].is_null() || is_tree(schema) => {}
            (Value::Null, _) => return Err(format!("{at} is not told")),
            (told, _) => fits(told, member, &at)?,
        }
    }
    Ok(())
}

/// Whether it is a tree, whose schema leaves out what its root has.
fn is_tree(schema: &Value) -> bool {
    ["JobTree", "ChainTree"].iter().any(|tree| schemas()[*tree] == *schema)
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null(),
    }
}
