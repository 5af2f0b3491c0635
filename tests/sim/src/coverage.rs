//! Coverage of a run: one that did too little proves nothing.

use std::collections::BTreeMap;

/// Counts of what happened, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<&'static str, u64>);

/// What every run must have done, and how often.
const RUN_MIN: [(&str, u64); 6] = [
    ("acknowledged submissions", 16),
    ("committed entries", 40),
    ("leader changes", 2),
    ("executions", 10),
    ("faults", 8),
    ("invariant checks", 5),
];

/// What a campaign of 200 runs must have seen, and how often.
const CAMPAIGN_MIN: [(&str, u64); 74] = [
    ("jobs that waited for their turn", 100),
    ("namespaces that waited for their turn", 50),
    ("rates used up", 20),
    ("circuits of agents", 30),
    ("circuits of nodes", 5),
    ("circuits probed", 10),
    ("circuits closed by hand", 5),
    ("keys at their limit", 50),
    ("spawned jobs", 100),
    ("children forsaken", 20),
    ("places lent", 50),
    ("llm places full", 50),
    ("parked jobs", 200),
    ("parked jobs cancelled", 5),
    ("parked jobs that moved", 50),
    ("messages delivered", 50),
    ("questions asked", 50),
    ("questions answered", 30),
    ("questions out of time", 5),
    ("questions cancelled", 1),
    ("approvals asked", 50),
    ("approvals given", 30),
    ("approvals refused", 10),
    ("approvals out of time", 5),
    ("orchestrators selected", 3),
    ("routed jobs", 50),
    ("fenced reports", 20),
    ("lost nodes", 50),
    ("lost leases", 100),
    ("sessions resumed", 50),
    ("streams broken", 100),
    ("farewells", 10),
    ("names refused", 5),
    ("new node epochs", 50),
    ("entries lost with their leader", 20),
    ("entries committed by the next leader", 20),
    ("entries of a deposed leader", 10),
    ("stale entries", 20),
    ("snapshots installed", 50),
    ("member crashes", 50),
    ("repeated submissions", 20),
    ("unknown outcomes", 50),
    ("cancels accepted", 50),
    ("retries", 50),
    ("jobs pruned", 100),
    ("jobs in doubt", 5),
    ("queue timeouts", 5),
    ("stalled loops", 20),
    ("node pauses", 20),
    ("workers cut off", 20),
    ("drains", 20),
    ("deadlines of drains", 5),
    ("nodes labelled", 5),
    ("inventories refused", 5),
    ("versions published, retired or deleted", 5),
    ("wall clock jumps", 20),
    ("steps made", 500),
    ("journals continued", 50),
    ("calls made", 200),
    ("programs continued", 10),
    ("calls released together", 3),
    ("folds", 50),
    ("folds replayed", 10),
    ("steps without room", 5),
    ("fenced steps", 5),
    ("jobs forked", 50),
    ("folds cut for forks", 5),
    ("jobs carried", 200),
    ("carried jobs cancelled", 20),
    ("carried jobs overdue", 20),
    ("carried children ended", 20),
    ("logs stored", 500),
    ("logs of earlier attempts kept", 20),
    ("fenced logs", 5),
];

impl Coverage {
    /// Notes that something happened.
    pub fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    /// Notes that something happened so often.
    pub fn add(&mut self, what: &'static str, n: u64) {
        *self.0.entry(what).or_default() += n;
    }

    /// What happened, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(what, n)| (*what, *n))
    }

    /// How often something happened.
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    /// Adds what another run has seen.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(what, n)| self.add(what, *n));
    }

    /// In what a single run fell short.
    pub(crate) fn run_shortfall(&self) -> Option<String> {
        self.shortfall(&RUN_MIN)
    }

    /// In what 200 runs fell short.
    pub fn campaign_shortfall(&self) -> Option<String> {
        self.shortfall(&CAMPAIGN_MIN)
    }

    /// In what this falls short of what is wanted.
    pub fn shortfall(&self, wanted: &[(&'static str, u64)]) -> Option<String> {
        let short = wanted.iter().filter(|(what, min)| self.of(what) < *min);
        let short: Vec<String> = short.map(|(what, min)| format!("{} {what} of {min}", self.of(what))).collect();
        if short.is_empty() { None } else { Some(short.join(", ")) }
    }
}
