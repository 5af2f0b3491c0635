//! Operations with their answers, and the model of an object.

use std::fmt::Debug;

/// The sequential behaviour of one object.
pub trait Model {
    /// The state of the object.
    type State: Clone + Ord + Debug;
    /// The input of an operation.
    type Input: Debug;
    /// The output of an operation.
    type Output: Debug;

    /// The object before the first operation.
    fn initial(&self) -> Self::State;

    /// The state after `input` was answered with `output` in `state`. None if that answer is impossible. Without an
    /// output the answer is unknown, and any answer is possible.
    fn step(&self, state: &Self::State, input: &Self::Input, output: Option<&Self::Output>) -> Option<Self::State>;
}

/// One operation of a client. All times are of one shared clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation<I, O> {
    /// The client, for reports.
    pub client: u64,
    /// The time of the call.
    pub called: u64,
    /// The input.
    pub input: I,
    /// The time of the answer and the output. None if it is unknown whether the operation took effect.
    pub answered: Option<(u64, O)>,
}

impl<I, O> Operation<I, O> {
    /// An operation with its answer.
    pub fn answered(client: u64, called: u64, input: I, at: u64, output: O) -> Self {
        Self { client, called, input, answered: Some((at, output)) }
    }

    /// An operation with an unknown outcome.
    pub fn unknown(client: u64, called: u64, input: I) -> Self {
        Self { client, called, input, answered: None }
    }
}

/// The operations on one object, in any order. Operations that certainly had no effect are left out.
pub type History<M> = Vec<Operation<<M as Model>::Input, <M as Model>::Output>>;
