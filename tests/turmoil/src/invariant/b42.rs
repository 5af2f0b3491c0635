//! Voters: after replacements, every member knows the same voters, and no removed number is among them.

use std::collections::BTreeSet;

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct TheRightOnesVote;

impl Invariant for TheRightOnesVote {
    fn name(&self) -> &'static str {
        "B.42 the right ones vote"
    }

    fn see(&mut self, seen: &Seen, _facts: &mut Facts) -> Result<(), String> {
        let Seen::Voters { member, voters, right } = seen else { return Ok(()) };
        let known: BTreeSet<_> = voters.iter().collect();
        if known == right.iter().collect() {
            return Ok(());
        }
        Err(format!("c{} knows {voters:?} for voters where {right:?} are", member + 1))
    }
}
