//! The output of a turn, made of the model's last answer.

use serde_json::{Value, json};

use crate::checks::{Checks, Problem};
use crate::settings::Format;

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

pub(crate) fn of(text: &str, format: &Format, checks: &dyn Checks) -> Output {
    let wrapped = || json!({"result": text.trim()});
    match format {
        Format::Text => Output::Good(wrapped()),
        Format::Json => Output::Good(serde_json::from_str(text).unwrap_or_else(|_| wrapped())),
        Format::Schema { .. } => match serde_json::from_str::<Value>(unfenced(text)) {
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
}
