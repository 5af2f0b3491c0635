//! A draining node gets no new lease.

use std::collections::BTreeSet;

use atlas_types::{Event, JobChange, NodeId};

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct NothingForTheDrained {
    draining: BTreeSet<NodeId>,
    unseen: u64,
}

impl Invariant for NothingForTheDrained {
    fn name(&self) -> &'static str {
        "B.22 nothing for the drained"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        let Seen::Event { event, .. } = seen else { return Ok(()) };
        // An entry that nobody saw may have ended a drain.
        let unseen = facts.coverage.of("entries nobody saw");
        if std::mem::replace(&mut self.unseen, unseen) != unseen {
            self.draining.clear();
        }
        match &event.event {
            Event::Node { node } if node.draining => {
                facts.coverage.count("drains");
                self.draining.insert(node.id.clone());
                Ok(())
            }
            Event::Node { node } => {
                self.draining.remove(&node.id);
                Ok(())
            }
            Event::Job { change: JobChange::Granted, job, .. } => {
                let drained = job.lease.as_ref().filter(|lease| self.draining.contains(&lease.node));
                drained.map_or(Ok(()), |lease| Err(format!("{} was granted to {}, which drains", job.id, lease.node)))
            }
            _ => Ok(()),
        }
    }
}
