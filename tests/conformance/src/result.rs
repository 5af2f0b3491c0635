//! The result of a row, and the counts of all results.

use std::fmt;

use serde_json::json;

use crate::matcher::{Captures, difference};

/// The result of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowResult {
    /// Atlas behaves as the row expects.
    Ok,
    /// Atlas behaves differently; contains the difference.
    Fail(String),
    /// The row needs a feature that Atlas does not have yet; contains the feature.
    Skip(String),
}

impl RowResult {
    /// The result as a line of text.
    pub fn line(&self, id: &str) -> String {
        match self {
            Self::Ok => format!("ok {id}"),
            Self::Fail(difference) => format!("FAIL {id}: {}", one_line(difference)),
            Self::Skip(why) => format!("skip {id}: not covered, {}", one_line(why)),
        }
    }

    /// The result as a JSON object.
    pub fn json(&self, id: &str) -> String {
        match self {
            Self::Ok => json!({"id": id, "verdict": "ok"}),
            Self::Fail(difference) => json!({"id": id, "verdict": "FAIL", "difference": difference}),
            Self::Skip(why) => json!({"id": id, "verdict": "skip", "why": format!("not covered, {why}")}),
        }
        .to_string()
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Why a row did not pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stop {
    /// See [`RowResult::Skip`].
    #[error("not covered, {0}")]
    Skip(String),
    /// See [`RowResult::Fail`].
    #[error("{0}")]
    Fail(String),
}

impl Stop {
    pub(crate) fn skip(why: impl Into<String>) -> Self {
        Self::Skip(why.into())
    }

    pub(crate) fn fail(difference: impl Into<String>) -> Self {
        Self::Fail(difference.into())
    }

    /// A failed system call, in contrast to an answer of Atlas.
    pub(crate) fn system(what: &str, error: impl fmt::Display) -> Self {
        Self::Fail(format!("could not {what}: {error}"))
    }
}

/// The outcome of one row.
pub(crate) type Judged = Result<(), Stop>;

impl From<Judged> for RowResult {
    fn from(judged: Judged) -> Self {
        match judged {
            Ok(()) => Self::Ok,
            Err(Stop::Skip(why)) => Self::Skip(why),
            Err(Stop::Fail(difference)) => Self::Fail(difference),
        }
    }
}

/// Compares an answer with what the row expects.
pub(crate) fn compare(expected: &serde_json::Value, actual: &serde_json::Value, captures: &Captures) -> Judged {
    difference(expected, actual, captures).map_or(Ok(()), |found| Err(Stop::Fail(found.to_string())))
}

/// The counts of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Rows that passed.
    pub passed: usize,
    /// Rows that failed.
    pub failed: usize,
    /// Rows that are not covered and were skipped.
    pub skipped: usize,
}

impl Tally {
    /// Counts one more row.
    pub fn add(&mut self, verdict: &RowResult) {
        match verdict {
            RowResult::Ok => self.passed += 1,
            RowResult::Fail(_) => self.failed += 1,
            RowResult::Skip(_) => self.skipped += 1,
        }
    }

    /// The counts as a JSON object.
    pub fn json(&self) -> String {
        json!({"passed": self.passed, "failed": self.failed, "skipped": self.skipped}).to_string()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_line() {
        let mut tally = Tally::default();
        let verdicts =
            [RowResult::Ok, RowResult::Fail("at /a:\n got 1".to_owned()), RowResult::Skip("no chains".to_owned())];
        let lines: Vec<_> = verdicts.iter().map(|verdict| verdict.line("x-1")).collect();
        assert_eq!(lines, ["ok x-1", "FAIL x-1: at /a: got 1", "skip x-1: not covered, no chains"]);
        verdicts.iter().for_each(|verdict| tally.add(verdict));
        assert_eq!(tally.to_string(), "1 passed, 1 failed, 1 skipped");
        assert_eq!(tally.json(), r#"{"passed":1,"failed":1,"skipped":1}"#);
        assert_eq!(verdicts[2].json("x-1"), r#"{"id":"x-1","verdict":"skip","why":"not covered, no chains"}"#);
    }
}
