//! Replicas agree: after the same entries every member has the same chain, whenever and however often it applies them.

use atlas_types::Seq;

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

pub(crate) struct ReplicasAgree;

impl Invariant for ReplicasAgree {
    fn name(&self) -> &'static str {
        "B.40 replicas agree"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        let (member, state, index) = match seen {
            // A snapshot has no events, and its index may be larger than that of its last entry.
            Seen::Applied { member, batch } if batch.events.is_empty() => (member, &batch.state, 0),
            Seen::Applied { member, batch } => (member, &batch.state, batch.index),
            Seen::Up { member, state } => (member, state, 0),
            _ => return Ok(()),
        };
        if state.seq() == Seq(0) {
            return Ok(());
        }
        let Some(&(chain, at)) = facts.marks.get(&state.seq()) else { return Ok(()) };
        if chain != state.chain() {
            return Err(format!("c{} differs after entry {}", member + 1, state.seq()));
        }
        if index > 0 && at > 0 && index != at {
            return Err(format!("c{} has entry {} at index {index}, others at {at}", member + 1, state.seq()));
        }
        Ok(())
    }
}
