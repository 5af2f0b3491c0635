//! Changes of requests that are configured for a model: another address, a JSON merge patch of the body (RFC 7396), headers.

use std::collections::BTreeMap;

use atlas_model::{Patch, PatchBody};
use serde_json::{Map, Value};

use crate::{EncodeError, Parts, Protocol, json};

/// Changes a request.
pub fn apply(parts: &mut Parts, patch: &Patch, protocol: &dyn Protocol) -> Result<(), EncodeError> {
    if let Some(url) = patch.url.as_ref().filter(|_| !protocol.keeps_url()) {
        parts.url.clone_from(url);
    }
    if let Some(body) = &patch.body {
        apply_body(parts, body, protocol)?;
    }
    apply_headers(parts, &patch.headers)
}

fn apply_body(parts: &mut Parts, patch: &PatchBody, protocol: &dyn Protocol) -> Result<(), EncodeError> {
    let invalid = |problem: &str| EncodeError::Invalid { what: "a patch", problem: problem.to_owned() };
    let patch = patch.members().ok_or_else(|| invalid("its body is not an object"))?;
    let body = json::parse(&parts.body).map_err(|_| invalid("the request has no JSON body"))?;
    let Value::Object(before) = body else { return Err(invalid("the request has no JSON body")) };
    let mut after = before.clone();
    merge(&mut after, &patch);
    for (name, value) in
        patch.iter().filter(|(_, value)| value.is_null()).filter_map(|(name, _)| before.get_key_value(name))
    {
        if let Some(successor) = protocol.successor(name).filter(|successor| !patch.contains_key(*successor)) {
            after.insert(successor.to_owned(), value.clone());
        }
    }
    parts.body = Value::Object(after).to_string().into_bytes();
    Ok(())
}

fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match value {
            Value::Null => drop(target.shift_remove(name)),
            Value::Object(inner) => {
                let slot = target.entry(name).or_insert(Value::Null);
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Value::Object(members) = slot {
                    merge(members, inner);
                }
            }
            value => drop(target.insert(name.clone(), value.clone())),
        }
    }
}

/// Values may hold keys, so all of them are treated as secrets.
fn apply_headers(parts: &mut Parts, headers: &BTreeMap<String, Option<String>>) -> Result<(), EncodeError> {
    for (name, value) in headers {
        match value {
            Some(value) => parts.secret_header(name, value)?,
            None => drop(parts.headers.remove(name.as_str())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::openai::Chat;

    fn check(patch: Value, expected: &Value) {
        let body = json!({"model": "m", "max_tokens": 9, "options": {"a": 1, "b": [1]}});
        let mut parts = Parts::post("https://a.test/v1".to_owned(), &body);
        let patch: Patch = serde_json::from_value(patch).expect("a patch");
        apply(&mut parts, &patch, &Chat::default()).expect("applies");
        let headers: Map<String, Value> =
            parts.headers.iter().map(|(name, value)| (name.to_string(), json!(format!("{value:?}")))).collect();
        let body: Value = serde_json::from_slice(&parts.body).expect("JSON");
        assert_eq!(&json!([parts.url, body, headers]), expected);
    }

    #[test]
    fn requests_are_changed() {
        let plain = json!({"content-type": "\"application/json\""});
        check(
            json!({"url": "https://b.test", "body": {"options": {"a": null, "b": [2], "c": {"d": null}}, "top": 1}}),
            &json!(["https://b.test", {"model": "m", "max_tokens": 9, "options": {"b": [2], "c": {}}, "top": 1}, plain]),
        );
        check(
            json!({"headers": {"X-Key": "secret", "content-type": null}}),
            &json!(["https://a.test/v1", {"model": "m", "max_tokens": 9, "options": {"a": 1, "b": [1]}}, {"x-key": "Sensitive"}]),
        );
        check(
            json!({"body": "{\"max_tokens\": null, \"options\": 1.5}"}),
            &json!(["https://a.test/v1", {"model": "m", "options": 1.5, "max_completion_tokens": 9}, plain]),
        );
        check(
            json!({"body": {"max_tokens": null, "max_completion_tokens": 3, "options": null}}),
            &json!(["https://a.test/v1", {"model": "m", "max_completion_tokens": 3}, plain]),
        );
    }

    #[test]
    fn patches_that_cannot_be_applied() {
        let mut parts = Parts::get("https://a.test".to_owned());
        let patch = |value: Value| serde_json::from_value::<Patch>(value).expect("a patch");
        let mut refused = |value| apply(&mut parts, &patch(value), &Chat::default()).expect_err("refused").to_string();
        assert_eq!(refused(json!({"body": {"a": 1}})), "a patch is not valid: the request has no JSON body");
        assert_eq!(refused(json!({"body": "[1]"})), "a patch is not valid: its body is not an object");
        assert_eq!(
            refused(json!({"headers": {"a b": "c"}})),
            "the header \"a b\" has characters that HTTP does not allow"
        );
    }
}
