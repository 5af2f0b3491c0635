//! This member's Raft, and the replicated state behind it: applies committed entries, adopts the head's results, and notifies subscribers.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use atlas_format::SnapshotError;
use atlas_replica::{PlannedEntry, Replica};
use atlas_state::State;
use atlas_types::{Entry, EventSeq};
use tokio::sync::watch;

use crate::batches::{AppliedBatch, Batches};
use crate::consensus::machine::{Machine, MachineStore};
use crate::consensus::snapshot::Source;
use crate::consensus::{LeaderId, Proposal, RaftLogId, Reply, Types};
use crate::monitor::digests::Checks;

/// The Raft instance of this member.
pub(crate) type Raft = openraft::Raft<Types, MachineStore<StateMachine>>;

/// This member's leader id, if it leads.
pub(crate) fn leader_id(raft: &Raft) -> Option<LeaderId> {
    // Before its first vote, a new group reports a leader in term 0.
    raft.as_leader().ok().map(|leader| *leader.leader_id()).filter(|leader| leader.term > 0)
}

/// The plan that the leader loop has in flight. The state machine adopts its result when the entry is committed.
#[derive(Clone, Default)]
pub(crate) struct Slot(Arc<Mutex<Option<OwnPlan>>>);

/// A plan, and the leadership under which it is proposed.
type OwnPlan = (LeaderId, Arc<PlannedEntry>);

impl Slot {
    /// Puts the plan that is about to be proposed under `leader`.
    pub(crate) fn put(&self, leader: LeaderId, planned: Arc<PlannedEntry>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((leader, planned));
    }

    /// Drops the stored plan, which will not be adopted.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Takes the stored plan if it belongs to exactly this entry.
    fn take(&self, leader: &LeaderId, entry: &[u8]) -> Option<Arc<PlannedEntry>> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = slot.as_ref().is_some_and(|(by, planned)| by == leader && planned.entry_bytes == entry);
        if own { slot.take().map(|(_, planned)| planned) } else { None }
    }
}

/// The state machine of a member.
pub(crate) struct StateMachine {
    replica: Replica,
    slot: Slot,
    applied: watch::Sender<State>,
    batches: Batches,
    checks: Checks,
}

impl StateMachine {
    /// A machine that starts with `state`.
    pub(crate) fn new(
        state: State,
        slot: Slot,
        applied: watch::Sender<State>,
        batches: Batches,
        checks: Checks,
    ) -> Self {
        Self { replica: Replica::new(state), slot, applied, batches, checks }
    }
}

impl Machine for StateMachine {
    type State = State;
    type Entry = Entry;

    fn apply(&mut self, id: RaftLogId, proposal: &Proposal) -> io::Result<Reply> {
        let entry = proposal.entry();
        let applied = match self.slot.take(&id.leader_id, entry) {
            Some(planned) => self.replica.adopt(&planned),
            None => self.replica.apply(entry),
        };
        let applied = applied.map_err(io::Error::other)?;
        if applied.stale {
            return Ok(Reply::Stale);
        }
        let state = self.replica.state().clone();
        self.checks.applied(&state, &applied.digests);
        let batch = AppliedBatch { index: id.index, seq: state.seq(), events: applied.events, state: state.clone() };
        self.applied.send_replace(state);
        self.batches.send(batch);
        Ok(Reply::Applied)
    }

    fn decode(proposal: &Proposal) -> io::Result<Entry> {
        atlas_replica::decode(proposal.entry()).map_err(io::Error::other)
    }

    fn replay(&mut self, id: RaftLogId, entry: &Entry, proposal: &Proposal) -> io::Result<()> {
        let applied = self.replica.apply_decoded(entry, proposal.entry()).map_err(io::Error::other)?;
        if applied.stale {
            return Ok(());
        }
        let state = self.replica.state();
        self.checks.applied(state, &applied.digests);
        // A state that is handed on makes the next entry copy what it changes, so only the history gets those that it
        // lacks.
        if self.batches.keeps_early(&applied.events) {
            let (seq, state) = (state.seq(), state.clone());
            self.batches.send(AppliedBatch { index: id.index, seq, events: applied.events, state });
        }
        Ok(())
    }

    fn replayed(&mut self) {
        self.applied.send_replace(self.replica.state().clone());
    }

    fn snapshot(&self) -> (Source, EventSeq) {
        let state = self.replica.state().clone();
        let event_seq = state.event_seq();
        let write = move |mut out: &mut dyn io::Write| {
            atlas_format::encode_snapshot(&state.to_image(), &mut out).map_err(|error| match error {
                // The original I/O error is kept, because the caller checks for a full disk.
                SnapshotError::Io { source, .. } => source,
                other => io::Error::other(other),
            })
        };
        (Box::new(write), event_seq)
    }

    fn read(body: &mut dyn Read) -> io::Result<State> {
        let image = atlas_format::decode_snapshot(body).map_err(|error| match error {
            SnapshotError::Io { source, .. } => source,
            other => io::Error::new(io::ErrorKind::InvalidData, other),
        })?;
        State::from_image(image).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn restore(&mut self, index: u64, state: State) -> io::Result<State> {
        if state.cluster_id() != self.replica.state().cluster_id() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the snapshot belongs to another cluster"));
        }
        let before = self.replica.state().clone();
        self.applied.send_replace(state.clone());
        self.replica = Replica::new(state.clone());
        // The batch has no events. Subscribers notice by its number that they missed some, and do not have to wait for
        // the next entry.
        self.batches.send(AppliedBatch { index, seq: state.seq(), events: Arc::from([]), state });
        Ok(before)
    }
}
