//! The output of a turn, made of the model's last answer.

use serde_json::{Value, json};

use crate::checks::{Checks, Problem};
use crate::judge::thoughtless;
use crate::settings::{Format, Settings};

/// An answer as an output.
pub(crate) enum Output {
    /// It has the required form.
    Good(Value),
    /// It does not match the schema.
    Bad {
        /// What the output is if the model cannot be asked again.
        value: Value,
        problems: Vec<Problem>,
    },
}

pub(crate) fn of(text: &str, settings: &Settings, checks: &dyn Checks) -> Output {
    let wrapped = || json!({"result": text.trim()});
    match settings.format {
        Format::Text => Output::Good(wrapped()),
        Format::Json => Output::Good(parsed(text, settings.judged).unwrap_or_else(wrapped)),
        Format::Schema { .. } => match value(text, settings.judged) {
            Err(error) => {
                let message = format!("the answer is not JSON ({error})");
                Output::Bad { value: wrapped(), problems: vec![Problem { pointer: "/".to_owned(), message }] }
            }
            Ok(value) => {
                let problems = checks.output(&value);
                if problems.is_empty() { Output::Good(value) } else { Output::Bad { value, problems } }
            }
        },
    }
}

/// An answer as JSON without a schema. A fence stays, as with Atlas for Python, unless it is behind thoughts.
fn parsed(text: &str, judged: bool) -> Option<Value> {
    let value = serde_json::from_str(text).ok();
    if value.is_some() || !judged {
        return value;
    }
    let rest = thoughtless(text);
    (rest.len() < text.trim_start().len()).then(|| serde_json::from_str(bare(rest)).ok())?
}

/// An answer as JSON that must match a schema.
fn value(text: &str, judged: bool) -> Result<Value, serde_json::Error> {
    let whole = serde_json::from_str(unfenced(text));
    if whole.is_ok() || !judged {
        return whole;
    }
    let rest = thoughtless(text);
    let found = serde_json::from_str(bare(rest)).or_else(|error| match block(rest) {
        Some(inner) => serde_json::from_str(inner),
        None => Err(error),
    });
    // The error tells the model what is wrong with its text as it wrote it.
    found.or(whole)
}

/// Whether an answer was to be JSON: only such a one is of no use when it was cut.
pub(crate) fn is_json_begun(text: &str) -> bool {
    bare(thoughtless(text)).starts_with(['{', '['])
}

/// A text without a code fence at its beginning and one at its end.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").map_or(text, |inner| {
        let line = inner.find(['\n', '{', '[']).filter(|&at| inner[..at].trim().chars().all(char::is_alphanumeric));
        line.map_or(inner, |at| &inner[at..])
    });
    inner.strip_suffix("```").unwrap_or(inner).trim()
}

/// The only fenced block in a text.
fn block(text: &str) -> Option<&str> {
    let mut parts = text.split("```");
    let (_, inner, _, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else { return None };
    let at = inner.find(['\n', '{', '['])?;
    inner[..at].trim().chars().all(char::is_alphanumeric).then(|| inner[at..].trim())
}

/// A text without the code fence around the whole of it.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((language, inner)) if language.chars().all(char::is_alphanumeric) => inner,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_around_all_is_removed() {
        assert_eq!(unfenced(" ```json\n{}\n``` "), "{}\n");
        assert_eq!(unfenced("```\n{}```"), "{}");
        for kept in ["see ```json\n{}```", "```{}```", "```a b\n{}```", "``````", "{}"] {
            assert_eq!(unfenced(kept), kept);
        }
    }
    #[test]
    fn json_is_found_behind_thoughts_and_in_fences() {
        for text in [
            "{\"a\": 1}",
            "<think>so {\"a\": 2}</think>{\"a\": 1}",
            "<thinking>\nso\n</thinking>\n\n```json\n{\"a\": 1}\n```\n",
            "so\n</think>\n{\"a\": 1}",
            "```json\n{\"a\": 1}",
            "{\"a\": 1}\n```",
            "```json {\"a\": 1} ```",
            "Here it is:\n```json\n{\"a\": 1}\n```\nAnything else?",
        ] {
            assert_eq!(value(text, true).expect(text), json!({"a": 1}));
        }
        for text in ["<think>{\"a\": 1}", "{\"a\": 1} <think>so</think>", "{\"a\": 1} or {\"a\": 2}", "``` ``` ```"] {
            assert!(value(text, true).is_err(), "{text}");
        }
        assert!(value("<think>so</think>{\"a\": 1}", false).is_err());
    }

    #[test]
    fn without_a_schema_only_thoughts_are_removed() {
        assert_eq!(parsed("<think>so</think>```json\n[1]\n```", true), Some(json!([1])));
        assert_eq!(parsed("<think>so</think>[1]", false), None);
        assert_eq!(parsed("```json\n[1]\n```", true), None);
        assert!(is_json_begun("<think>so</think>```json\n{\"a\": ") && !is_json_begun("see {"));
    }
}
