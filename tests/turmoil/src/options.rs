//! The options that a seed chooses before the first step.

use std::fmt;
use std::time::Duration;

use atlas_sim::Rng;

use crate::Bug;
use crate::fault::Kind;

/// Seeds from this one on have long runs.
const LONG_FROM: u64 = 1_000;

/// The options of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Determines everything else.
    pub seed: u64,
    /// A deliberate bug.
    pub bug: Option<Bug>,
    /// The number of controllers.
    pub members: usize,
    /// The number of workers.
    pub nodes: usize,
    pub clients: usize,
    /// The number of jobs that each client submits.
    pub jobs_per_client: u64,
    /// How long a worker's session lives without a renewal.
    pub session_ttl: Duration,
    /// How long the faults last.
    pub faults_for: Duration,
    /// The number of faults in that time.
    pub faults: u64,
    /// The longest delay of a message.
    pub delay_max: Duration,
    /// The longest time that a disk takes for a group.
    pub disk_max: Duration,
    /// How long a client waits for an answer.
    pub patience: Duration,
    /// The kinds of faults, in turn; empty for all.
    pub kinds: &'static [Kind],
    /// The size of the log after which a snapshot is due.
    pub snapshot_log_bytes: u64,
    /// The number of entries between two full checks of the state's invariants.
    pub check_every: u64,
    /// The number of ended jobs that the state keeps.
    pub jobs_ended_kept: u64,
}

impl Options {
    /// The options that a seed chooses.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0070_A7A5_u64);
        let millis = Duration::from_millis;
        // Every build runs the first thousand seeds. The others belong to campaigns and run longer.
        let long = u64::from(seed >= LONG_FROM);
        Self {
            seed,
            bug: None,
            members: 3,
            nodes: rng.range(1, 3) as usize,
            clients: rng.range(2, 2 + long) as usize,
            jobs_per_client: rng.range(3, 5 + 3 * long),
            session_ttl: millis(rng.pick(&[1_000, 2_000, 3_000])),
            faults_for: Duration::from_secs(rng.range(5, 7) * (1 + 2 * long)),
            faults: rng.range(4, 6) * (1 + long),
            delay_max: millis(rng.pick(&[2, 10, 40])),
            disk_max: millis(rng.pick(&[1, 5, 20])),
            snapshot_log_bytes: rng.pick(&[2, 8, 1 << 14]) << 10,
            check_every: rng.range(1, 5),
            jobs_ended_kept: rng.pick(&[0, 4, 1_000]),
            patience: millis(rng.pick(&[150, 1_000, 6_000])),
            kinds: &[],
        }
    }

    /// The same options with a deliberate bug and the faults that reveal it.
    #[must_use]
    pub fn with_bug(self, bug: Bug) -> Self {
        Self { bug: Some(bug), ..bug.aim(&self) }
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, members, nodes, clients, jobs_per_client, session_ttl, faults, faults_for, .. } = self;
        write!(f, "seed={seed} members={members} nodes={nodes} clients={clients} jobs={jobs_per_client} ")?;
        write!(f, "ttl={session_ttl:?} faults={faults} in {faults_for:?} delay≤{:?} ", self.delay_max)?;
        write!(f, "disk≤{:?} snapshot={} kept={} ", self.disk_max, self.snapshot_log_bytes, self.jobs_ended_kept)?;
        write!(f, "patience={:?}", self.patience)?;
        if let Some(bug) = self.bug { write!(f, " bug={bug:?}") } else { Ok(()) }
    }
}
