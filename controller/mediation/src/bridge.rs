//! The conversion by a model (compatibility §11.6): what it is asked, and which answers count.

use serde_json::{Map, Value, json};

/// How often a model is asked.
pub const ATTEMPTS_MAX: u32 = 3;

/// Deeper properties have no example.
const DEPTH_MAX: usize = 16;

/// The longest part of an answer in an error, in characters.
const QUOTE_MAX: usize = 200;

/// Why an answer does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BridgeError {
    #[error("Could not extract JSON from response: {0}")]
    NoJson(String),
    #[error("Invalid JSON in response: {0}")]
    Broken(String),
    #[error("Response must be a JSON object")]
    NotAnObject,
    #[error("Missing required field: '{0}'")]
    Missing(String),
}

/// A conversion that a model is asked for. The caller asks at most [`ATTEMPTS_MAX`] times.
#[derive(Debug, Clone)]
pub struct Bridge {
    prompt: String,
    required: Vec<String>,
}

impl Bridge {
    /// The conversion of `data`.
    pub fn new(source: &Value, target: &Value, data: &Map<String, Value>) -> Self {
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
        let mut prompt = format!(
            "Convert data from one JSON schema to another.\n\nSource schema:\n{}\n\nTarget schema:\n{}\n\nData:\n{}\n",
            pretty(source),
            pretty(target),
            pretty(&Value::Object(data.clone()))
        );
        let properties = target.get("properties").and_then(Value::as_object).filter(|members| !members.is_empty());
        if let Some(properties) = properties {
            prompt.push_str(&format!("\nThe answer has this form:\n{}\n", pretty(&examples(properties, 0))));
        }
        prompt
            .push_str("\nAnswer with one JSON object that matches the target schema. No explanation, no code fences.");
        let required = target.get("required").and_then(Value::as_array).into_iter().flatten();
        Self { prompt, required: required.filter_map(Value::as_str).map(str::to_owned).collect() }
    }

    /// The prompt of an attempt, from 1.
    pub fn prompt(&self, attempt: u32) -> String {
        match attempt {
            0 | 1 => self.prompt.clone(),
            _ => format!("Your last answer was not valid JSON for the target schema.\n\n{}", self.prompt),
        }
    }

    /// The pause before an attempt, in seconds.
    pub fn pause_s(attempt: u32) -> f64 {
        match attempt {
            0 | 1 => 0.0,
            later => f64::from(1 << (later - 2).min(8)),
        }
    }

    /// The data of an answer. Its types are not checked: the next step validates its input.
    pub fn accept(&self, answer: &str) -> Result<Map<String, Value>, BridgeError> {
        let text = extract_json(answer)?;
        let Value::Object(data) = serde_json::from_str(text).map_err(|error| BridgeError::Broken(error.to_string()))?
        else {
            return Err(BridgeError::NotAnObject);
        };
        match self.required.iter().find(|name| !data.contains_key(*name)) {
            Some(missing) => Err(BridgeError::Missing(missing.clone())),
            None => Ok(data),
        }
    }

    /// The error after the last attempt.
    pub fn failed(last: &BridgeError) -> String {
        format!("LLM bridge failed after {ATTEMPTS_MAX} attempts: {last}")
    }
}

/// The JSON of an answer: the first fenced block, or the whole answer if it begins with a brace.
pub fn extract_json(answer: &str) -> Result<&str, BridgeError> {
    let text = answer.trim();
    if let Some(block) = fenced(text) {
        return Ok(block);
    }
    match text.starts_with('{') {
        true => Ok(text),
        false => Err(BridgeError::NoJson(text.chars().take(QUOTE_MAX).collect())),
    }
}

/// The content of the first block between fences, with or without the word `json`.
fn fenced(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("```")?;
    let rest = rest.strip_prefix("json").unwrap_or(rest);
    let (block, _) = rest.split_once("```")?;
    Some(block.trim())
}

/// An example of an object with these properties.
fn examples(properties: &Map<String, Value>, depth: usize) -> Value {
    properties.iter().map(|(name, property)| (name.clone(), example(name, property, depth))).collect()
}

fn example(name: &str, property: &Value, depth: usize) -> Value {
    let members = |schema: &Value| schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    match property.get("type").and_then(Value::as_str) {
        _ if depth > DEPTH_MAX => Value::Null,
        None if property.get("type").is_none() => json!(format!("<{name} value>")),
        Some("string") => json!(format!("<{name} value>")),
        Some("integer") => json!(0),
        Some("number") => json!(0.0),
        Some("boolean") => json!(true),
        Some("array") => match property.get("items").filter(|items| items["type"] == "object").map(members) {
            Some(members) if !members.is_empty() => json!([examples(&members, depth + 1)]),
            _ => json!(["<item>"]),
        },
        Some("object") => examples(&members(property), depth + 1),
        _ => Value::Null,
    }
}

impl Bridge {
    /// The example of an answer that the prompt shows for a target with these properties.
    pub fn example(properties: &Map<String, Value>) -> Value {
        examples(properties, 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bridge() -> Bridge {
        let target = json!({"properties": {"zzz": {"type": "string"}, "n": {"type": "integer"}}, "required": ["zzz"]});
        Bridge::new(&json!({"type": "object"}), &target, &Map::new())
    }

    #[test]
    fn answers_count_if_they_have_the_required_fields() {
        let accept = |answer: &str| match bridge().accept(answer) {
            Ok(data) => Value::Object(data).to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(accept(" {\"zzz\": 5, \"more\": [1]} "), r#"{"zzz":5,"more":[1]}"#);
        assert_eq!(accept("Here:\n```json\n{\"zzz\": 1}\n```\n```\n{}\n```"), r#"{"zzz":1}"#);
        assert_eq!(accept("```\n{\"zzz\": 1}\n```"), r#"{"zzz":1}"#);
        assert_eq!(accept("I cannot do that"), "Could not extract JSON from response: I cannot do that");
        assert_eq!(accept("```json\n[1]\n```"), "Response must be a JSON object");
        assert_eq!(accept("{\"n\": 1}"), "Missing required field: 'zzz'");
        assert!(accept("{\"zzz\": ").starts_with("Invalid JSON in response: EOF"));
        assert!(accept(&"a".repeat(9_000)).len() < 300);
        assert!(accept(&"{\"a\":".repeat(100_000)).starts_with("Invalid JSON in response: recursion limit"));
    }

    #[test]
    fn a_retry_repeats_the_prompt_after_a_pause() {
        let bridge = bridge();
        assert!(bridge.prompt(2).ends_with(&bridge.prompt(1)) && bridge.prompt(2) != bridge.prompt(1));
        let pauses: Vec<String> = (1..=3).map(|attempt| format!("{:.1}", Bridge::pause_s(attempt))).collect();
        assert_eq!(pauses, ["0.0", "1.0", "2.0"]);
    }

    #[test]
    fn examples_follow_the_schema() {
        let properties = json!({
            "s": {}, "list": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}},
            "words": {"type": "array"}, "o": {"type": "object"}, "none": {"type": "null"}, "two": {"type": ["string"]},
        });
        let example = Bridge::example(properties.as_object().expect("an object"));
        let expected =
            json!({"s": "<s value>", "list": [{"id": 0}], "words": ["<item>"], "o": {}, "none": null, "two": null});
        assert_eq!(example, expected);
    }

    proptest! {
        #[test]
        fn no_answer_panics(answer in "[`{}\" a-z\\[\\]]{0,40}") {
            let _ = bridge().accept(&answer);
        }
    }
}
