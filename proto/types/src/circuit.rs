//! Circuits: an agent version or a node on which attempts keep failing takes no more jobs, except single ones that probe it.

use crate::{ClusterTime, Digest, FencingToken, Micros, Timestamp};

/// The circuit of an agent version or of a node.
///
/// It is closed while jobs start as usual, and counts failures in a row. With too many of them it opens: nothing starts until a pause has
/// passed. Then one attempt at a time probes it. Its success closes the circuit; its failure doubles the pause, up to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Circuit {
    /// Failures in a row.
    pub failures: u32,
    /// The package of the first of them.
    pub package: Option<Digest>,
    /// They are of more than one package.
    pub several: bool,
    /// Present while it is open.
    pub open: Option<Open>,
}

/// Of an open circuit: since when, and what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// When it opened.
    pub since: Timestamp,
    /// The pause after the latest failure.
    pub pause: Micros,
    pub probe: Probe,
}

/// What an open circuit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// No attempt may start until this time.
    At(ClusterTime),
    /// One attempt may start.
    Ready,
    /// This attempt runs, and no other may start.
    Runs(FencingToken),
}

/// An attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    pub token: FencingToken,
    /// What it ran.
    pub package: Digest,
    /// When it failed.
    pub at: Timestamp,
    /// When that was on the clock of timeouts.
    pub now: ClusterTime,
}

/// How many failures open a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// So many in a row.
    pub failures: u32,
    /// They must be of more than one package.
    pub several: bool,
}

impl Circuit {
    /// The first pause.
    pub const PAUSE: Micros = Micros::from_secs(10);
    /// The longest pause.
    pub const PAUSE_MAX: Micros = Micros::from_secs(300);
    /// Most failures in a row that a contract or an operator may allow.
    pub const FAILURES_MAX: u32 = 1_000_000;

    /// Whether an attempt may start.
    pub fn admits(&self) -> bool {
        self.open.is_none_or(|open| open.probe == Probe::Ready)
    }

    /// Whether the next attempt that starts probes it, and no other may start after that.
    pub fn wants_probe(&self) -> bool {
        self.open.is_some_and(|open| open.probe == Probe::Ready)
    }

    /// When the pause ends, if it has one.
    pub fn due(&self) -> Option<ClusterTime> {
        match self.open?.probe {
            Probe::At(due) => Some(due),
            Probe::Ready | Probe::Runs(_) => None,
        }
    }

    /// Ends the pause.
    pub fn end_pause(&mut self) {
        if let Some(Open { probe: probe @ Probe::At(_), .. }) = &mut self.open {
            *probe = Probe::Ready;
        }
    }

    /// An attempt starts.
    pub fn start(&mut self, token: FencingToken) {
        if let Some(Open { probe: probe @ Probe::Ready, .. }) = &mut self.open {
            *probe = Probe::Runs(token);
        }
    }

    /// An attempt succeeded. While it is open only its probe counts: others started before it opened.
    pub fn succeed(&mut self, token: FencingToken) {
        if self.open.is_none() || self.is_probed_by(token) {
            *self = Self::default();
        }
    }

    /// An attempt failed. With too many failures in a row the circuit opens.
    pub fn fail(&mut self, attempt: Failed, bound: Bound) {
        let Failed { token, package, at, now } = attempt;
        if self.open.is_some() && !self.is_probed_by(token) {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        self.several |= *self.package.get_or_insert(package) != package;
        let too_many = self.failures >= bound.failures && (self.several || !bound.several);
        if let Some(open) = &mut self.open {
            open.pause = Micros(open.pause.0.saturating_mul(2)).min(Self::PAUSE_MAX);
            open.probe = Probe::At(now.plus(open.pause));
        } else if too_many {
            self.open = Some(Open { since: at, pause: Self::PAUSE, probe: Probe::At(now.plus(Self::PAUSE)) });
        }
    }

    /// An attempt ended in a way that says nothing. If it was the probe, the next one starts after the same pause.
    pub fn abandon(&mut self, token: FencingToken, now: ClusterTime) {
        if self.is_probed_by(token)
            && let Some(open) = &mut self.open
        {
            open.probe = Probe::At(now.plus(open.pause));
        }
    }

    /// Whether this attempt probes it.
    pub fn is_probed_by(&self, token: FencingToken) -> bool {
        self.open.is_some_and(|open| open.probe == Probe::Runs(token))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKAGE: Digest = Digest([1; 32]);

    fn failed(token: u64, package: Digest, clock: u64) -> Failed {
        Failed { token: FencingToken(token), package, at: Timestamp(0), now: ClusterTime(clock) }
    }

    fn fail(circuit: &mut Circuit, token: u64, clock: u64) {
        circuit.fail(failed(token, PACKAGE, clock), Bound { failures: 2, several: false });
    }

    #[test]
    fn the_pause_grows_to_its_bound_and_a_probe_that_succeeds_closes_it() {
        let mut circuit = Circuit::default();
        fail(&mut circuit, 1, 0);
        assert!(circuit.admits());
        fail(&mut circuit, 2, 0);
        let mut pauses = Vec::new();
        let mut clock = 0;
        for token in 3..9 {
            assert!(!circuit.admits());
            pauses.push(circuit.due().expect("a pause").0 / 1_000_000 - clock / 1_000_000);
            clock = circuit.due().expect("a pause").0;
            circuit.end_pause();
            circuit.start(FencingToken(token));
            assert!(!circuit.admits());
            fail(&mut circuit, token, clock);
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 300]);
        assert_eq!(circuit.failures, 8);
        circuit.end_pause();
        circuit.start(FencingToken(9));
        circuit.succeed(FencingToken(1));
        assert!(!circuit.admits(), "an attempt that started before says nothing");
        circuit.succeed(FencingToken(9));
        assert_eq!(circuit, Circuit::default());
    }

    #[test]
    fn a_success_between_failures_keeps_it_closed() {
        let mut circuit = Circuit::default();
        for token in 0..9 {
            fail(&mut circuit, token, 0);
            circuit.succeed(FencingToken(token));
        }
        assert_eq!(circuit, Circuit::default());
    }

    #[test]
    fn a_probe_that_says_nothing_is_followed_by_another_after_the_same_pause() {
        let mut circuit = Circuit::default();
        fail(&mut circuit, 1, 0);
        fail(&mut circuit, 2, 0);
        circuit.end_pause();
        circuit.start(FencingToken(3));
        circuit.abandon(FencingToken(3), ClusterTime(50_000_000));
        assert_eq!(circuit.due(), Some(ClusterTime(60_000_000)));
    }

    #[test]
    fn where_the_failures_must_be_of_several_packages_those_of_one_do_not_open_it() {
        let mut circuit = Circuit::default();
        let mut fail = |token, package| {
            circuit.fail(failed(token, Digest([package; 32]), 0), Bound { failures: 2, several: true });
            circuit.admits()
        };
        assert!(fail(1, 1) && fail(2, 1) && fail(3, 1));
        assert!(!fail(4, 2));
    }

    proptest! {
        /// While it is open, an attempt starts only as its probe: one at a time, after a pause.
        #[test]
        fn an_open_circuit_starts_one_probe_at_a_time(steps in prop::collection::vec((0..5u8, 0..40u64), 1..200)) {
            let mut circuit = Circuit::default();
            let (mut clock, mut next) = (0, 0);
            let mut running = Vec::<FencingToken>::new();
            let mut probes = 0;
            for (step, amount) in steps {
                clock += amount * 1_000_000;
                if circuit.due().is_some_and(|due| due.0 <= clock) {
                    circuit.end_pause();
                }
                let picked = (!running.is_empty()).then(|| amount as usize % running.len());
                match (step, picked) {
                    (0 | 1, _) if circuit.admits() => {
                        next += 1;
                        if circuit.open.is_some() {
                            probes += 1;
                            prop_assert_eq!(probes, 1);
                        }
                        circuit.start(FencingToken(next));
                        running.push(FencingToken(next));
                    }
                    (2..=4, Some(picked)) => {
                        let token = running.remove(picked);
                        let probed = circuit.is_probed_by(token);
                        let open = circuit.open;
                        match step {
                            2 => circuit.succeed(token),
                            3 => fail(&mut circuit, token.0, clock),
                            _ => circuit.abandon(token, ClusterTime(clock)),
                        }
                        if probed {
                            probes -= 1;
                            prop_assert!(circuit.open.is_none() || circuit.due() > Some(ClusterTime(clock)));
                        } else if open.is_some() {
                            prop_assert_eq!(circuit.open, open);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}
