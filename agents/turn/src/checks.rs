//! Checks against JSON Schemas. The driver provides them, because validators are not pure crates.

use serde_json::Value;

/// A place where a value does not match its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer of the place; `/` is the value itself.
    pub pointer: String,
    pub message: String,
}

/// Checks values against the schemas of the settings. The answers may depend on nothing else.
pub trait Checks {
    /// Why the arguments of a tool, given by its place in [`Settings::tools`](crate::Settings::tools), do not match.
    fn arguments(&self, tool: usize, arguments: &Value) -> Vec<Problem>;

    /// Why an output does not match the schema of [`Format::Schema`](crate::Format::Schema).
    fn output(&self, output: &Value) -> Vec<Problem>;
}

/// Accepts everything.
#[derive(Debug, Clone, Copy)]
pub struct NoChecks;

impl Checks for NoChecks {
    fn arguments(&self, _: usize, _: &Value) -> Vec<Problem> {
        Vec::new()
    }

    fn output(&self, _: &Value) -> Vec<Problem> {
        Vec::new()
    }
}

/// Most problems that a model is told.
const TOLD_MAX: usize = 10;

/// Problems as one text: `at /a: 5 is not of type 'string'; at /b: …`.
pub(crate) fn told(problems: &[Problem]) -> String {
    let mut told: Vec<String> =
        problems.iter().take(TOLD_MAX).map(|Problem { pointer, message }| format!("at {pointer}: {message}")).collect();
    if problems.len() > TOLD_MAX {
        told.push(format!("and {} more", problems.len() - TOLD_MAX));
    }
    told.join("; ")
}
