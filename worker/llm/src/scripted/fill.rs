//! Puts what groups of a rule's expressions matched into its answer.

use regex::Captures;
use serde_json::Value;

/// What the groups of the expressions of a rule matched, by the members of its condition.
#[derive(Debug, Default)]
pub(super) struct Groups<'t> {
    pub(super) regex: Option<Captures<'t>>,
    pub(super) system: Option<Captures<'t>>,
    pub(super) result: Option<Captures<'t>>,
}

impl<'t> Groups<'t> {
    /// A text with what was matched instead of `{regex.1}`, `{system.1}` and `{result.1}`. What is put in is not read again.
    pub(super) fn text(&self, text: &str) -> String {
        let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            filled.push_str(before);
            match self.group(from) {
                Some((matched, after)) => {
                    filled.push_str(matched);
                    rest = after;
                }
                None => {
                    filled.push('{');
                    rest = &from[1..];
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    /// The same for all texts of a value.
    pub(super) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), self.value(value))).collect(),
            other => other.clone(),
        }
    }

    /// What the group matched whose placeholder a text begins with, and what comes after the placeholder. A group that took no part is empty.
    fn group<'s>(&self, text: &'s str) -> Option<(&'t str, &'s str)> {
        let (placeholder, after) = text.strip_prefix('{')?.split_once('}')?;
        let (name, number) = placeholder.split_once('.')?;
        let captures = match name {
            "regex" => self.regex.as_ref(),
            "system" => self.system.as_ref(),
            "result" => self.result.as_ref(),
            _ => None,
        }?;
        let number = number.parse::<usize>().ok().filter(|number| *number < captures.len())?;
        Some((captures.get(number).map_or("", |group| group.as_str()), after))
    }
}
