//! `--filter`: a condition on an object, in the language of expressions.
//!
//! Names are members of the object; [`atlas_expressions::Filter`] says what it means for an object that lacks one.

use std::str::FromStr;
use std::sync::Arc;

use atlas_expressions::{Filter as Condition, Problem};
use serde_json::Value;

use crate::failure::Failure;

/// A condition.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    text: String,
    condition: Arc<Condition>,
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let condition = Condition::parse(text).map_err(|problem| compared(text).unwrap_or_else(|| placed(&problem)))?;
        Ok(Self { text: text.to_owned(), condition: Arc::new(condition) })
    }
}

/// The error about `status=failed`, which is how other programs compare.
fn compared(text: &str) -> Option<String> {
    let (name, value) = text.split_once('=')?;
    let (name, value) = (name.trim(), value.trim().trim_matches(['"', '\'']));
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let is_plain = !name.is_empty() && name.chars().all(is_name) && !value.is_empty() && !value.contains(['=', '"']);
    let is_text = serde_json::from_str::<Value>(value).is_err();
    let quote = if is_text { "\"" } else { "" };
    is_plain.then(|| format!("one = does not compare; write {name} == {quote}{value}{quote}"))
}

/// A problem with its place; most filters have one line.
fn placed(problem: &Problem) -> String {
    match problem {
        Problem { line: 1, column, text, .. } => format!("column {column}: {text}"),
        problem => problem.to_string(),
    }
}

impl Filter {
    /// The members of an object that the filter uses.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.condition.names()
    }

    /// Whether the filter is true for an object.
    pub(crate) fn admits(&self, object: &Value) -> Result<bool, Failure> {
        let wrong = |problem: Problem| {
            Failure::usage(format!("the filter {} cannot be applied: {}", self.text, placed(&problem)))
        };
        self.condition.admits(object).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(text: &str) -> Result<bool, String> {
        let object = json!({
            "status": "failed", "attempt": 2, "labels": {"team": "a", "x-y": "1", "if": "c"}, "namespace": "b", "list": [1, 2.0], "warm": true, "none": null,
            "error": "Process exited with code 3",
        });
        let filter: Filter = text.parse()?;
        filter.admits(&object).map_err(|failure| failure.message)
    }

    #[test]
    fn one_equals_sign_is_what_other_programs_compare_with() {
        let told = |text: &str| text.parse::<Filter>().expect_err("refused");
        assert_eq!(told("status=failed"), "one = does not compare; write status == \"failed\"");
        assert_eq!(told("labels.a = 'b'"), "one = does not compare; write labels.a == \"b\"");
        assert_eq!(told("attempt=2"), "one = does not compare; write attempt == 2");
        assert_eq!(told("a = b == c"), "column 3: unexpected =");
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (text, problem) in [
            ("attempt", "the filter attempt cannot be applied: column 1: is a number, not true or false"),
            ("status < 1", "column 8: a text and a number have no order"),
            ("status && true", "column 1: is a text, not true or false"),
            ("frob(1)", "column 5: no such function: frob with 1 arguments"),
            ("1 in 2", "column 3: in of a number and a number is not defined"),
            ("status ==\n  attempt +", "line 2, column 12: it ends too early"),
        ] {
            assert!(holds(text).is_err_and(|error| error.contains(problem)), "{text}: {:?}", holds(text));
        }
        for text in ["", "a ==", "(a", "a b", "'open", "a = 1", "1 2", "[1", "a.", "a ? b", "#", &"(".repeat(5000)] {
            assert!(text.parse::<Filter>().is_err(), "{text}");
        }
    }
}
