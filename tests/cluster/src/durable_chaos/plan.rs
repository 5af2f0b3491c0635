//! Which fault meets which job at which boundary of which step, by a seed.
//!
//! A fault is a file `FAMILY.STEP.BOUNDARY` in the folder of the harness. The program that comes to the boundary renames it to `….met`, so that
//! it meets the fault once, and does what its content says: `agent` (it kills itself), `wait` (it waits there until it dies or the file is
//! gone), or `go` (it goes on, and the kill comes about then).

use std::collections::BTreeSet;

use crate::rng::Rng;

/// Steps of a program.
pub(super) const STEPS: u64 = 20;

/// The first and the last of the steps that the programs in Python and JavaScript make at the same time.
const BATCH: (u64, u64) = (17, 19);

/// The last step of a shell script that `atlasctl` makes.
const BY_ATLASCTL: u64 = 10;

/// A language of durable programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    Node,
    Shell,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Python, Self::Node, Self::Shell];

    /// Whether the program looks itself what came of a step that is in doubt.
    pub(super) fn reconciles(self, step: u64) -> bool {
        self != Self::Shell && step.is_multiple_of(2)
    }

    /// The place of a step in the order of effects: steps at the same time have the same one.
    pub(super) fn place(self, step: u64) -> u64 {
        if self != Self::Shell && (BATCH.0..=BATCH.1).contains(&step) { BATCH.0 } else { step }
    }

    /// The result of a step in the form that its record has.
    pub(super) fn recorded(self, step: u64) -> String {
        match self {
            Self::Shell if step <= BY_ATLASCTL => format!(r#"{{"stdout":"{}\n","code":0}}"#, result(step)),
            _ => result(step).to_string(),
        }
    }
}

/// Whether a step must not run twice.
pub(super) fn is_once(step: u64) -> bool {
    step % 3 == 1
}

/// What a step returns.
pub(super) fn result(step: u64) -> u64 {
    step * 7
}

/// What a fault kills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Victim {
    /// The process of the agent.
    Agent,
    /// The worker, with all that runs there.
    Worker,
    /// The leader of the controllers.
    Leader,
}

/// Where in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Boundary {
    /// Before its call.
    Before,
    /// In its function, before the effect.
    Enter,
    /// In its function, after the effect.
    Leave,
    /// After its call has returned.
    After,
}

impl Boundary {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Enter => "enter",
            Self::Leave => "leave",
            Self::After => "after",
        }
    }
}

/// One fault of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) victim: Victim,
    pub(super) step: u64,
    pub(super) boundary: Boundary,
    /// Whether the program waits for the kill; otherwise both happen at about the same time.
    pub(super) waits: bool,
}

impl Planned {
    /// The name of its file.
    pub(super) fn file(&self, family: &str) -> String {
        format!("{family}.{}.{}", self.step, self.boundary.name())
    }

    /// The content of its file.
    pub(super) fn says(&self) -> &'static str {
        match (self.victim, self.waits) {
            (Victim::Agent, _) => "agent",
            (_, true) => "wait",
            (_, false) => "go",
        }
    }
}

const BOUNDARIES: [Boundary; 4] = [Boundary::Before, Boundary::Enter, Boundary::Leave, Boundary::After];

/// A victim at each boundary, and two kills that race with a record of a step: with its intent, and with its end.
fn all_of(victim: Victim) -> Vec<(Victim, Boundary, bool)> {
    let held = BOUNDARIES.map(|boundary| (victim, boundary, true));
    let races = [Boundary::Before, Boundary::Leave].map(|boundary| (victim, boundary, false));
    match victim {
        Victim::Agent => held.to_vec(),
        Victim::Worker | Victim::Leader => [held.as_slice(), &races].concat(),
    }
}

/// Deals faults of one victim to families in turn, so that together they have all boundaries.
struct Deck {
    victim: Victim,
    left: Vec<(Victim, Boundary, bool)>,
}

impl Deck {
    fn next(&mut self, rng: &mut Rng) -> (Victim, Boundary, bool) {
        if self.left.is_empty() {
            self.left = all_of(self.victim);
        }
        let chosen = rng.below(self.left.len() as u64) as usize;
        self.left.swap_remove(chosen)
    }
}

/// The faults of the families of one language. Each family has two kills of its agent and two of its worker; every third also has one of the
/// leader, which all families feel.
pub(super) fn plan(rng: &mut Rng, families: usize) -> Vec<Vec<Planned>> {
    let [mut agents, mut workers, mut leaders] =
        [Victim::Agent, Victim::Worker, Victim::Leader].map(|victim| Deck { victim, left: Vec::new() });
    let mut plans = Vec::new();
    for family in 0..families {
        let mut dealt = vec![agents.next(rng), workers.next(rng), agents.next(rng), workers.next(rng)];
        if family % 3 == 0 {
            dealt.push(leaders.next(rng));
        }
        let mut steps = BTreeSet::new();
        let mut free = || loop {
            let step = rng.range(1, STEPS);
            if steps.insert(step) {
                break step;
            }
        };
        let faults =
            dealt.into_iter().map(|(victim, boundary, waits)| Planned { victim, step: free(), boundary, waits });
        plans.push(faults.collect());
    }
    plans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_families_meet_every_victim_at_every_boundary() {
        for seed in 0..50 {
            let plans: Vec<Planned> = plan(&mut Rng::new(seed), 4).concat();
            for victim in [Victim::Agent, Victim::Worker] {
                for boundary in BOUNDARIES {
                    assert!(plans.iter().any(|fault| fault.victim == victim && fault.boundary == boundary));
                }
            }
        }
        assert_eq!(plan(&mut Rng::new(7), 3), plan(&mut Rng::new(7), 3));
    }
}
