//! A draining node gets no new lease.

use std::collections::BTreeSet;

use atlas_types::{Event, JobChange, NodeId};

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct NothingForTheDrained {
    draining: BTreeSet<NodeId>,
}

impl Invariant for NothingForTheDrained {
    fn name(&self) -> &'static str {
        "B.22 nothing for the drained"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        if let Seen::Missed { state } = seen {
            let draining = state.nodes().map(|node| &node.node).filter(|node| node.draining);
            self.draining = draining.map(|node| node.id.clone()).collect();
        }
        let Seen::Event { event, .. } = seen else { return Ok(()) };
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
