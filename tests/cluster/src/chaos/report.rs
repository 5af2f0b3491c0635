//! The result of a run, and its report.

use std::collections::BTreeMap;
use std::fmt;

use super::check::Violation;

/// The results of one class of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Number of installed faults.
    pub installed: u64,
    /// Number of faults that were not possible on this machine or at this time.
    pub skipped: u64,
    /// Number of faults with an unknown result, because the target may have been broken already.
    pub indeterminate: u64,
}

/// The result of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunReport {
    /// Number of successful calls.
    pub done: u64,
    /// Number of calls that certainly had no effect.
    pub refused: u64,
    /// Number of calls with an unknown outcome.
    pub unknown: u64,
    /// Faults by class.
    pub faults: BTreeMap<&'static str, Faults>,
    /// Other counts that show that a run was meaningful, by name.
    pub seen: BTreeMap<&'static str, u64>,
    /// The broken promises.
    pub(crate) violations: Vec<Violation>,
    /// Why the run proves nothing; none if it does prove something.
    pub void: Option<String>,
}

impl RunReport {
    /// The report of a void run.
    pub fn void(reason: String) -> Self {
        Self { void: Some(reason), ..Self::default() }
    }

    /// The number of all calls.
    pub fn operations(&self) -> u64 {
        self.done + self.refused + self.unknown
    }

    /// The number of installed faults.
    pub fn installed(&self) -> u64 {
        self.faults.values().map(|faults| faults.installed).sum()
    }

    /// Whether there are no violations, even if the run is void.
    pub fn found_nothing(&self) -> bool {
        self.violations.is_empty()
    }

    /// Whether there are no violations and the run is not void.
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

/// Totals of several runs.
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

    /// Whether there was at least one run, no violation and no void run.
    pub fn is_good(&self) -> bool {
        self.runs > 0 && self.violations == 0 && self.void == 0
    }

    /// Installed faults by class, in the format of the ledger page.
    pub fn classes(&self) -> String {
        let classes: Vec<String> = self.faults.iter().map(|(name, count)| format!("{name} {count}")).collect();
        classes.join(", ")
    }

    /// Operations, faults, void runs and violations, as the cells of a table row.
    pub fn cells(&self) -> String {
        format!("{} | {} | {} | {}", self.operations, self.classes(), self.void, self.violations)
    }

    /// The number of runs so far.
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
