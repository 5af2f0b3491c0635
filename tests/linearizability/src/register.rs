//! A register: it can be written, read, and changed if it has the expected value.

use std::fmt::Debug;
use std::marker::PhantomData;

use crate::history::Model;

/// A register that is empty at first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Register<V>(PhantomData<V>);

impl<V> Register<V> {
    /// An empty register.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

/// The operation on a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegisterInput<V> {
    /// Read the value.
    Read,
    /// Write this value.
    Write(V),
    /// Write the second value if the register holds the first.
    Exchange(Option<V>, V),
}

/// The answer of a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegisterOutput<V> {
    /// The value.
    Value(Option<V>),
    /// The value was written.
    Written,
    /// Whether the value was changed.
    Exchanged(bool),
}

impl<V: Clone + Ord + Debug> Model for Register<V> {
    type State = Option<V>;
    type Input = RegisterInput<V>;
    type Output = RegisterOutput<V>;

    fn initial(&self) -> Option<V> {
        None
    }

    fn step(
        &self,
        state: &Option<V>,
        input: &RegisterInput<V>,
        output: Option<&RegisterOutput<V>>,
    ) -> Option<Option<V>> {
        let (answer, after) = match input {
            RegisterInput::Read => (RegisterOutput::Value(state.clone()), state.clone()),
            RegisterInput::Write(value) => (RegisterOutput::Written, Some(value.clone())),
            RegisterInput::Exchange(expected, value) => {
                let holds = state == expected;
                (RegisterOutput::Exchanged(holds), if holds { Some(value.clone()) } else { state.clone() })
            }
        };
        output.is_none_or(|output| *output == answer).then_some(after)
    }
}

#[cfg(test)]
mod tests {
    use super::RegisterInput::{Exchange, Read, Write};
    use super::RegisterOutput::{Exchanged, Value, Written};
    use super::*;
    use crate::{CheckResult, Operation, check};

    type Op = Operation<RegisterInput<u8>, RegisterOutput<u8>>;

    fn op(client: u64, called: u64, input: RegisterInput<u8>, at: u64, output: RegisterOutput<u8>) -> Op {
        Op::answered(client, called, input, at, output)
    }

    fn verdict(history: &[Op]) -> CheckResult {
        check(&Register::new(), history)
    }

    fn holds(history: &[Op]) {
        assert_eq!(verdict(history), CheckResult::Linearizable);
    }

    /// The index of the operation with the impossible answer.
    fn breaks(history: &[Op]) -> usize {
        verdict(history).violation().expect("a planted violation is found").operation
    }

    #[test]
    fn reads_in_a_row_see_the_last_write() {
        holds(&[
            op(1, 0, Write(1), 1, Written),
            op(1, 2, Read, 3, Value(Some(1))),
            op(2, 4, Write(2), 5, Written),
            op(1, 6, Read, 7, Value(Some(2))),
        ]);
    }

    #[test]
    fn a_stale_read_is_found() {
        let history = [
            op(1, 0, Write(1), 1, Written),
            op(1, 2, Write(2), 3, Written),
            op(2, 4, Read, 5, Value(Some(1))),
            op(2, 6, Read, 7, Value(Some(2))),
        ];
        assert_eq!(breaks(&history), 2);
    }

    #[test]
    fn a_lost_write_is_found() {
        assert_eq!(breaks(&[op(1, 0, Write(1), 1, Written), op(2, 2, Read, 3, Value(None))]), 1);
    }

    #[test]
    fn a_value_that_nobody_wrote_is_found() {
        assert_eq!(breaks(&[op(1, 0, Write(1), 9, Written), op(2, 2, Read, 3, Value(Some(7)))]), 1);
    }

    #[test]
    fn overlapping_operations_take_effect_in_any_order() {
        holds(&[
            op(1, 0, Write(1), 10, Written),
            op(2, 0, Write(2), 10, Written),
            op(3, 1, Read, 2, Value(Some(2))),
            op(3, 3, Read, 4, Value(Some(1))),
        ]);
        // But all clients must see the same order.
        let history = [
            op(1, 0, Write(1), 10, Written),
            op(2, 0, Write(2), 10, Written),
            op(3, 1, Read, 2, Value(Some(2))),
            op(3, 3, Read, 4, Value(Some(1))),
            op(4, 5, Read, 6, Value(Some(2))),
        ];
        assert_eq!(breaks(&history), 4);
    }

    #[test]
    fn an_unknown_write_takes_effect_late_or_never() {
        let unknown = Op::unknown(1, 0, Write(1));
        holds(&[unknown.clone(), op(2, 5, Read, 6, Value(None)), op(2, 7, Read, 8, Value(None))]);
        holds(&[unknown.clone(), op(2, 5, Read, 6, Value(None)), op(2, 70, Read, 80, Value(Some(1)))]);
        // The write takes effect at most once, and not before its call.
        let twice = [
            unknown,
            op(2, 5, Read, 6, Value(Some(1))),
            op(2, 7, Write(2), 8, Written),
            op(2, 9, Read, 10, Value(Some(1))),
        ];
        assert_eq!(breaks(&twice), 3);
        assert_eq!(breaks(&[Op::unknown(1, 10, Write(1)), op(2, 5, Read, 6, Value(Some(1)))]), 1);
    }

    #[test]
    fn two_winners_of_one_exchange_are_found() {
        let won = |client| op(client, 0, Exchange(None, 1), 10, Exchanged(true));
        let lost = op(2, 0, Exchange(None, 1), 10, Exchanged(false));
        holds(&[won(1), lost]);
        assert_eq!(breaks(&[won(1), won(2)]), 1);
    }

    #[test]
    fn a_long_history_with_many_open_operations_is_still_checked() {
        let mut history = Vec::new();
        for round in 0_u64..500 {
            let value = (round % 250) as u8;
            let at = 10 * round;
            history.push(op(1, at, Write(value), at + 4, Written));
            history.push(op(2, at + 1, Read, at + 9, Value(Some(value))));
            if round % 50 == 7 {
                let other = 251 + (round / 50 % 4) as u8;
                history.push(Op::unknown(3, at, Write(other)));
            }
        }
        holds(&history);
        history.push(op(4, 6_000, Read, 6_001, Value(Some(7))));
        assert!(verdict(&history).violation().is_some());
    }
}
