//! Streams have no gaps: a member sends its subscribers every entry and every event in order, equal to those of every
//! other member, across restarts and changes of leader. Only a snapshot may replace the entries that it covers.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_raft::AppliedBatch;
use atlas_types::{EventSeq, Seq};

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct StreamsHaveNoGaps {
    /// The last entry that a member reported, and its last event if known.
    last: BTreeMap<usize, (Seq, Option<EventSeq>)>,
    first: BTreeMap<Seq, Arc<AppliedBatch>>,
}

impl Invariant for StreamsHaveNoGaps {
    fn name(&self) -> &'static str {
        "B.32 streams have no gaps"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        let (member, batch) = match seen {
            Seen::Applied { member, batch } => (*member, batch),
            Seen::Up { member, state } => {
                self.last.insert(*member, (state.seq(), None));
                return Ok(());
            }
            _ => return Ok(()),
        };
        let (before, event) = self.last.get(&member).copied().unwrap_or_default();
        let last = batch.events.last().map(|event| event.seq);
        self.last.insert(member, (batch.seq, last));
        let (Some(first), who) = (batch.events.first(), format!("c{}", member + 1)) else {
            if batch.seq.0 > before.0 + 1 {
                facts.coverage.count("snapshots installed");
            }
            return if batch.seq >= before { Ok(()) } else { Err(format!("c{} went from {before} back", member + 1)) };
        };
        if batch.seq.0 != before.0 + 1 {
            return Err(format!("{who} told of entry {} after {before}", batch.seq));
        }
        let expected = event.map_or(first.seq.0, |event| event.0 + 1);
        for (expected, event) in (expected..).zip(batch.events.iter()) {
            if event.seq.0 != expected {
                return Err(format!("{who} told of event {} where {expected} is next", event.seq));
            }
        }
        let told = self.first.entry(batch.seq).or_insert_with(|| Arc::clone(batch));
        if told.events == batch.events {
            Ok(())
        } else {
            Err(format!("{who} tells other events of entry {}", batch.seq))
        }
    }
}
