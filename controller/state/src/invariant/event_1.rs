//! EVENT-1: no ending and no acknowledgement is beyond the last event, and each ended job has one ending.

use std::collections::BTreeSet;

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    let last = state.event_seq;
    let mut jobs = BTreeSet::new();
    for (event, id) in state.ended.iter() {
        ensure(*event <= last && event.0 > 0, || format!("{id} ended with event {event}, the last is {last}"))?;
        ensure(jobs.insert(*id), || format!("{id} ended twice"))?;
        let terminal = state.jobs.get(*id).is_some_and(|job| job.status.is_terminal());
        ensure(terminal, || format!("event {event} ended {id}, which has not ended"))?;
    }
    let ahead = state.sinks.iter().find(|(_, event)| **event > last);
    ensure(ahead.is_none(), || format!("{ahead:?} was acknowledged, the last event is {last}"))
}
