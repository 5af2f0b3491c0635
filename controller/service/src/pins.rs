//! Pinned agents: those that the MCP server of the platform offers as tools of their own.

use std::sync::Arc;

use atlas_objects::PinSpec;
use atlas_raft::AppliedBatch;
use atlas_types::{Event, ObjectKind};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::{Caller, Consistency, Error, Service, ShownAgent};

/// The most pinned agents that are offered: each costs every client its schema.
const PINS_MAX: usize = 256;

/// A pinned agent.
#[derive(Debug, Clone)]
pub struct Pinned {
    pub agent: ShownAgent,
    /// The version requirement of the pin.
    pub version: Option<String>,
}

/// Says when pinned agents may have changed.
pub struct PinChanges(Receiver<Arc<AppliedBatch>>);

impl PinChanges {
    /// Waits for the next entry that may change what is pinned. False once the controller stops.
    pub async fn next(&mut self) -> bool {
        loop {
            match self.0.recv().await {
                Ok(batch) if batch.events.iter().any(|record| concerns_pins(&record.event)) => return true,
                Ok(_) => {}
                // Nobody knows what was missed.
                Err(RecvError::Lagged(_)) => return true,
                Err(RecvError::Closed) => return false,
            }
        }
    }
}

fn concerns_pins(event: &Event) -> bool {
    match event {
        Event::ObjectPut { object } | Event::ObjectDeleted { object } => object.key.kind.as_str() == "pin",
        Event::Agent { .. } | Event::AgentDeleted { .. } => true,
        _ => false,
    }
}

impl Service {
    /// Changes of pins from now on.
    pub fn pin_changes(&self) -> PinChanges {
        PinChanges(self.shared.handle.subscribe())
    }

    /// The pinned agents of a namespace that are registered, by name.
    pub async fn pinned_agents(&self, caller: &Caller) -> Result<Vec<Pinned>, Error> {
        let state = self.state(Consistency::Linearizable).await?;
        let pins: Vec<_> = state
            .objects(&caller.namespace, &ObjectKind::new("pin")?, None)
            .take(PINS_MAX)
            .filter_map(|object| Some((object.key.name.to_string(), PinSpec::read(&object.spec).ok()?.version)))
            .collect();
        let mut pinned = Vec::with_capacity(pins.len());
        for (name, version) in pins {
            match self.agent(caller, &name, version.as_deref(), Consistency::Stale).await {
                Ok(agent) => pinned.push(Pinned { agent, version }),
                // A pin may be older than its agent, or outlive it.
                Err(Error::UnknownAgent { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(pinned)
    }
}
