//! Events for readers: the latest in memory (`event_log`), older ones from the history, without a gap between the two (`reader`); their JSON form
//! (`shown`); and what is told to receivers outside the cluster (`outside`).

mod event_log;
mod outside;
mod reader;
mod shown;

use std::sync::Arc;

use atlas_desk::Desk;
use atlas_records::Records;

pub use event_log::EventLog;
pub use reader::{Change, Follow, JobStream, Next, Reader};
pub use shown::{EventFilter, EventKind, EventLabel};

/// The events of a cluster, as a controller tells them. Cheap to clone.
#[derive(Clone)]
pub struct Events {
    desk: Arc<Desk>,
    records: Arc<Records>,
    log: Arc<EventLog>,
}

impl Events {
    /// Those after what the controller has applied, and as many of the latest in memory as its limits say.
    pub fn new(desk: Arc<Desk>, records: Arc<Records>) -> Self {
        let log = EventLog::new(desk.handle.applied().event_seq(), desk.limits.events_recent_max);
        Self { desk, records, log: Arc::new(log) }
    }

    /// The latest events.
    pub fn log(&self) -> &EventLog {
        &self.log
    }
}
