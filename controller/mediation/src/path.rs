//! Paths into the data of a chain (compatibility §11.5): `$.field`, `$.trigger.field`, `$.steps[0].output.field`,
//! `$.steps.NAME.output.field`.

use serde_json::{Value, json};

/// Most segments of a path.
const SEGMENTS_MAX: usize = 64;

/// What paths can refer to besides the current data.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The input of the chain.
    pub trigger: Value,
    /// The finished steps: their names and outputs. Of several steps with one name, the last counts.
    pub steps: Vec<(String, Value)>,
}

impl Context {
    /// The value that a path refers to. None if the text is no path, or a part is missing.
    pub(crate) fn resolve(&self, path: &str, data: &Value) -> Option<Value> {
        let segments = segments(path.strip_prefix("$.")?)?;
        let names: Vec<&str> = segments.iter().map(String::as_str).collect();
        match names.as_slice() {
            ["trigger", rest @ ..] if !rest.is_empty() && path.starts_with("$.trigger.") => follow(&self.trigger, rest),
            ["steps", step, rest @ ..] => {
                let (name, output) = self.step(step, path.starts_with("$.steps["))?;
                follow(&json!({"output": output, "name": name}), rest)
            }
            all => follow(data, all),
        }
    }

    fn step(&self, step: &str, by_number: bool) -> Option<&(String, Value)> {
        match by_number {
            true => self.steps.get(step.parse::<usize>().ok()?),
            false => self.steps.iter().rev().find(|(name, _)| name == step),
        }
    }
}

fn follow(value: &Value, segments: &[&str]) -> Option<Value> {
    let mut value = value;
    for segment in segments {
        value = match value {
            Value::Object(members) => members.get(*segment)?,
            Value::Array(items) => items.get(segment.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value.clone())
}

/// The segments of a path. `name[3]` is two of them.
pub(crate) fn segments(path: &str) -> Option<Vec<String>> {
    let mut segments = Vec::new();
    for part in path.split('.') {
        match indexed(part) {
            Some((name, index)) => segments.extend([name.to_owned(), index.to_owned()]),
            None => segments.push(part.to_owned()),
        }
        if segments.len() > SEGMENTS_MAX {
            return None;
        }
    }
    Some(segments)
}

fn indexed(part: &str) -> Option<(&str, &str)> {
    let (name, index) = part.strip_suffix(']')?.split_once('[')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_index = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    (is_name && is_index).then_some((name, index))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn resolve(path: &str) -> Option<String> {
        let context = Context {
            trigger: json!({"text": "T", "deep": {"a": [1, {"b": "x"}]}}),
            steps: vec![
                ("write".into(), json!({"content": "C0", "items": [{"id": 1}]})),
                ("step_1".into(), json!({"score": 7})),
                ("write".into(), json!({"content": "C2"})),
            ],
        };
        let data = json!({"a": {"b": [10, [20]]}, "trigger": 1, "steps": {"x": 2}, "0": "zero", "": "empty"});
        context.resolve(path, &data).map(|value| value.to_string())
    }

    #[test]
    fn paths_refer_to_data_trigger_and_steps() {
        for (path, value) in [
            ("$.a.b[0]", "10"),
            ("$.a.b.1.0", "20"),
            ("$.0", "\"zero\""),
            ("$.", "\"empty\""),
            ("$.trigger", "1"),
            ("$.trigger.text", "\"T\""),
            ("$.trigger.deep.a[1].b", "\"x\""),
            ("$.steps", "{\"x\":2}"),
            ("$.steps[0].output.items[0].id", "1"),
            ("$.steps[1].name", "\"step_1\""),
            ("$.steps.write.output.content", "\"C2\""),
            ("$.steps.step_1", "{\"output\":{\"score\":7},\"name\":\"step_1\"}"),
        ] {
            assert_eq!(resolve(path).as_deref(), Some(value), "{path}");
        }
    }

    #[test]
    fn what_is_missing_is_not_resolved() {
        let many = format!("$.{}", "a.".repeat(100));
        for path in [
            "a",
            "$",
            "$.a.c",
            "$.a.b.x",
            "$.a.b[-1]",
            "$.a.b.-1",
            "$.a.b[9]",
            "$.trigger.x",
            "$.steps[9]",
            "$.steps.x",
            "$.0.0",
            &many,
        ] {
            assert_eq!(resolve(path), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_panics(path in "\\$?[.a-z0-9\\[\\]-]{0,30}") {
            resolve(&path);
        }
    }
}
