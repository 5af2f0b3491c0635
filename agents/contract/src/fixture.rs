//! Fixtures: the tests of an agent, `tests/*.yaml`.
//!
//! Each file is one job: an input, and either the expected output or a text that the error must contain.

use serde_json::{Map, Value};

use crate::python;
use crate::same::same;
use crate::violation::nearest;
use crate::yaml::{self, YamlError};

/// One test of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixture {
    /// The name of the test; empty if the file has none.
    pub name: String,
    /// The job's input.
    pub input: Value,
    /// The expected result.
    pub expected: Expectation,
}

/// The expected result of a fixture's job.
#[derive(Debug, Clone, PartialEq)]
pub enum Expectation {
    /// The job completes with this output; numbers are compared by value.
    Output(Value),
    /// The job fails or is refused, with an error that contains this text.
    Error(String),
}

/// Why a text is not a fixture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FixtureError {
    /// The text is not YAML.
    #[error("the fixture cannot be read: {0}")]
    Yaml(YamlError),
    /// The document does not have the structure of a fixture.
    #[error("{0}")]
    Form(String),
}

/// The difference between the result of a job and its fixture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, got {actual}")]
pub struct Mismatch {
    /// The result in the fixture.
    pub expected: String,
    /// The result of the job.
    pub actual: String,
}

const KEYS: [&str; 4] = ["name", "input", "output", "error"];

impl Fixture {
    /// Reads a fixture.
    pub fn parse(text: &[u8]) -> Result<Self, FixtureError> {
        let form = |problem: &str| FixtureError::Form(problem.to_owned());
        let value = yaml::load_strictly(text, yaml::Budget::default()).map_err(FixtureError::Yaml)?;
        let Value::Object(mut members) = value else {
            return Err(form("a fixture is a mapping with input and either output or error"));
        };
        if let Some(unknown) = members.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let hint = nearest(unknown, KEYS).map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
            return Err(FixtureError::Form(format!("\"{unknown}\" is not a key of a fixture{hint}")));
        }
        let name = match members.shift_remove("name") {
            None => String::new(),
            Some(Value::String(name)) => name,
            Some(_) => return Err(form("the name of a fixture is text")),
        };
        let input = members.shift_remove("input").unwrap_or_else(|| Value::Object(Map::new()));
        let expected = match (members.shift_remove("output"), members.shift_remove("error")) {
            (Some(output), None) => Expectation::Output(output),
            (None, Some(Value::String(error))) if !error.is_empty() => Expectation::Error(error),
            (None, Some(_)) => return Err(form("the error of a fixture is text that is not empty")),
            _ => return Err(form("a fixture has either output or error")),
        };
        Ok(Self { name, input, expected })
    }

    /// Compares the job's output or error with the fixture.
    pub fn check(&self, ended: Result<&Value, &str>) -> Result<(), Mismatch> {
        let fits = match (&self.expected, ended) {
            (Expectation::Output(expected), Ok(output)) => same(expected, output),
            (Expectation::Error(expected), Err(error)) => error.contains(expected),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let expected = match &self.expected {
            Expectation::Output(output) => output.to_string(),
            Expectation::Error(error) => format!("an error with {}", python::string(error)),
        };
        let actual = match ended {
            Ok(output) => output.to_string(),
            Err(error) => format!("the error {}", python::string(error)),
        };
        Err(Mismatch { expected, actual })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_output_compares_by_value_and_an_error_by_its_text() {
        let fixture = Fixture::parse(b"input: {a: 1}\noutput: {n: 2, s: x}").expect("a fixture");
        assert_eq!(fixture.check(Ok(&json!({"s": "x", "n": 2.0}))), Ok(()));
        assert_eq!(
            fixture.check(Ok(&json!({"n": 3}))).map_err(|mismatch| mismatch.to_string()),
            Err(r#"expected {"n":2,"s":"x"}, got {"n":3}"#.to_owned())
        );
        assert!(fixture.check(Err("boom")).is_err());
        let fixture = Fixture::parse(b"error: boom").expect("a fixture");
        assert_eq!(fixture.check(Err("it went boom")), Ok(()));
        assert!(fixture.check(Ok(&json!({}))).is_err());
    }

    #[test]
    fn a_wrong_form_is_named() {
        for (text, problem) in [
            ("[]", "a fixture is a mapping with input and either output or error"),
            ("inptu: {}\noutput: {}", "\"inptu\" is not a key of a fixture; did you mean \"input\"?"),
            ("input: {}", "a fixture has either output or error"),
            ("output: {}\nerror: x", "a fixture has either output or error"),
            ("error: 5", "the error of a fixture is text that is not empty"),
            (
                "output:\n  n: .inf",
                "the fixture cannot be read: line 2, column 6: .inf is no number that JSON has; write a number, or quote it as text",
            ),
        ] {
            let error = Fixture::parse(text.as_bytes()).map_err(|error| error.to_string());
            assert_eq!(error, Err(problem.to_owned()), "{text}");
        }
    }
}
