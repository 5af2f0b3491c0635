//! What must hold of runs of chains: their versions grow, an end is final, and a run goes on as long as it can.

use atlas_types::{Run, RunChange, RunStatus};

use super::Oracle;
use crate::coverage::Coverage;

impl Oracle {
    /// A run of a chain changed.
    pub(super) fn chain_changed(&mut self, change: RunChange, run: &Run, coverage: &mut Coverage) {
        let id = run.id;
        let before = self.chains.insert(id, (run.version, run.status));
        let (version, was) = before.unwrap_or((0, RunStatus::Pending));
        if run.version != version + 1 || was.is_terminal() {
            self.violate(format!("{id} is {:?} at version {} after {was:?} at {version}", run.status, run.version));
        }
        if (change == RunChange::Started) != before.is_none() {
            self.violate(format!("{id} was {change} at version {}", run.version));
        }
        let outputs = run.steps.iter().filter(|step| step.output.is_some()).count();
        match run.status {
            RunStatus::Completed if run.branches.is_some() => coverage.count("chains with branches completed"),
            RunStatus::Completed if outputs as u64 != u64::from(run.total_steps) => {
                self.violate(format!("{id} completed with {outputs} outputs of {}", run.total_steps));
            }
            RunStatus::Completed if run.total_steps > 1 => coverage.count("chains completed"),
            RunStatus::Failed => coverage.count("chains failed"),
            RunStatus::Cancelled => coverage.count("chains cancelled"),
            _ => {}
        }
    }
}
