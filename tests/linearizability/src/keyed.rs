//! Histories of many keys, each checked on its own.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::check::{CheckResult, check};
use crate::history::{History, Model, Operation};

/// Operations grouped by key.
pub struct Keyed<K, M: Model>(BTreeMap<K, History<M>>);

impl<K: Ord, M: Model> Default for Keyed<K, M> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, M: Model> Keyed<K, M> {
    /// Adds an operation on a key.
    pub fn push(&mut self, key: K, operation: Operation<M::Input, M::Output>) {
        self.0.entry(key).or_default().push(operation);
    }

    /// The number of operations.
    pub fn operations(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// The keys with their operations.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &History<M>)> {
        self.0.iter()
    }
}

/// Checks every key. The error describes the first key that is not linearizable. Otherwise returns how many keys were
/// too hard to check.
pub fn check_keys<K: Ord + Debug, M: Model>(model: &M, keyed: &Keyed<K, M>) -> Result<usize, String> {
    let mut too_hard = 0;
    for (key, history) in keyed.iter() {
        match check(model, history) {
            CheckResult::Linearizable => {}
            CheckResult::TooHard => too_hard += 1,
            CheckResult::Violation(violation) => return Err(format!("{key:?} is not linearizable: {violation}")),
        }
    }
    Ok(too_hard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Register, RegisterInput, RegisterOutput};

    #[test]
    fn one_bad_key_among_good_ones_is_named() {
        let mut keyed = Keyed::<_, Register<u8>>::default();
        for key in ["a", "b", "c"] {
            keyed.push(key, Operation::answered(1, 0, RegisterInput::Write(1), 1, RegisterOutput::Written));
            let read = if key == "b" { None } else { Some(1) };
            keyed.push(key, Operation::answered(2, 2, RegisterInput::Read, 3, RegisterOutput::Value(read)));
        }
        let error = check_keys(&Register::new(), &keyed).expect_err("found");
        assert!(error.starts_with("\"b\" is not linearizable: nothing explains operation 1"), "{error}");
        assert_eq!(keyed.operations(), 6);
    }
}
