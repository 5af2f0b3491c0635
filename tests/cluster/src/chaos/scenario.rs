//! The scenarios: which cluster, and what goes wrong in it.

use std::time::Duration;

use super::fault::Fault;
use super::needs::Needs;
use super::rig::Layout;

/// A kind of run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    /// Its word on the command line.
    pub name: &'static str,
    pub(crate) faults: &'static [Fault],
    /// Fewer installed faults make a run void.
    pub(crate) faults_min: u64,
    /// What must have been seen, and how often.
    pub(crate) seen_min: &'static [(&'static str, u64)],
    pub(crate) needs: &'static [Needs],
    pub(crate) layout: Layout,
}

/// One controller and two workers.
const ALONE: Layout =
    Layout { controllers: 1, workers: 2, places: 6, session_ttl: Duration::from_secs(2), disk_mib: None, shim: false };

const LOST: &[(&str, u64)] = &[("attempts lost", 1)];

/// All scenarios in the order in which a long run goes through them.
pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "controller-kill",
        faults: &[Fault::KillAll, Fault::PauseLeader],
        faults_min: 5,
        seen_min: &[],
        needs: &[],
        layout: ALONE,
    },
    Scenario {
        name: "worker-kill",
        faults: &[Fault::KillWorker],
        faults_min: 5,
        seen_min: LOST,
        needs: &[],
        layout: ALONE,
    },
    Scenario {
        name: "worker-pause",
        faults: &[Fault::PauseWorker],
        faults_min: 5,
        seen_min: LOST,
        needs: &[],
        layout: ALONE,
    },
    Scenario {
        name: "worker-isolated",
        faults: &[Fault::IsolateWorker],
        faults_min: 5,
        seen_min: LOST,
        needs: &[Needs::Namespaces],
        layout: ALONE,
    },
];

impl Scenario {
    /// All scenarios.
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// A scenario by its word.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|scenario| scenario.name == name)
    }

    /// What the machine lacks for it; none if it can be run.
    pub fn missing(&self) -> Option<String> {
        self.needs.iter().find_map(|&needs| super::needs::missing(needs))
    }
}
