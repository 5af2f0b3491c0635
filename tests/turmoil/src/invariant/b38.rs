//! On a full disk the member refuses requests that need space, stays up, and continues by itself once there is space.

use std::collections::BTreeSet;

use super::{Invariant, had_no_room_at_once};
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct AFullDiskIsNoEnd {
    full: BTreeSet<usize>,
    failed: BTreeSet<usize>,
}

impl Invariant for AFullDiskIsNoEnd {
    fn name(&self) -> &'static str {
        "B.38 a full disk is no end"
    }

    fn see(&mut self, seen: &Seen, _facts: &mut Facts) -> Result<(), String> {
        match seen {
            Seen::DiskFull { member } => {
                self.full.insert(*member);
            }
            Seen::DiskRoom { member } => {
                self.full.remove(member);
            }
            Seen::SyncFailed { member } => {
                self.failed.insert(*member);
            }
            Seen::Down { member } => {
                self.failed.remove(member);
            }
            Seen::Stopped { member, reason }
                if self.full.contains(member) && !self.failed.contains(member) && !had_no_room_at_once(reason) =>
            {
                return Err(format!("c{} stopped because its disk is full: {reason}", member + 1));
            }
            _ => {}
        }
        Ok(())
    }
}
