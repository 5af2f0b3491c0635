//! JOURNAL-3: the inline steps of a job are within their bound.
//!
//! The budget of the cluster is checked when steps are added; a smaller one that is configured later removes nothing.

use atlas_types::JOURNAL_INLINE_BYTES_MAX;

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for (id, journal) in &state.journals {
        let bytes: u64 = journal.steps.iter().map(|step| step.bytes()).sum();
        ensure(bytes <= JOURNAL_INLINE_BYTES_MAX, || format!("the journal of {id} has {bytes} bytes inline"))?;
    }
    Ok(())
}
