//! What is chosen for a conversation with a model: its name, instructions and numbers. It travels with each message.

use serde_json::{Map, Value, json};

use crate::distance::nearest;

/// What can be set, with what it takes.
pub const SETTINGS: [(&str, &str); 7] = [
    ("instructions", "a text that the model is given before the conversation"),
    ("temperature", "a number from 0 to 2"),
    ("top_p", "a number from 0 to 1"),
    ("top_k", "a number from 1"),
    ("max_tokens", "most tokens of an answer"),
    ("reasoning_effort", "low, medium or high"),
    ("stop", "a text that ends an answer"),
];

/// Why something was not set, for the person who tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingError(String);

/// The settings of a conversation with a model. What is not set is left to the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatSettings(Map<String, Value>);

impl ChatSettings {
    /// The settings in a JSON object; other members are left out.
    pub fn of(value: &Value) -> Self {
        let members = value.as_object().into_iter().flatten();
        let known = members.filter(|(name, value)| is_known(name) && !value.is_null());
        Self(known.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// Sets one; `null` or an empty text leaves it to the model again.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SettingError> {
        if !is_known(name) {
            let meant = nearest(name, SETTINGS.iter().map(|(name, _)| *name));
            let hint = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
            let all: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
            return Err(SettingError(format!("there is no setting {name}{hint} (there are {})", all.join(", "))));
        }
        let text = text.trim();
        if text.is_empty() || text == "null" {
            self.0.shift_remove(name);
            return Ok(());
        }
        let value = read(name, text).ok_or_else(|| {
            let takes = SETTINGS.iter().find(|(known, _)| *known == name).map_or("another value", |(_, takes)| takes);
            SettingError(format!("{name} is {takes}, not \"{}\"", text.chars().take(40).collect::<String>()))
        })?;
        self.0.insert(name.to_owned(), value);
        Ok(())
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As the input of a job has them.
    pub fn value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// The lines of `.info`: `temperature  0.5`.
    pub fn lines(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.0.iter().map(|(name, value)| format!("{name}  {}", text(value).replace('\n', " "))).collect()
    }
}

fn is_known(name: &str) -> bool {
    SETTINGS.iter().any(|(known, _)| *known == name)
}

/// A value that fits the setting.
fn read(name: &str, text: &str) -> Option<Value> {
    let number = |most: f64| text.parse::<f64>().ok().filter(|number| (0.0..=most).contains(number));
    let count = || text.parse::<u32>().ok().filter(|count| (1..=1_000_000).contains(count));
    match name {
        "temperature" => number(2.0).map(|number| json!(number)),
        "top_p" => number(1.0).map(|number| json!(number)),
        "top_k" | "max_tokens" => count().map(|count| json!(count)),
        "reasoning_effort" => ["low", "medium", "high"].contains(&text).then(|| json!(text)),
        "stop" => Some(json!([text])),
        _ => Some(json!(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_set_and_unset() {
        let mut settings = ChatSettings::default();
        for (name, text) in [("temperature", "0.5"), ("max_tokens", "100"), ("instructions", "Be brief.\nOr not.")] {
            settings.set(name, text).expect(name);
        }
        settings.set("stop", "END").expect("a text");
        settings.set("stop", "null").expect("unset");
        let value = json!({"temperature": 0.5, "max_tokens": 100, "instructions": "Be brief.\nOr not."});
        assert_eq!(settings.value(), value);
        assert_eq!(settings.lines(), ["temperature  0.5", "max_tokens  100", "instructions  Be brief. Or not."]);
        assert_eq!(ChatSettings::of(&json!({"top_p": 1, "other": 2, "stop": null})).value(), json!({"top_p": 1}));
        assert!(ChatSettings::of(&json!(5)).is_empty());
    }

    #[test]
    fn wrong_settings_are_refused() {
        let refused =
            |name: &str, text: &str| ChatSettings::default().set(name, text).expect_err("refused").to_string();
        assert_eq!(refused("temperature", "hot"), "temperature is a number from 0 to 2, not \"hot\"");
        assert!(refused("temprature", "1").contains("did you mean temperature?"));
        for (name, text) in [("top_p", "2"), ("max_tokens", "0"), ("top_k", "-1"), ("reasoning_effort", "most")] {
            assert!(refused(name, text).starts_with(name), "{name}");
        }
    }
}
