//! Worker sessions, which the leader keeps.

use atlas_types::{NodeEpoch, NodeId};

use super::Handle;
use crate::error::ReadError;
use crate::local::Input;

impl Handle {
    /// Starts the session of a worker that has registered and whose epoch is applied. Only the leader keeps sessions.
    ///
    /// The worker must not be accepted before this call succeeds. If the loss of this epoch is already being written to
    /// the log, the session does not start, although the applied state still shows the node with all its leases.
    pub async fn session_hello(&self, node: NodeId, epoch: NodeEpoch) -> Result<(), ReadError> {
        self.forward.local.ask_urgently(|answer| Input::Hello { node, epoch, answer }).await
    }

    /// Renews the session of a worker. Returns the number that may be acknowledged, after a quorum has confirmed this
    /// leadership in a round that began after this call.
    pub async fn session_renew(&self, node: NodeId, epoch: NodeEpoch, number: u64) -> Result<u64, ReadError> {
        self.forward.local.ask_urgently(|answer| Input::Renew { node, epoch, number, answer }).await
    }
}
