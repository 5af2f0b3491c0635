//! The handle through which the rest of the controller uses the replicated state. Every method of it is in this folder.

mod condition;
mod members;
mod sessions;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Task;
use atlas_state::State;
use atlas_types::{EventSeq, MemberId, Outcome, Rejection, Request, Seq};
use tokio::sync::{broadcast, watch};

use crate::batches::{AppliedBatch, Batches, Subscription};
use crate::door::PeerDoor;
use crate::error::{Leadership, ProposeError, ReadError};
use crate::forward::Forward;
use crate::leader::panics::Panics;
use crate::local::Input;
use crate::membership::Group;
use crate::monitor::digests::Agreement;
use crate::monitor::space::Disk;

/// Answers to one proposal, in the order of its requests.
pub type Answers = Vec<Result<Outcome, Rejection>>;

/// Reaches the leader, whichever member that is, and what this member has applied. Cheap to clone.
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
    /// What Raft and the leader loop run on.
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

    /// Whether this member is the only one of its group: no other can lead it.
    pub fn is_alone(&self) -> bool {
        self.door.raft.voter_ids().eq([self.member().0])
    }

    /// Proposes `requests` and waits until their entry is applied, or their refusal is certain. One answer per request, in order.
    ///
    /// They are decided in one go and in order, but may be spread over several entries when they exceed one. On a member that
    /// does not lead they go to the leader, and this member has applied what they did before it answers, if it can keep up. A
    /// change of leadership is waited for, up to 5 s. Requests without a request id may end as [`ProposeError::Unknown`] by it.
    pub async fn propose(&self, requests: Vec<Request>) -> Result<Answers, ProposeError> {
        self.forward.propose(requests).await
    }

    /// Proposes at this member alone: if it does not lead, or not any more, nothing is brought to whoever does. For what a worker says on
    /// its session with this member: what its process, or the next one, says to another leader must not be overtaken by it. It waits
    /// behind no client.
    pub async fn propose_here(&self, requests: Vec<Request>) -> Result<Answers, ProposeError> {
        self.forward.local.propose_urgently(requests).await
    }

    /// The state with everything that was acknowledged before this call, if this member leads: for a worker's hello, which waits behind no
    /// client. A leader without a quorum does not answer.
    pub async fn read_here(&self) -> Result<State, ReadError> {
        self.forward.local.ask_urgently(|answer| Input::Read { answer }).await
    }

    /// The state with everything that was acknowledged before this call, wherever. A quorum confirms the leader for it; a
    /// member that does not lead asks the leader how far it has to be, and waits until it is.
    pub async fn read(&self) -> Result<State, ReadError> {
        self.forward.read().await
    }

    /// Waits until this member has applied `seq` entries; false if that takes longer than `max`.
    pub async fn wait_applied(&self, seq: Seq, max: Duration) -> bool {
        self.forward.wait_applied(seq, max).await
    }

    /// The state as this member has applied it: may be behind.
    pub fn applied(&self) -> State {
        self.forward.applied.borrow().clone()
    }

    /// How many entries this member has applied.
    pub fn applied_seq(&self) -> Seq {
        self.forward.applied.borrow().seq()
    }

    /// What this member applies from now on. A receiver that lags gets an error; it then reads the state again.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<AppliedBatch>> {
        self.batches.subscribe()
    }

    /// The same for a subscriber that needs only some entries: `urgent` ones come at once, the rest some milliseconds later. It is
    /// asked on Raft's thread, and must not hold that up.
    pub fn subscribe_to(&self, urgent: impl Fn(&AppliedBatch) -> bool + Send + Sync + 'static) -> Subscription {
        self.batches.subscribe_to(urgent)
    }

    /// What this member has applied since its start, replayed entries included, that the history does not have, and what it
    /// applies from now on, without haste. For the history alone, once: the first part is empty the second time.
    pub fn subscribe_from_start(&self) -> (Vec<Arc<AppliedBatch>>, Subscription) {
        self.batches.subscribe_from_start()
    }

    /// Whether this member leads, and whether it has stopped.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.forward.local.leadership.clone()
    }

    /// This member's history has everything up to `event_seq` on disk: acknowledged to the cluster soon, and snapshots may go
    /// so far.
    pub fn history_synced(&self, event_seq: EventSeq) {
        self.history.send_if_modified(|synced| {
            let later = event_seq > *synced;
            *synced = event_seq.max(*synced);
            later
        });
    }

    /// What this member offers its peers, to be mounted on the controller's gRPC server.
    pub fn peer_door(&self) -> PeerDoor {
        self.door.clone()
    }

    /// Spawns a task on the thread of Raft and the leader loop, so that what it asks them wakes no other thread. It ends with the
    /// member, and must never hold that thread up.
    pub fn spawn_beside<T: Send + 'static>(
        &self,
        name: &'static str,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        let _there = self.runtime.enter();
        self.forward.env.spawn(name, task)
    }
}
