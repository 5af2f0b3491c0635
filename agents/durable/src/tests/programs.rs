//! Programs that do several things at a time and depend on the order of what they are told, killed at any point.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::PATIENCE;
use crate::*;

const NOW: Duration = Duration::ZERO;

/// A number that depends on all of these.
fn mixed(parts: &[u64]) -> u64 {
    parts.iter().fold(0x9e37_79b9_7f4a_7c15, |mix, part| {
        let mix = (mix ^ part).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mix ^ (mix >> 29)
    })
}

fn key(id: &str) -> Key {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mixed(&id.bytes().map(u64::from).collect::<Vec<_>>()).to_be_bytes());
    Key(key)
}

/// What the program says.
#[derive(Debug)]
enum Said {
    Call { call: u64, name: String, id: String },
    Forget(u64),
}

/// Several tasks. What each does next depends on all that the program was told, and on the order of that.
struct Program {
    seed: u64,
    /// After so many answers, it does something else than it did.
    changed: Option<u64>,
    /// What it was told.
    told: Vec<(String, u64)>,
    state: u64,
    /// Calls that each task has left.
    left: Vec<u64>,
    /// The open calls: the task and the identity.
    open: BTreeMap<u64, (usize, String)>,
    numbers: Numbers,
    last: u64,
}

impl Program {
    fn start(seed: u64, changed: Option<u64>) -> (Self, Vec<Said>) {
        let tasks = 1 + seed % 4;
        let left = (0..tasks).map(|task| 1 + mixed(&[seed, task]) % 5).collect();
        let (open, told, numbers) = (BTreeMap::new(), Vec::new(), Numbers::default());
        let mut program = Self { seed, changed, told, state: seed, left, open, numbers, last: 0 };
        let mut said = Vec::new();
        (0..tasks as usize).for_each(|task| program.next(task, &mut said));
        (program, said)
    }

    fn next(&mut self, task: usize, said: &mut Vec<Said>) {
        let Some(left) = self.left[task].checked_sub(1) else { return };
        self.left[task] = left;
        let is_changed = self.changed.is_some_and(|after| self.told.len() as u64 >= after);
        let name = format!("{}{}", mixed(&[self.state, task as u64]) % 3, if is_changed { "new" } else { "" });
        let id = self.numbers.next(CallKind::Step, &name, "");
        self.last += 1;
        self.open.insert(self.last, (task, id.clone()));
        said.push(Said::Call { call: self.last, name, id });
    }

    fn tell(&mut self, call: u64, value: u64) -> Vec<Said> {
        let (task, id) = self.open.remove(&call).expect("it was asked for, and not forgotten");
        self.told.push((id, value));
        self.state = mixed(&[self.state, self.seed, value]);
        let mut said = Vec::new();
        // Sometimes the first end makes another call superfluous.
        if self.state.is_multiple_of(4)
            && let Some((&other, &(of, _))) = self.open.iter().next()
        {
            self.open.remove(&other);
            said.push(Said::Forget(other));
            self.next(of, &mut said);
        }
        self.next(task, &mut said);
        said
    }

    fn is_alone(&self) -> bool {
        self.open.len() == 1
    }
}

/// One attempt.
struct Attempt {
    program: Program,
    replay: CallReplay,
    /// Begun, in the order in which they began, with their identities.
    begun: Vec<(u64, String)>,
    ids: BTreeMap<u64, String>,
    differs: bool,
}

type Journal = Vec<(String, u64)>;

fn recorded(journal: &Journal) -> Vec<PastCall> {
    let record = |(id, _): &(String, u64)| PastCall { key: key(id), kind: CallKind::Step, name: id.clone() };
    journal.iter().map(record).collect()
}

impl Attempt {
    fn start(seed: u64, changed: Option<u64>, journal: &Journal) -> Self {
        let (program, said) = Program::start(seed, changed);
        let replay = CallReplay::new(recorded(journal), NOW, PATIENCE * 2);
        let mut attempt = Self { program, replay, begun: Vec::new(), ids: BTreeMap::new(), differs: false };
        attempt.hear(said, journal);
        attempt
    }

    /// Carries out what the program says and what follows, each answer after all that came of the one before.
    fn hear(&mut self, said: Vec<Said>, journal: &Journal) {
        let known: BTreeSet<&str> = journal.iter().map(|(id, _)| id.as_str()).collect();
        let mut released = std::collections::VecDeque::new();
        let mut said = said;
        loop {
            let count = said.len();
            for (place, one) in said.into_iter().enumerate() {
                let effects = match one {
                    Said::Call { call, name, id } => {
                        self.ids.insert(call, id.clone());
                        let (given, at) = (String::new(), String::new());
                        let alone = self.program.is_alone() && place + 1 == count && released.is_empty();
                        let asked = CallRequest { key: key(&id), kind: CallKind::Step, name, given, at, alone };
                        self.replay.ask(call, asked, NOW)
                    }
                    Said::Forget(call) => self.replay.forget(call, NOW),
                };
                for effect in effects {
                    match effect {
                        CallEffect::Release { call, record } => released.push_back((call, record)),
                        CallEffect::Begin(call) => {
                            let id = self.ids[&call].clone();
                            assert!(!known.contains(id.as_str()), "{id} is recorded and begins again");
                            assert!(self.replay.is_over(), "{id} begins beyond a difference");
                            self.begun.push((call, id));
                        }
                        CallEffect::Differs(_) => self.differs = true,
                        other => panic!("{other:?}"),
                    }
                }
            }
            let Some((call, record)) = released.pop_front() else { return };
            // It may have been forgotten on the way.
            said = match self.program.open.contains_key(&call) {
                true => self.program.tell(call, journal[record].1),
                false => Vec::new(),
            };
        }
    }

    /// A begun call ends. Whether the program still waits or not, it is recorded.
    fn end(&mut self, choice: usize, value: u64, journal: &mut Journal) {
        let (call, id) = self.begun.remove(choice % self.begun.len());
        journal.push((id, value));
        if self.program.open.contains_key(&call) {
            let said = self.program.tell(call, value);
            self.hear(said, journal);
        }
    }
}

/// Runs the program in attempts that are killed after so many ends, and once to its end.
fn run(seed: u64, kills: &[usize], choices: &[usize]) -> (Journal, Vec<Vec<(String, u64)>>) {
    let (mut journal, mut told, mut value) = (Journal::new(), Vec::new(), 1_000);
    let mut choices = choices.iter().copied().cycle();
    for limit in kills.iter().copied().chain([usize::MAX]) {
        let mut attempt = Attempt::start(seed, None, &journal);
        for _ in 0..limit {
            if attempt.begun.is_empty() {
                break;
            }
            value += 1;
            attempt.end(choices.next().unwrap_or_default(), value, &mut journal);
        }
        assert!(!attempt.differs, "the program is the same");
        told.push(attempt.program.told);
    }
    (journal, told)
}

proptest! {
    #[test]
    fn a_killed_program_is_told_the_same_and_begins_nothing_again(
        seed in any::<u64>(),
        kills in prop::collection::vec(0..6_usize, 0..5),
        choices in prop::collection::vec(0..8_usize, 1..20),
    ) {
        let (journal, told) = run(seed, &kills, &choices);
        for two in told.windows(2) {
            prop_assert!(two[1].starts_with(&two[0]), "{:?}", two);
        }
        let ids: BTreeSet<&String> = journal.iter().map(|(id, _)| id).collect();
        prop_assert_eq!(ids.len(), journal.len(), "no call is recorded twice");
        // Once more from the whole record: nothing begins but what is forgotten.
        let again = Attempt::start(seed, None, &journal);
        prop_assert!(again.program.open.is_empty() && again.replay.is_over());
        prop_assert_eq!(&again.program.told, &told[told.len() - 1]);
    }

    #[test]
    fn a_program_that_changed_is_found_and_begins_nothing_beyond(
        seed in any::<u64>(),
        choices in prop::collection::vec(0..8_usize, 1..20),
        after in 0..12_u64,
    ) {
        let (journal, _) = run(seed, &[], &choices);
        let attempt = Attempt::start(seed, Some(after), &journal);
        let is_left = attempt.replay.unclaimed().next().is_some();
        if is_left {
            prop_assert!(attempt.begun.is_empty());
            let found = attempt.differs || attempt.replay.tick(NOW + PATIENCE).is_some();
            let has_open = !attempt.program.open.is_empty();
            prop_assert!(found || !has_open, "a program that waits for nothing ends, and the rest of the record is told");
        }
    }
}
