//! Expiry is an entry, and no node is declared lost before the full session TTL has passed since the last acknowledged
//! renewal, across changes of leader and jumps of wall clocks.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_types::{Event, NodeHealth, NodeId};

use super::{APART, Invariant};
use crate::Options;
use crate::oracle::Facts;
use crate::seen::Seen;

/// The duration of the simulation steps between two checks.
const STEPS: Duration = Duration::from_millis(16);

pub(crate) struct ASessionLivesItsTime {
    ttl: Duration,
    renewed: BTreeMap<NodeId, Duration>,
}

impl ASessionLivesItsTime {
    pub(crate) fn of(options: &Options) -> Self {
        Self { ttl: options.session_ttl, renewed: BTreeMap::new() }
    }
}

impl Invariant for ASessionLivesItsTime {
    fn name(&self) -> &'static str {
        "B.17 a session lives for its time"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        match seen {
            Seen::Renewed { node, sent } => {
                let newest = self.renewed.entry(node.clone()).or_default();
                *newest = (*newest).max(*sent);
                Ok(())
            }
            // The worker's process was killed, so the next process may take over the node at any time.
            Seen::WorkerDown { node } => {
                self.renewed.remove(node);
                Ok(())
            }
            Seen::Event { event, .. } => {
                let Event::Node { node } = &event.event else { return Ok(()) };
                let renewed = self.renewed.get(&node.id).filter(|_| node.health == NodeHealth::Down);
                let Some(renewed) = renewed else { return Ok(()) };
                facts.coverage.count("sessions expired");
                let least = *renewed + self.ttl - self.ttl / APART;
                if facts.now + STEPS < least {
                    return Err(format!("{} was renewed at {renewed:?} and given up at {:?}", node.id, facts.now));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
