//! A replica: applies committed entries to its state and returns outcomes and events.

use std::sync::Arc;

use atlas_state::{Applied, State};
use atlas_types::{Command, Entry, EventRecord, Outcome, Rejection, ReportDigest, Request};

use crate::head::PlannedEntry;

/// Why a replica must stop: continuing would make it differ from the others. A replica never skips an entry.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// The entry is damaged or was written by a newer program.
    #[error("could not read a committed entry")]
    Unreadable {
        /// What is wrong with its bytes.
        source: atlas_format::FormatError,
    },
    /// The entry does not fit this state.
    #[error("could not apply a committed entry")]
    Refused {
        /// What is wrong with its header.
        source: atlas_state::Halt,
    },
    /// The head that planned an entry and this replica disagree about its result.
    #[error("the planned result of entry {seq} differs from applying it")]
    HeadDiffers {
        /// Entries applied before it.
        seq: atlas_types::Seq,
    },
}

/// The result of a committed entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEntry {
    /// True if the entry was planned on another state and changed nothing on any replica.
    pub stale: bool,
    /// One answer for each command of the entry.
    pub outcomes: Vec<Result<Outcome, Rejection>>,
    /// The events of the entry.
    pub events: Arc<[EventRecord]>,
    /// The digests that members report in the entry, to be compared with this member's (B.40).
    pub digests: Vec<ReportDigest>,
}

/// The state of one member after all entries applied so far.
#[derive(Debug, Clone)]
pub struct Replica {
    state: State,
}

impl Replica {
    /// A replica that continues from `state`, which is new or comes from a snapshot.
    pub fn new(state: State) -> Self {
        Self { state }
    }

    /// The state, to read or to clone.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Applies a committed entry.
    pub fn apply(&mut self, entry_bytes: &[u8]) -> Result<AppliedEntry, Halt> {
        self.apply_decoded(&decode(entry_bytes)?, entry_bytes)
    }

    /// Applies a committed entry that was decoded from these bytes.
    pub fn apply_decoded(&mut self, entry: &Entry, entry_bytes: &[u8]) -> Result<AppliedEntry, Halt> {
        match self.state.apply_entry(entry).map_err(|source| Halt::Refused { source })? {
            Applied::Stale => {
                Ok(AppliedEntry { stale: true, outcomes: Vec::new(), events: Arc::new([]), digests: Vec::new() })
            }
            Applied::Done { outcomes, events } => {
                let outcome_bytes = atlas_format::encode_outcomes(&outcomes);
                self.state.set_chain(atlas_format::chain(&entry.parent.chain, entry_bytes, &outcome_bytes));
                let digests = entry.requests.iter().filter_map(digest_of).collect();
                Ok(AppliedEntry { stale: false, outcomes, events: events.into(), digests })
            }
        }
    }

    /// Applies a committed entry that this member planned itself, by adopting the head's result (ADR 1).
    ///
    /// The caller guarantees that the committed bytes are the planned ones. Debug builds also execute the entry and
    /// compare the results.
    pub fn adopt(&mut self, planned: &PlannedEntry) -> Result<AppliedEntry, Halt> {
        let seq = self.state.seq();
        let follows = seq == planned.parent.seq && self.state.chain() == planned.parent.chain;
        if !follows {
            // Another leader's entry came between, so this entry was planned on another state and is stale.
            return self.apply(&planned.entry_bytes);
        }
        let adopted = AppliedEntry {
            stale: false,
            outcomes: planned.entry_outcomes.clone(),
            events: Arc::clone(&planned.events),
            digests: planned.digests.clone(),
        };
        if cfg!(debug_assertions) {
            let executed = self.apply(&planned.entry_bytes)?;
            if executed != adopted || self.state.chain() != planned.state.chain() {
                return Err(Halt::HeadDiffers { seq });
            }
        }
        self.state = planned.state.clone();
        Ok(adopted)
    }
}

/// Decodes a committed entry. This depends on no state, so it can be done ahead, on another thread.
pub fn decode(entry_bytes: &[u8]) -> Result<Entry, Halt> {
    atlas_format::decode_entry(entry_bytes).map_err(|source| Halt::Unreadable { source })
}

/// The digest that a request reports, if it reports one.
pub(crate) fn digest_of(request: &Request) -> Option<ReportDigest> {
    match &request.command {
        Command::ReportDigest(report) => Some(*report),
        _ => None,
    }
}
