//! Operations with their answers, and the model of an object.

use std::fmt::Debug;

/// What one object does with operations, in a sequence.
pub trait Model {
    /// What there is to know of the object.
    type State: Clone + Ord + Debug;
    /// What it is asked.
    type Input: Debug;
    /// What it answers.
    type Output: Debug;

    /// The object before the first operation.
    fn initial(&self) -> Self::State;

    /// The object after `input` was answered with `output` in `state`; none if it would not answer so. Without an output the answer is
    /// not known, and any will do.
    fn step(&self, state: &Self::State, input: &Self::Input, output: Option<&Self::Output>) -> Option<Self::State>;
}

/// One operation of a client. Times are of one clock that all clients share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation<I, O> {
    /// Who asked, for reports.
    pub client: u64,
    /// When it was asked.
    pub called: u64,
    /// What was asked.
    pub input: I,
    /// When it was answered, and what; none if it is unknown whether it took effect.
    pub answered: Option<(u64, O)>,
}

impl<I, O> Operation<I, O> {
    /// An operation with its answer.
    pub fn answered(client: u64, called: u64, input: I, at: u64, output: O) -> Self {
        Self { client, called, input, answered: Some((at, output)) }
    }

    /// An operation whose outcome nobody knows.
    pub fn unknown(client: u64, called: u64, input: I) -> Self {
        Self { client, called, input, answered: None }
    }
}

/// The operations on one object, in any order. Those that certainly had no effect are left out.
pub type History<M> = Vec<Operation<<M as Model>::Input, <M as Model>::Output>>;
