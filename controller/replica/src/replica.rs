//! A replica: committed entries in, state, outcomes and events out.

use std::sync::Arc;

use atlas_state::{Applied, State};
use atlas_types::{Command, EventRecord, Outcome, Rejection, ReportDigest, Request};

use crate::head::Planned;

/// Why a replica must stop: going on would make it differ from the others. It never skips an entry.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// The entry is damaged, or of a newer program.
    #[error("could not read a committed entry")]
    Unreadable {
        /// What is wrong with its bytes.
        source: atlas_format::FormatError,
    },
    /// The entry does not belong on this state.
    #[error("could not apply a committed entry")]
    Refused {
        /// What is wrong with its header.
        source: atlas_state::Halt,
    },
    /// The head that planned an entry and this replica do not agree on what it does.
    #[error("the planned result of entry {seq} differs from applying it")]
    HeadDiffers {
        /// Entries applied before it.
        seq: atlas_types::Seq,
    },
}

/// What a committed entry did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEntry {
    /// True if it was planned on another state and changed nothing, here and everywhere.
    pub stale: bool,
    /// One answer for each command of the entry.
    pub outcomes: Vec<Result<Outcome, Rejection>>,
    /// What happened.
    pub events: Arc<[EventRecord]>,
    /// What members said of their states, to be compared with this one's (B.40).
    pub digests: Vec<ReportDigest>,
}

/// The state of one member, as far as its log is applied.
#[derive(Debug, Clone)]
pub struct Replica {
    state: State,
}

impl Replica {
    /// A replica that goes on from `state`: a new one, or a snapshot's.
    pub fn new(state: State) -> Self {
        Self { state }
    }

    /// The state, to read or to clone.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Applies a committed entry.
    pub fn apply(&mut self, entry_bytes: &[u8]) -> Result<AppliedEntry, Halt> {
        let entry = atlas_format::decode_entry(entry_bytes).map_err(|source| Halt::Unreadable { source })?;
        match self.state.apply_entry(&entry).map_err(|source| Halt::Refused { source })? {
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

    /// Applies a committed entry that this member planned itself, by taking over the head's work (ADR 1).
    ///
    /// The caller knows that the committed bytes are the planned ones. Debug builds execute the entry as well and compare.
    pub fn adopt(&mut self, planned: &Planned) -> Result<AppliedEntry, Halt> {
        let seq = self.state.seq();
        let follows = seq == planned.parent.seq && self.state.chain() == planned.parent.chain;
        if !follows {
            // Another leader's entry came between: what was planned on another state is stale.
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

/// What a request says of a member's state, if it does.
pub(crate) fn digest_of(request: &Request) -> Option<ReportDigest> {
    match &request.command {
        Command::ReportDigest(report) => Some(*report),
        _ => None,
    }
}
