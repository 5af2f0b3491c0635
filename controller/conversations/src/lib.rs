//! Conversations: the turns of one run one after the other, and each sees what was said before.

mod turns;

use std::sync::Arc;

use atlas_desk::{Desk, Turns};
use atlas_jobs::Jobs;
use atlas_records::Records;
use atlas_registry::Registry;

pub use turns::{
    BegunTurn, ClaimedTurn, ConversationScope, Mapping, Message, Role, Turn, expire, may_control, reply_of,
};

/// The conversations of a cluster, as a controller continues them. Cheap to clone.
#[derive(Clone)]
pub struct Conversations {
    desk: Arc<Desk>,
    jobs: Arc<Jobs>,
    records: Arc<Records>,
    registry: Arc<Registry>,
    /// The conversations that are being continued here.
    places: Arc<Turns>,
}

impl Conversations {
    /// The conversations of a controller that has just started: it continues none yet.
    pub fn new(desk: Arc<Desk>, jobs: Arc<Jobs>, records: Arc<Records>, registry: Arc<Registry>) -> Self {
        Self { desk, jobs, records, registry, places: Arc::default() }
    }
}
