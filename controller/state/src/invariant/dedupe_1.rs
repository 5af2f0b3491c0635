//! DEDUPE-1: remembered requests are the same by name and by age, and at most as many as allowed.

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    ensure(state.dedupe.is_consistent(), || format!("the two orders differ: {:?}", state.dedupe))?;
    ensure(state.dedupe.is_bounded(&state.config, state.level), || {
        format!("{} requests are remembered, {} of clients may be", state.dedupe.len(), state.config.dedupe_max)
    })
}
