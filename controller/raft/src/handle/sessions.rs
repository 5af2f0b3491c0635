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
    ///
    /// `stream` is unique among those of this member: it tells the end of an old stream from that of this one.
    pub async fn session_hello(&self, node: NodeId, epoch: NodeEpoch, stream: u64) -> Result<(), ReadError> {
        self.forward.local.ask_urgently(|answer| Input::Hello { node, epoch, stream, answer }).await
    }

    /// Whether another process may take the name of a node from the one that registered with this epoch. `successor` says that it is the
    /// next process with the same data directory.
    pub async fn session_claim(&self, node: NodeId, epoch: NodeEpoch, successor: bool) -> Result<bool, ReadError> {
        self.forward.local.ask_urgently(|answer| Input::Claim { node, epoch, successor, answer }).await
    }

    /// A worker said that it ends: its session ends at once. What runs on its node by then is lost.
    pub fn session_leave(&self, node: NodeId, epoch: NodeEpoch) -> Result<(), ReadError> {
        self.forward.local.send_urgently(Input::Parted { node, epoch, stream: 0, farewell: true })
    }

    /// A worker's stream ended without such a word. Its node gets no new lease until the worker returns, and without a lease it is lost
    /// soon.
    pub fn session_broke(&self, node: NodeId, epoch: NodeEpoch, stream: u64) -> Result<(), ReadError> {
        self.forward.local.send_urgently(Input::Parted { node, epoch, stream, farewell: false })
    }

    /// Renews the session of a worker. Returns the number that may be acknowledged, after a quorum has confirmed this
    /// leadership in a round that began after this call.
    pub async fn session_renew(&self, node: NodeId, epoch: NodeEpoch, number: u64) -> Result<u64, ReadError> {
        self.forward.local.ask_urgently(|answer| Input::Renew { node, epoch, number, answer }).await
    }
}
