//! A lost answer loses no slot: a reconnecting worker gets exactly the leases that the state has for its process,
//! including a lease whose grant was lost, and no second one instead of it.

use std::collections::BTreeMap;

use atlas_state::State;
use atlas_types::Seq;

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct ALostGrantComesAgain {
    states: BTreeMap<Seq, State>,
}

impl Invariant for ALostGrantComesAgain {
    fn name(&self) -> &'static str {
        "B.21 a lost grant comes again"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        match seen {
            Seen::Applied { batch, .. } => {
                self.states.entry(batch.seq).or_insert_with(|| batch.state.clone());
                Ok(())
            }
            Seen::Welcomed { node, epoch, seq, leases } => {
                // The state is not recorded here if the member applied it unobserved.
                let Some(state) = self.states.get(seq) else { return Ok(()) };
                let held = state.leases_of(node).filter(|lease| lease.epoch == *epoch).map(|lease| lease.token);
                let (mut held, mut told): (Vec<_>, _) = (held.collect(), leases.clone());
                held.sort();
                told.sort();
                facts.coverage.add("leases told again", told.len() as u64);
                if held == told {
                    Ok(())
                } else {
                    Err(format!("{node} was told of {told:?} when it said hello, and holds {held:?} after {seq}"))
                }
            }
            _ => Ok(()),
        }
    }
}
