//! The handle through which the rest of the controller uses the replicated state. All its methods are in this folder.

mod condition;
mod members;
mod sessions;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Task;
use atlas_state::State;
use atlas_types::{EventSeq, MemberId, Request, Seq, Timestamp};
use tokio::sync::{broadcast, watch};

use crate::batches::{AppliedBatch, Batches, Subscription};
use crate::door::PeerDoor;
use crate::error::{Leadership, ProposeError, ReadError};
use crate::forward::Forward;
use crate::leader::panics::Panics;
use crate::local::{Answers, Input};
use crate::membership::{Group, Upkeep};
use crate::monitor::digests::Agreement;
use crate::monitor::space::Disk;

/// Access to the leader, whichever member that is, and to the entries that this member has applied. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    pub(crate) cluster_id: u128,
    pub(crate) forward: Forward,
    pub(crate) batches: Batches,
    pub(crate) history: Arc<watch::Sender<EventSeq>>,
    pub(crate) door: PeerDoor,
    pub(crate) group: Group,
    pub(crate) disk: watch::Receiver<Disk>,
    pub(crate) agreement: watch::Receiver<Agreement>,
    pub(crate) panics: Panics,
    /// The runtime of Raft and the leader loop.
    pub(crate) runtime: tokio::runtime::Handle,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({} of {:032x})", self.member(), self.cluster_id)
    }
}

impl Handle {
    /// The cluster that this member belongs to.
    pub fn cluster_id(&self) -> u128 {
        self.cluster_id
    }

    /// This member's number.
    pub fn member(&self) -> MemberId {
        MemberId(*self.door.raft.node_id())
    }

    /// True if this member is the only voter of its group, so that no other member can lead it.
    pub fn is_alone(&self) -> bool {
        self.door.raft.voter_ids().eq([self.member().0])
    }

    /// Proposes `requests` and waits until their entry is applied or their refusal is certain. Returns one answer per
    /// request, in order.
    ///
    /// The requests are decided in order, but may be spread over several entries. A follower forwards them to the
    /// leader and, if it can keep up, applies their entries before it answers. The call waits up to 5 s for a new
    /// leader. After a change of leadership, requests without a request id may end as [`ProposeError::Unknown`].
    pub async fn propose(&self, requests: Vec<Request>) -> Result<Answers, ProposeError> {
        self.forward.propose(requests).await
    }

    /// Proposes at this member only. If it does not lead, the request is not forwarded. Used for the reports of a
    /// worker with a session at this member: a forwarded report must not arrive after what the worker later tells
    /// another leader. These proposals do not wait behind clients.
    pub async fn propose_here(&self, requests: Vec<Request>) -> Result<Answers, ProposeError> {
        self.forward.local.propose_urgently(requests).await
    }

    /// Returns the state with everything that was acknowledged before this call, if this member leads. Used for a
    /// worker's hello, which must not wait behind clients. A leader without a quorum does not answer.
    pub async fn read_here(&self) -> Result<State, ReadError> {
        self.forward.local.ask_urgently(|answer| Input::Read { answer }).await
    }

    /// Returns the state with everything that was acknowledged before this call, on any member. The leader confirms its
    /// leadership with a quorum. A follower asks the leader how many entries it must have applied, and waits for them.
    pub async fn read(&self) -> Result<State, ReadError> {
        self.forward.read().await
    }

    /// Waits until this member has applied `seq` entries; false if that takes longer than `max`.
    pub async fn wait_applied(&self, seq: Seq, max: Duration) -> bool {
        self.forward.wait_applied(seq, max).await
    }

    /// The state as this member has applied it. It may be stale.
    pub fn applied(&self) -> State {
        self.forward.applied.borrow().clone()
    }

    /// How many entries this member has applied.
    pub fn applied_seq(&self) -> Seq {
        self.forward.applied.borrow().seq()
    }

    /// Subscribes to entries that this member applies from now on. A receiver that lags gets an error and must then
    /// read the state again.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<AppliedBatch>> {
        self.batches.subscribe()
    }

    /// Like [`Self::subscribe`], for a subscriber that needs only some entries: `urgent` entries arrive at once, the
    /// others some milliseconds later. `urgent` is called on Raft's thread and must not block.
    pub fn subscribe_to(&self, urgent: impl Fn(&AppliedBatch) -> bool + Send + Sync + 'static) -> Subscription {
        self.batches.subscribe_to(urgent)
    }

    /// The entries applied since this member started, including replayed ones, that the history does not have, and a
    /// subscription to later entries, which may be delayed. For the history only: a second call returns no stored
    /// entries.
    pub fn subscribe_from_start(&self) -> (Vec<Arc<AppliedBatch>>, Subscription) {
        self.batches.subscribe_from_start()
    }

    /// Watches whether this member leads and whether it has stopped.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.forward.local.leadership.clone()
    }

    /// Reports that this member's history has everything up to `event_seq` on disk. This is acknowledged to the cluster
    /// soon, and snapshots may then include these events.
    pub fn history_synced(&self, event_seq: EventSeq) {
        self.history.send_if_modified(|synced| {
            let later = event_seq > *synced;
            *synced = event_seq.max(*synced);
            later
        });
    }

    /// What this controller reports of its upkeep.
    pub fn upkeep(&self) -> Upkeep {
        *self.group.upkeep()
    }

    /// Reports that this controller has sent a complete backup of the state at a time.
    pub fn note_backup(&self, at: Timestamp) {
        self.group.upkeep().backup_at = Some(at);
    }

    /// Reports when this controller's certificate should be replaced, and when it ends.
    pub fn note_certificate(&self, due: Timestamp, ends: Timestamp) {
        let mut upkeep = self.group.upkeep();
        (upkeep.certificate_due, upkeep.certificate_ends) = (Some(due), Some(ends));
    }

    /// The peer door of this member, to be mounted on the controller's gRPC server.
    pub fn peer_door(&self) -> PeerDoor {
        self.door.clone()
    }

    /// Spawns a task on the thread of Raft and the leader loop, so that its calls to them wake no other thread. The
    /// task ends with the member and must never block.
    pub fn spawn_beside<T: Send + 'static>(
        &self,
        name: &'static str,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        let _there = self.runtime.enter();
        self.forward.env.spawn(name, task)
    }
}
