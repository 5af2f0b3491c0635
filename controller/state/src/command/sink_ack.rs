//! A member's history has everything up to an event. No event of its own: that would need an acknowledgement again.

use atlas_types::{Outcome, Rejection, SinkAck};

use super::check_limit;
use crate::change::Change;

/// Most members whose acknowledgements are kept: far more than a group has, and a bound.
const MEMBERS_MAX: u64 = 64;

pub(super) fn apply(command: &SinkAck, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let state = &mut *change.state;
    if command.event_seq > state.event_seq {
        return Err(Rejection::NotConfirmed);
    }
    let known = state.sinks.get(&command.member).copied();
    if known.is_none() {
        check_limit("members with a history", state.sinks.len() as u64, MEMBERS_MAX)?;
    }
    if known.is_none_or(|known| command.event_seq > known) {
        state.sinks.insert(command.member, command.event_seq);
    }
    Ok(Outcome::Done)
}
