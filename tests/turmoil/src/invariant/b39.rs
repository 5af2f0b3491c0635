//! A snapshot equals the log: a member with a snapshot and the later entries has byte for byte the same state as one
//! that replayed all entries.

use std::collections::BTreeMap;

use atlas_state::State;
use atlas_types::Seq;

use super::{Invariant, image};
use crate::oracle::Facts;
use crate::seen::Seen;

/// The whole state is compared after this many entries, and whenever a member has restarted.
const EVERY: u64 = 8;

#[derive(Default)]
pub(crate) struct SnapshotIsTheLog {
    images: BTreeMap<Seq, Vec<u8>>,
}

impl SnapshotIsTheLog {
    fn compare(&mut self, member: usize, state: &State) -> Result<(), String> {
        let image = image(state)?;
        let first = self.images.entry(state.seq()).or_insert_with(|| image.clone());
        if *first == image { Ok(()) } else { Err(format!("c{} has another state at {}", member + 1, state.seq())) }
    }
}

impl Invariant for SnapshotIsTheLog {
    fn name(&self) -> &'static str {
        "B.39 a snapshot is the log"
    }

    fn see(&mut self, seen: &Seen, _facts: &mut Facts) -> Result<(), String> {
        match seen {
            Seen::Applied { member, batch } if batch.seq.0.is_multiple_of(EVERY) => self.compare(*member, &batch.state),
            Seen::Up { member, state } if state.seq() > Seq(0) => self.compare(*member, state),
            _ => Ok(()),
        }
    }
}
