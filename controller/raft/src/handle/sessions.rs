//! Sessions of workers, which the leader keeps.

use atlas_types::{NodeEpoch, NodeId};

use super::Handle;
use crate::error::ReadError;
use crate::local::Input;

impl Handle {
    /// A worker said hello and its epoch is applied: its session lives from now. Only the leader keeps sessions.
    ///
    /// Before this is answered the worker must not be welcomed: a session whose loss is on its way into the log lives no more, though
    /// the applied state shows the node with all its leases.
    pub async fn session_hello(&self, node: NodeId, epoch: NodeEpoch) -> Result<(), ReadError> {
        self.forward.local.ask_urgently(|answer| Input::Hello { node, epoch, answer }).await
    }

    /// A worker renews its session. Answers with the number that may be acknowledged, after a quorum has confirmed, in a round
    /// that began after this call, that this member leads.
    pub async fn session_renew(&self, node: NodeId, epoch: NodeEpoch, number: u64) -> Result<u64, ReadError> {
        self.forward.local.ask_urgently(|answer| Input::Renew { node, epoch, number, answer }).await
    }
}
