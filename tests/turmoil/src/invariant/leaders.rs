//! One leader per term: the basis of everything else.

use std::collections::BTreeMap;

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct OneLeaderATerm {
    leaders: BTreeMap<u64, usize>,
}

impl Invariant for OneLeaderATerm {
    fn name(&self) -> &'static str {
        "one leader a term"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        let Seen::Leads { member, term } = seen else { return Ok(()) };
        facts.coverage.count("leaders");
        let first = *self.leaders.entry(*term).or_insert(*member);
        if first == *member { Ok(()) } else { Err(format!("c{} and c{} lead term {term}", first + 1, member + 1)) }
    }
}
