//! No oversubscription, one live lease per job (B.15), gapless events, correct counters and indexes: checks the state's
//! own invariants on the newest state after every few entries.

use super::Invariant;
use crate::Options;
use crate::oracle::Facts;
use crate::seen::Seen;

pub(crate) struct NothingIsOversubscribed {
    every: u64,
    event: u64,
}

impl NothingIsOversubscribed {
    pub(crate) fn of(options: &Options) -> Self {
        Self { every: options.check_every, event: 0 }
    }
}

impl Invariant for NothingIsOversubscribed {
    fn name(&self) -> &'static str {
        "B.20 the state's own invariants"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        match seen {
            Seen::Missed { state } => {
                self.event = state.event_seq().0;
                Ok(())
            }
            Seen::Event { event, .. } => {
                let before = std::mem::replace(&mut self.event, event.seq.0);
                if event.seq.0 != before + 1 { Err(format!("event {} follows {before}", event.seq)) } else { Ok(()) }
            }
            Seen::Applied { batch, .. } if batch.seq.0.is_multiple_of(self.every) => {
                facts.coverage.count("invariant checks");
                batch.state.check_invariants().map_err(|violation| format!("{violation:?}"))
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, facts: &mut Facts) -> Result<(), String> {
        facts.newest.check_invariants().map_err(|violation| format!("{violation:?}"))
    }
}
