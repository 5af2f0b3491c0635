//! The options that a seed chooses before the first step.

use std::fmt;

use crate::Bug;
use crate::rng::Rng;

/// Milliseconds and seconds of virtual time, in microseconds.
pub(crate) const MS: u64 = 1_000;
pub(crate) const SECOND: u64 = 1_000 * MS;

/// The options of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Decides everything else.
    pub seed: u64,
    /// A mistake to make on purpose.
    pub bug: Option<Bug>,
    /// Keep a line of every step, for whoever looks for a fault.
    pub trace: bool,
    /// Controllers.
    pub members: usize,
    /// Workers.
    pub nodes: usize,
    pub clients: usize,
    /// Jobs that each client submits.
    pub jobs_per_client: u64,
    /// How long a worker's session lives without a renewal, in microseconds.
    pub session_ttl: u64,
    /// How long the faults last, in microseconds.
    pub faults_for: u64,
    /// Faults injected in that time, besides those of the network.
    pub faults: u64,
    /// Messages lost between clients and controllers, and streams that break, in a thousand.
    pub loss: u64,
    /// Messages delivered twice, in a thousand.
    pub duplication: u64,
    /// Longest delay of a message, in microseconds.
    pub delay_max: u64,
    /// Entries between two full checks of the invariants.
    pub check_every: u64,
    /// Ended jobs that the state keeps.
    pub jobs_ended_kept: u64,
}

impl Options {
    /// The options that a seed chooses.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x00A7_1A50_0F70);
        Self {
            seed,
            bug: None,
            trace: false,
            members: 3,
            nodes: rng.range(2, 5) as usize,
            clients: rng.range(2, 4) as usize,
            jobs_per_client: rng.range(8, 16),
            session_ttl: rng.range(2, 4) * SECOND,
            faults_for: rng.range(25, 40) * SECOND,
            faults: rng.range(10, 18),
            loss: rng.pick(&[0, 10, 50, 150]),
            duplication: rng.pick(&[0, 10, 50]),
            delay_max: rng.pick(&[5, 50, 300]) * MS,
            check_every: rng.range(2, 7),
            jobs_ended_kept: rng.pick(&[0, 4, 1_000]),
        }
    }

    /// The same, with a mistake.
    #[must_use]
    pub fn with_bug(self, bug: Bug) -> Self {
        Self { bug: Some(bug), ..self }
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed={} nodes={} clients={} jobs={} ttl={}s faults={} in {}s loss={} duplication={} delay≤{}ms kept={}",
            self.seed,
            self.nodes,
            self.clients,
            self.jobs_per_client,
            self.session_ttl / SECOND,
            self.faults,
            self.faults_for / SECOND,
            self.loss,
            self.duplication,
            self.delay_max / MS,
            self.jobs_ended_kept,
        )?;
        if let Some(bug) = self.bug { write!(f, " bug={bug:?}") } else { Ok(()) }
    }
}
