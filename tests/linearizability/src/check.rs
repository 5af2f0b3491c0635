//! The search for a valid order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::history::{Model, Operation};

/// The most possibilities examined for one answer. With more, too many operations are open at once.
const STEPS_MAX: usize = 200_000;

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckResult {
    /// A valid order exists.
    Linearizable,
    /// No valid order exists.
    Violation(Violation),
    /// Too many operations were open at once.
    TooHard,
}

impl CheckResult {
    /// The violation, if it is one.
    pub fn violation(&self) -> Option<&Violation> {
        match self {
            Self::Violation(violation) => Some(violation),
            Self::Linearizable | Self::TooHard => None,
        }
    }
}

/// The point at which no valid order is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The operation with an impossible answer, as an index into the history.
    pub operation: usize,
    /// That operation as text.
    pub text: String,
    /// The possible states of the object before it, each with the open operations that may have taken effect.
    pub before: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing explains {}; before it: {}", self.text, self.before.join(" or "))
    }
}

/// Open operations that have taken effect.
type Effective = BTreeSet<usize>;

/// The possible states of the object, each with the open operations that have taken effect in it.
///
/// If two ways lead to the same state, the one that used fewer operations of unknown outcome allows everything that the
/// other allows, so only that one is kept. This makes histories with many unknown outcomes feasible.
struct Possible<S>(BTreeMap<S, Vec<Effective>>);

impl<S: Clone + Ord> Possible<S> {
    /// Adds a possibility. False if an existing one covers it.
    fn insert(&mut self, state: &S, effective: &Effective, unknown: impl Fn(usize) -> bool) -> bool {
        let covers = |less: &Effective, more: &Effective| {
            less.is_subset(more) && more.difference(less).all(|&operation| unknown(operation))
        };
        let ways = self.0.entry(state.clone()).or_default();
        if ways.iter().any(|way| covers(way, effective)) {
            return false;
        }
        ways.retain(|way| !covers(effective, way));
        ways.push(effective.clone());
        true
    }

    fn iter(&self) -> impl Iterator<Item = (&S, &Effective)> {
        self.0.iter().flat_map(|(state, ways)| ways.iter().map(move |way| (state, way)))
    }
}

/// Checks the operations on one object.
pub fn check<M: Model>(model: &M, history: &[Operation<M::Input, M::Output>]) -> CheckResult {
    let mut open = BTreeSet::new();
    let mut possible = Possible(BTreeMap::from([(model.initial(), vec![Effective::new()])]));
    for Moment { operation, answer, .. } in moments(history) {
        if !answer {
            open.insert(operation);
            continue;
        }
        let Some(next) = explain(model, history, &open, &possible, operation) else { return CheckResult::TooHard };
        if next.0.is_empty() {
            return CheckResult::Violation(violation(history, operation, &possible));
        }
        open.remove(&operation);
        possible = next;
    }
    CheckResult::Linearizable
}

/// All possible states after `answered` has taken effect. None if there are too many.
fn explain<M: Model>(
    model: &M,
    history: &[Operation<M::Input, M::Output>],
    open: &BTreeSet<usize>,
    possible: &Possible<M::State>,
    answered: usize,
) -> Option<Possible<M::State>> {
    let unknown = |operation: usize| history[operation].answered.is_none();
    let mut next = Possible(BTreeMap::new());
    let mut seen = Possible(BTreeMap::new());
    let mut todo: Vec<(M::State, Effective)> = Vec::new();
    for (state, effective) in possible.iter() {
        seen.insert(state, effective, unknown);
        todo.push((state.clone(), effective.clone()));
    }
    let mut steps = 0;
    while let Some((state, mut effective)) = todo.pop() {
        steps += 1;
        if steps > STEPS_MAX {
            return None;
        }
        if effective.remove(&answered) {
            next.insert(&state, &effective, unknown);
            continue;
        }
        for &operation in open.difference(&effective) {
            let Operation { input, answered, .. } = &history[operation];
            let output = answered.as_ref().map(|(_, output)| output);
            let Some(after) = model.step(&state, input, output) else { continue };
            let mut effective = effective.clone();
            effective.insert(operation);
            if seen.insert(&after, &effective, unknown) {
                todo.push((after, effective));
            }
        }
    }
    Some(next)
}

/// A call or an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    at: u64,
    /// At equal times calls come before answers. The operations then overlap, which allows more orders.
    answer: bool,
    operation: usize,
}

/// Calls and answers in the order of their times.
fn moments<I, O>(history: &[Operation<I, O>]) -> Vec<Moment> {
    let mut moments = Vec::with_capacity(2 * history.len());
    for (operation, Operation { called, answered, .. }) in history.iter().enumerate() {
        moments.push(Moment { at: *called, answer: false, operation });
        if let Some((at, _)) = answered {
            moments.push(Moment { at: *at.max(called), answer: true, operation });
        }
    }
    moments.sort_unstable();
    moments
}

fn violation<I: fmt::Debug, O: fmt::Debug, S: Clone + Ord + fmt::Debug>(
    history: &[Operation<I, O>],
    operation: usize,
    possible: &Possible<S>,
) -> Violation {
    let words = |(state, effective): (&S, &Effective)| match effective.len() {
        0 => format!("{state:?}"),
        _ => format!("{state:?} after open {effective:?}"),
    };
    Violation {
        operation,
        text: format!("operation {operation}, {:?}", history[operation]),
        before: possible.iter().take(8).map(words).collect(),
    }
}
