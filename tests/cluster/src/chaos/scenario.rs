//! The scenarios: the layout of the cluster, and its faults.

use super::fault::Fault;
use super::needs::Needs;
use super::rig::Layout;

/// A kind of run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    /// The name on the command line.
    pub name: &'static str,
    pub(crate) faults: &'static [Fault],
    /// Minimum number of installed faults; a run with fewer is void.
    pub(crate) faults_min: u64,
    /// Minimum counts of other events; a run with fewer is void.
    pub(crate) seen_min: &'static [(&'static str, u64)],
    pub(crate) needs: &'static [Needs],
    pub(crate) layout: Layout,
}

/// Three controllers and two workers. They compare the digests of their states often; a controller with a different
/// digest stops.
const THREE: Layout = Layout { controllers: 3, options: &["--digest-every", "200"], ..Layout::SMALL };

/// Five controllers, the largest recommended cluster.
const FIVE: Layout = Layout { controllers: 5, ..THREE };

/// Controllers that keep little log, so that a member that was down needs a snapshot.
const FORGETFUL: Layout = Layout { options: &["--digest-every", "200", "--snapshot-log", "48KiB"], ..THREE };

const LOST: &[(&str, u64)] = &[("attempts lost", 1)];
const FENCED: &[(&str, u64)] = &[("attempts lost", 1), ("fenced reports", 1)];
const LED_ANEW: &[(&str, u64)] = &[("leader changes", 1)];

const fn scenario(name: &'static str, layout: Layout, needs: &'static [Needs], faults: &'static [Fault]) -> Scenario {
    Scenario { name, faults, faults_min: 5, seen_min: &[], needs, layout }
}

/// All scenarios, in the order of a long run.
pub(crate) const ALL: &[Scenario] = &[
    Scenario { seen_min: LED_ANEW, ..scenario("leader-kill", THREE, &[], &[Fault::KillLeader]) },
    scenario("all-kill", THREE, &[], &[Fault::KillAll]),
    Scenario {
        seen_min: LED_ANEW,
        ..scenario("leader-isolated", THREE, &[Needs::Namespaces], &[Fault::IsolateLeader])
    },
    scenario("one-way", THREE, &[Needs::Namespaces], &[Fault::OneWay]),
    Scenario { seen_min: FENCED, ..scenario("worker-isolated", THREE, &[Needs::Namespaces], &[Fault::IsolateWorker]) },
    Scenario { seen_min: LOST, ..scenario("worker-pause", THREE, &[], &[Fault::PauseWorker]) },
    Scenario { seen_min: LOST, ..scenario("worker-kill", THREE, &[], &[Fault::KillWorker]) },
    Scenario { seen_min: LED_ANEW, ..scenario("leader-pause", THREE, &[], &[Fault::PauseLeader]) },
    scenario("disk-full", Layout { disk_mib: Some(768), ..THREE }, &[Needs::Namespaces], &[Fault::FillDisk]),
    scenario(
        "slow-disk",
        Layout { shim: true, ..THREE },
        &[Needs::Compiler],
        &[Fault::SlowDisk, Fault::SlowDisk, Fault::FailSync],
    ),
    scenario("clock-steps", Layout { shim: true, ..THREE }, &[Needs::Compiler], &[Fault::StepClock]),
    scenario("rolling-restart", THREE, &[], &[Fault::RollingRestart]),
    scenario("member-replaced", THREE, &[], &[Fault::Replace]),
    // One fault takes more than ten seconds, because enough log must be written to trigger a snapshot.
    Scenario { faults_min: 2, ..scenario("left-behind", FORGETFUL, &[], &[Fault::LeaveBehind]) },
    Scenario {
        seen_min: LED_ANEW,
        ..scenario("five", FIVE, &[], &[Fault::KillTwo, Fault::KillTwo, Fault::TransferLeader, Fault::Replace])
    },
    scenario("flaky", THREE, &[Needs::Namespaces], &[Fault::Flaky]),
    scenario(
        "mixed",
        Layout { shim: true, ..THREE },
        &[Needs::Namespaces, Needs::Compiler],
        &[
            Fault::KillLeader,
            Fault::KillAll,
            Fault::KillWorker,
            Fault::IsolateLeader,
            Fault::OneWay,
            Fault::IsolateWorker,
            Fault::PauseLeader,
            Fault::SlowDisk,
            Fault::FailSync,
            Fault::StepClock,
            Fault::RollingRestart,
            Fault::TransferLeader,
            Fault::Flaky,
        ],
    ),
    scenario(
        "alone",
        Layout { shim: true, ..Layout::SMALL },
        &[Needs::Compiler],
        &[Fault::KillAll, Fault::PauseLeader, Fault::FailSync, Fault::KillWorker],
    ),
];

impl Scenario {
    /// All scenarios.
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// A scenario by its name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|scenario| scenario.name == name)
    }

    /// Whether a program may end by itself, because a sync failed or because it was removed from the cluster.
    pub(crate) fn may_end(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault, Fault::FailSync | Fault::Replace))
    }

    /// The requirement that the machine does not fulfil; none if the scenario can run.
    pub fn missing(&self) -> Option<String> {
        self.needs.iter().find_map(|&needs| super::needs::missing(needs))
    }
}
