//! The result of a run, and how it is reported.

use std::collections::BTreeMap;
use std::fmt;

use super::check::Violation;

/// How often a fault was wanted, and its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// It was there.
    pub installed: u64,
    /// The machine or the moment did not have it.
    pub skipped: u64,
    /// Nobody knows: what it was to break may have been broken already.
    pub indeterminate: u64,
}

/// The result of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunReport {
    /// Calls that were done.
    pub done: u64,
    /// Calls that were refused for sure.
    pub refused: u64,
    /// Calls of which nobody knows.
    pub unknown: u64,
    /// Faults by class.
    pub faults: BTreeMap<&'static str, Faults>,
    /// What else happened that makes a run mean something, by name.
    pub seen: BTreeMap<&'static str, u64>,
    /// What must not have been.
    pub(crate) violations: Vec<Violation>,
    /// In what the run did too little to prove anything.
    pub void: Option<String>,
}

impl RunReport {
    /// That of a run which showed nothing.
    pub fn void(reason: String) -> Self {
        Self { void: Some(reason), ..Self::default() }
    }

    /// All calls.
    pub fn operations(&self) -> u64 {
        self.done + self.refused + self.unknown
    }

    /// Faults that were there.
    pub fn installed(&self) -> u64 {
        self.faults.values().map(|faults| faults.installed).sum()
    }

    /// Whether nothing was found, in however little was done.
    pub fn found_nothing(&self) -> bool {
        self.violations.is_empty()
    }

    /// Whether nothing was found and enough was done.
    pub fn is_good(&self) -> bool {
        self.violations.is_empty() && self.void.is_none()
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} done, {} refused, {} unknown; faults:", self.done, self.refused, self.unknown)?;
        for (name, faults) in &self.faults {
            write!(f, " {name} {}", faults.installed)?;
            if faults.skipped + faults.indeterminate > 0 {
                write!(f, " (+{} skipped, {} indeterminate)", faults.skipped, faults.indeterminate)?;
            }
        }
        write!(f, "; seen:")?;
        for (name, count) in &self.seen {
            write!(f, " {count} {name},")?;
        }
        write!(f, " {} violations", self.violations.len())?;
        for violation in &self.violations {
            write!(f, "\n  {}: {}", violation.rule, violation.text)?;
        }
        if let Some(void) = &self.void {
            write!(f, "\n  void: {void}")?;
        }
        Ok(())
    }
}

/// The sums of many runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    runs: u64,
    operations: u64,
    faults: BTreeMap<&'static str, u64>,
    violations: u64,
    void: u64,
}

impl Ledger {
    /// Adds a run.
    pub fn add(&mut self, verdict: &RunReport) {
        self.runs += 1;
        self.operations += verdict.operations();
        for (name, faults) in &verdict.faults {
            *self.faults.entry(name).or_default() += faults.installed;
        }
        self.violations += verdict.violations.len() as u64;
        self.void += u64::from(verdict.void.is_some());
    }

    /// Whether nothing was found and every run did enough.
    pub fn is_good(&self) -> bool {
        self.runs > 0 && self.violations == 0 && self.void == 0
    }

    /// Installed faults by class, as the ledger page has them.
    pub fn classes(&self) -> String {
        let classes: Vec<String> = self.faults.iter().map(|(name, count)| format!("{name} {count}")).collect();
        classes.join(", ")
    }

    /// Operations, faults, void runs and violations, as the cells of a table.
    pub fn cells(&self) -> String {
        format!("{} | {} | {} | {}", self.operations, self.classes(), self.void, self.violations)
    }

    /// Runs so far.
    pub fn runs(&self) -> u64 {
        self.runs
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: u64 = self.faults.values().sum();
        let Self { operations, violations, void, .. } = self;
        write!(f, "{operations} operations, {faults} faults, {violations} violations, {void} void")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_adds_up() {
        let faults = BTreeMap::from([("kill", Faults { installed: 2, skipped: 1, indeterminate: 0 })]);
        let run =
            RunReport { done: 5, unknown: 1, faults, void: Some("too little".to_owned()), ..RunReport::default() };
        let mut ledger = Ledger::default();
        ledger.add(&run);
        ledger.add(&run);
        assert_eq!(ledger.to_string(), "12 operations, 4 faults, 0 violations, 2 void");
        assert!(!ledger.is_good());
    }
}
