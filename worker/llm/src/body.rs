//! Helpers for the members of JSON bodies.

use serde_json::{Map, Value};

/// Adds a member that has a value.
pub(crate) fn put(body: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body.insert(name.to_owned(), value.into());
    }
}

/// Adds the members of a request's `extra`. Objects are merged, other values replaced.
pub(crate) fn add_extra(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (name, value) in extra {
        match (body.get_mut(name), value) {
            (Some(Value::Object(members)), Value::Object(more)) => add_extra(members, more),
            _ => drop(body.insert(name.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_added() {
        let object = |value: Value| value.as_object().expect("an object").clone();
        let mut body = object(json!({"a": {"x": 1, "y": 2}, "b": [1]}));
        add_extra(&mut body, &object(json!({"a": {"y": null, "z": {}}, "b": [2], "c": 3})));
        assert_eq!(Value::Object(body), json!({"a": {"x": 1, "y": null, "z": {}}, "b": [2], "c": 3}));
    }
}
