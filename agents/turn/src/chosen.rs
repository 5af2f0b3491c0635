//! Settings that an input chooses for its own job: the contract names the member that has them.

use serde::Deserialize;
use serde_json::Value;

use crate::Settings;

/// Most bytes of instructions.
const INSTRUCTIONS_BYTES_MAX: usize = 256 << 10;
/// Most texts that end an answer.
const STOPS_MAX: usize = 16;
/// Most tokens of an answer that can be asked for.
const TOKENS_MAX: u32 = 1_000_000;

/// What an input chooses. What it leaves out stays as the contract has it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChosenSettings {
    /// Follows the system text of the contract.
    pub instructions: Option<String>,
    /// From 0 to 2.
    pub temperature: Option<f64>,
    /// From 0 to 1.
    pub top_p: Option<f64>,
    pub top_k: Option<u32>,
    /// Most tokens of one answer, from 1 to 1,000,000.
    pub max_tokens: Option<u32>,
    /// Texts that end an answer, at most 16.
    pub stop: Option<Vec<String>>,
    /// `low`, `medium` or `high`.
    pub reasoning_effort: Option<String>,
}

impl ChosenSettings {
    /// Takes the settings out of a member of an input; none are chosen if there is no such member. The error says what is wrong with it.
    pub fn take(input: &mut Value, member: &str) -> Result<Self, String> {
        let found = input.as_object_mut().and_then(|members| members.shift_remove(member));
        let Some(found) = found.filter(|found| !found.is_null()) else { return Ok(Self::default()) };
        let chosen: Self = serde_json::from_value(found).map_err(|error| format!("'{member}': {error}"))?;
        chosen.check().map_err(|why| format!("'{member}': {why}"))?;
        Ok(chosen)
    }

    fn check(&self) -> Result<(), String> {
        let within = |number: Option<f64>, most: f64| number.is_none_or(|number| (0.0..=most).contains(&number));
        if !within(self.temperature, 2.0) {
            return Err("temperature is a number from 0 to 2".to_owned());
        }
        if !within(self.top_p, 1.0) {
            return Err("top_p is a number from 0 to 1".to_owned());
        }
        if self.top_k == Some(0) {
            return Err("top_k is at least 1".to_owned());
        }
        if !self.max_tokens.is_none_or(|count| (1..=TOKENS_MAX).contains(&count)) {
            return Err(format!("max_tokens is a number from 1 to {TOKENS_MAX}"));
        }
        if self.stop.as_ref().is_some_and(|stop| stop.len() > STOPS_MAX || stop.iter().any(String::is_empty)) {
            return Err(format!("stop is a list of at most {STOPS_MAX} texts, none of them empty"));
        }
        let is_effort = |effort: &String| ["low", "medium", "high"].contains(&effort.as_str());
        if !self.reasoning_effort.as_ref().is_none_or(is_effort) {
            return Err("reasoning_effort is low, medium or high".to_owned());
        }
        match &self.instructions {
            Some(text) if text.len() > INSTRUCTIONS_BYTES_MAX => {
                Err(format!("instructions are longer than {INSTRUCTIONS_BYTES_MAX} bytes"))
            }
            _ => Ok(()),
        }
    }

    /// Puts what is chosen in place of what the contract asks for.
    pub fn apply(self, settings: &mut Settings) {
        let Self { instructions, temperature, top_p, top_k, max_tokens, stop, reasoning_effort } = self;
        if let Some(text) = instructions.filter(|text| !text.trim().is_empty()) {
            settings.system =
                if settings.system.is_empty() { text } else { format!("{}\n\n{text}", settings.system.trim_end()) };
        }
        let sampling = &mut settings.sampling;
        sampling.temperature = temperature.or(sampling.temperature);
        sampling.top_p = top_p.or(sampling.top_p);
        sampling.top_k = top_k.or(sampling.top_k);
        sampling.max_tokens = max_tokens.or(sampling.max_tokens);
        sampling.reasoning_effort = reasoning_effort.or(sampling.reasoning_effort.take());
        if let Some(stop) = stop {
            sampling.stop = stop;
        }
    }
}

/// The member of an input that a contract takes the name of its model from: `{input.MEMBER}`.
pub fn model_member(name: &str) -> Option<&str> {
    name.strip_prefix("{input.")?.strip_suffix('}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_chosen_counts() {
        let mut input = json!({"settings": {"instructions": "Be brief.", "temperature": 0.5, "stop": ["END"]}, "z": 1});
        let chosen = ChosenSettings::take(&mut input, "settings").expect("settings");
        assert_eq!(input, json!({"z": 1}));
        let mut settings = Settings { system: "You are Ada.\n".to_owned(), ..Settings::default() };
        settings.sampling.top_p = Some(0.25);
        chosen.apply(&mut settings);
        assert_eq!(settings.system, "You are Ada.\n\nBe brief.");
        let sampling = &settings.sampling;
        assert_eq!((sampling.temperature, sampling.top_p, sampling.max_tokens), (Some(0.5), Some(0.25), Some(4_096)));
        assert_eq!(sampling.stop, ["END"]);
        assert_eq!(ChosenSettings::take(&mut input, "settings"), Ok(ChosenSettings::default()));
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let refused = |settings: Value| ChosenSettings::take(&mut json!({ "s": settings }), "s").expect_err("refused");
        assert_eq!(refused(json!({"temperature": 3})), "'s': temperature is a number from 0 to 2");
        assert_eq!(refused(json!({"reasoning_effort": "most"})), "'s': reasoning_effort is low, medium or high");
        for wrong in [
            json!(5),
            json!({"other": 1}),
            json!({"top_p": 1.5}),
            json!({"top_k": 0}),
            json!({"max_tokens": 0}),
            json!({"stop": [""]}),
            json!({"stop": vec!["x"; 17]}),
            json!({"instructions": "x".repeat(INSTRUCTIONS_BYTES_MAX + 1)}),
        ] {
            assert!(refused(wrong.clone()).starts_with("'s': "), "{wrong}");
        }
        assert_eq!(ChosenSettings::take(&mut json!({"s": null}), "s"), Ok(ChosenSettings::default()));
    }

    #[test]
    fn a_contract_names_the_member_of_its_model() {
        assert_eq!(model_member("{input.model}"), Some("model"));
        assert_eq!(model_member("fast"), None);
    }
}
