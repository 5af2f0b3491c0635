//! Expressions of chains and rules: a bounded part of the [Common Expression Language](https://cel.dev) over JSON.
//!
//! The crate `cel` parses. Evaluation is ours, so that it counts its steps: no expression takes long, builds large values or panics,
//! whoever wrote it. The same expression over the same data has the same result on every member.

mod evaluate;
mod filter;
mod functions;
mod operators;
mod parse;

#[cfg(test)]
mod tests;

use cel::IdedExpr;
use cel::common::ast::SourceInfo;
use serde_json::Value;

use evaluate::Unknown;

pub use filter::Filter;

/// Most bytes of an expression.
pub const SOURCE_BYTES_MAX: usize = 2_048;
/// Most steps of an evaluation: one for each part of the expression that is evaluated, and more where data is copied.
pub const STEPS_MAX: u64 = 100_000;

/// What is wrong with an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {text}")]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    pub text: String,
    /// Whether data has no such member or item; only filters ask.
    is_missing: bool,
}

/// An expression that was parsed.
#[derive(Debug)]
pub struct Expression {
    root: IdedExpr,
    positions: SourceInfo,
}

impl Expression {
    /// Parses an expression over some variables. It knows all names and functions that the expression uses.
    pub fn parse(source: &str, variables: &[&str]) -> Result<Self, Problem> {
        parse::parse(source, variables)
    }

    /// Its value. A variable that is not given is null.
    pub fn value(&self, variables: &[(&str, &Value)]) -> Result<Value, Problem> {
        evaluate::evaluate(self, variables, Unknown::IsNull, 0).0
    }

    /// Whether it holds: its value has to be true or false.
    pub fn holds(&self, variables: &[(&str, &Value)]) -> Result<bool, Problem> {
        self.holds_after(variables, &mut 0)
    }

    /// Whether it holds. `steps` counts those of several expressions, which together take at most [`STEPS_MAX`].
    pub fn holds_after(&self, variables: &[(&str, &Value)], steps: &mut u64) -> Result<bool, Problem> {
        let (value, taken) = evaluate::evaluate(self, variables, Unknown::IsNull, *steps);
        *steps = taken;
        match value? {
            Value::Bool(holds) => Ok(holds),
            other => Err(self.wrong_kind(&other)),
        }
    }

    /// That its value is neither true nor false.
    fn wrong_kind(&self, value: &Value) -> Problem {
        self.problem(self.root.id, format!("is {}, not true or false", operators::kind(value)))
    }

    /// What is wrong with a part of it.
    fn problem(&self, part: u64, text: String) -> Problem {
        let start = self.positions.offset_for(part).map_or(0, |(start, _)| start as usize);
        let before = self.positions.source.chars().take(start).collect::<String>();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|char| *char != '\n').count() + 1;
        Problem { line, column, text, is_missing: false }
    }
}
