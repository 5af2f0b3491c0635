//! Apply is total and deterministic: the entries of the run, read from a disk and applied again, give byte for byte the
//! same states as on the members.

use std::collections::BTreeMap;

use atlas_replica::Replica;
use atlas_state::State;
use atlas_types::Seq;
use bytes::Bytes;

use super::{Invariant, image};
use crate::cluster::CLUSTER_ID;
use crate::oracle::Facts;
use crate::seen::Seen;

/// The whole state is compared after this many entries.
const EVERY: u64 = 4;

#[derive(Default)]
pub(crate) struct ApplyingAgainIsTheSame {
    states: BTreeMap<Seq, State>,
    /// For each index, the number of the state after that entry.
    led_to: BTreeMap<u64, Seq>,
}

impl ApplyingAgainIsTheSame {
    /// Applies the entries from the first one with a known previous state. Returns their number.
    fn replay(&self, entries: &[(u64, Bytes)]) -> Result<u64, String> {
        let before = |index: &u64| match self.led_to.get(index)? {
            Seq(1) => Some(State::new(CLUSTER_ID)),
            seq => self.states.get(&Seq(seq.0 - 1)).cloned(),
        };
        let Some((first, state)) = entries.iter().find_map(|(index, _)| Some((*index, before(index)?))) else {
            return Ok(0);
        };
        let mut replica = Replica::new(state);
        let mut replayed = 0;
        for (index, body) in entries.iter().filter(|(index, _)| *index >= first) {
            // The last byte is the kind of the body. Blank and membership entries do not belong to the state.
            let Some((_, bytes)) = body.split_last() else { continue };
            if atlas_format::decode_entry(bytes).is_err() {
                continue;
            }
            replica.apply(bytes).map_err(|halt| format!("the entry at {index} is not applied again: {halt}"))?;
            self.compare(replica.state())?;
            replayed += 1;
        }
        Ok(replayed)
    }

    fn compare(&self, state: &State) -> Result<(), String> {
        let Some(known) = self.states.get(&state.seq()) else { return Ok(()) };
        let same =
            known.chain() == state.chain() && (!state.seq().0.is_multiple_of(EVERY) || image(known)? == image(state)?);
        if same { Ok(()) } else { Err(format!("applied again, the state differs after entry {}", state.seq())) }
    }
}

impl Invariant for ApplyingAgainIsTheSame {
    fn name(&self) -> &'static str {
        "B.41 applying again is the same"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        match seen {
            Seen::Applied { batch, .. } => {
                self.states.entry(batch.seq).or_insert_with(|| batch.state.clone());
                // A batch without events is a snapshot, or an entry that only raised the level.
                if !batch.events.is_empty() {
                    self.led_to.insert(batch.index, batch.seq);
                }
                Ok(())
            }
            Seen::Logged { entries, .. } => {
                facts.coverage.add("entries applied again", self.replay(entries)?);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use atlas_replica::Head;
    use atlas_sim::workload;
    use atlas_types::{ClusterTime, Timestamp};

    use super::*;

    #[test]
    fn a_state_that_is_another_is_found() {
        let mut head = Head::new(State::new(CLUSTER_ID));
        let mut seen = ApplyingAgainIsTheSame::default();
        let mut log = Vec::new();
        for (number, request) in (1_u64..).zip(workload::setup(4)) {
            let planned = head.plan(vec![request], Timestamp(1), ClusterTime(0), &mut |_, _| Vec::new());
            if planned.is_empty() {
                continue; // of a later level than a new state's
            }
            log.push((number, Bytes::from([&planned.entry_bytes[..], &[0]].concat())));
            seen.led_to.insert(number, planned.state.seq());
            seen.states.insert(planned.state.seq(), planned.state.clone());
        }
        assert!(log.len() > 4, "{log:?}");
        assert_eq!(seen.replay(&log), Ok(log.len() as u64));

        let last = head.state().seq();
        let earlier = seen.states[&Seq(last.0 - 1)].clone();
        seen.states.insert(last, earlier);
        let found = seen.replay(&log).expect_err("the last state is not the one that the entries lead to");
        assert_eq!(found, format!("applied again, the state differs after entry {last}"));
    }
}
