//! The result of a run.

use std::collections::BTreeMap;
use std::fmt;

/// What came of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Jobs, retries included.
    pub jobs: usize,
    /// Counts of what happened, by name.
    pub seen: BTreeMap<&'static str, u64>,
    /// What does not hold.
    pub violations: Vec<String>,
}

impl Report {
    pub(super) fn count(&mut self, what: &'static str) {
        self.add_to(what, 1);
    }

    pub(super) fn add_to(&mut self, what: &'static str, more: u64) {
        *self.seen.entry(what).or_default() += more;
    }

    pub(super) fn seen(&self, what: &str) -> u64 {
        self.seen.get(what).copied().unwrap_or(0)
    }

    /// Whether nothing was found.
    pub fn is_good(&self) -> bool {
        self.violations.is_empty()
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: Self) {
        self.jobs += other.jobs;
        other.seen.into_iter().for_each(|(what, count)| self.add_to(what, count));
        self.violations.extend(other.violations);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} jobs", self.jobs)?;
        self.seen.iter().try_for_each(|(what, count)| write!(f, ", {count} {what}"))?;
        write!(f, "; {} violations", self.violations.len())?;
        self.violations.iter().try_for_each(|found| write!(f, "\n  {found}"))
    }
}
