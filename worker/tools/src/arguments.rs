//! The arguments of a call, as a program gets them.

use serde_json::{Map, Value};

/// Arguments that are an object, or a text that is one in JSON. None otherwise.
pub(crate) fn object(arguments: &Value) -> Option<Map<String, Value>> {
    match arguments {
        Value::Object(members) => Some(members.clone()),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(members)) => Some(members),
            _ => None,
        },
        _ => None,
    }
}

/// Options of a Bash tool. The form with `=` keeps values that begin with a dash.
pub(crate) fn options(arguments: &Map<String, Value>) -> Vec<String> {
    arguments.iter().flat_map(|(name, value)| option(&name.replace('_', "-"), value)).collect()
}

fn option(name: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Null | Value::Bool(false) => Vec::new(),
        Value::Bool(true) => vec![format!("--{name}")],
        Value::Array(items) => items.iter().map(|item| format!("--{name}={}", text(item))).collect(),
        other => vec![format!("--{name}={}", text(other))],
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_of_all_types() {
        let arguments = object(&json!({
            "text": "--a b", "long_name": 1, "yes": true, "no": false, "none": null, "many": ["a", 2], "map": {"k": "v"},
        }));
        let expected = ["--text=--a b", "--long-name=1", "--yes", "--many=a", "--many=2", r#"--map={"k":"v"}"#];
        assert_eq!(options(&arguments.expect("an object")), expected);
    }

    #[test]
    fn texts_can_be_objects() {
        assert_eq!(object(&json!(r#"{"a": 1}"#)).map(|members| members.len()), Some(1));
        for refused in [json!("a=x"), json!(""), json!([1]), json!(null), json!("[1]")] {
            assert_eq!(object(&refused), None, "{refused}");
        }
    }
}
