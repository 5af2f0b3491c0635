//! A failed sync is fatal: the member accepts nothing more and reports that it stops.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Invariant, had_no_room_at_once};
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct AFailedSyncIsTheEnd {
    /// The time of the failed sync.
    failed: BTreeMap<usize, Duration>,
    /// Members that must not start.
    damaged: BTreeSet<usize>,
}

impl Invariant for AFailedSyncIsTheEnd {
    fn name(&self) -> &'static str {
        "B.36 a failed sync is the end"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        match seen {
            Seen::SyncFailed { member } => {
                self.failed.insert(*member, facts.now);
                Ok(())
            }
            Seen::Up { member, .. } | Seen::Down { member } => {
                self.failed.remove(member);
                Ok(())
            }
            Seen::Stopped { member, reason } => {
                if self.failed.contains_key(member) {
                    facts.coverage.count("members stopped by a failed sync");
                    return Ok(());
                }
                if had_no_room_at_once(reason) {
                    return Ok(());
                }
                Err(format!("c{} stopped without a cause: {reason}", member + 1))
            }
            Seen::Damaged { member } => {
                self.damaged.insert(*member);
                Ok(())
            }
            Seen::Replaced { member } => {
                self.damaged.remove(member);
                Ok(())
            }
            Seen::NoStart { member, error } if self.damaged.contains(member) || had_no_room_at_once(error) => Ok(()),
            Seen::NoStart { member, error } => Err(format!("c{} does not start: {error}", member + 1)),
            // The member may have become leader earlier in the same step.
            Seen::Leads { member, term } if self.failed.get(member).is_some_and(|since| *since < facts.now) => {
                Err(format!("c{} came to lead term {term} with a log that had failed", member + 1))
            }
            _ => Ok(()),
        }
    }
}
