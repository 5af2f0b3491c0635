//! Synced before it counts: everything that a member has applied is synced on the disks of a majority.

use super::Invariant;
use crate::Options;
use crate::oracle::Facts;
use crate::seen::Seen;

pub(crate) struct OnAMajorityOfDisks {
    quorum: usize,
}

impl OnAMajorityOfDisks {
    pub(crate) fn of(options: &Options) -> Self {
        Self { quorum: options.members / 2 + 1 }
    }
}

impl Invariant for OnAMajorityOfDisks {
    fn name(&self) -> &'static str {
        "B.35 synced before it counts"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        let Seen::OnDisks { index, disks } = seen else { return Ok(()) };
        facts.coverage.count("looks at disks");
        if *disks >= self.quorum {
            Ok(())
        } else {
            Err(format!("the entry at {index} is applied, and on {disks} disks of the {} that it takes", self.quorum))
        }
    }
}
