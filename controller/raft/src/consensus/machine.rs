//! openraft's state machine, implemented with our replica.
//!
//! The state is in memory. After a start it is rebuilt from the snapshot and the log entries after it, up to the saved
//! commit mark.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Env, is_full};
use atlas_types::EventSeq;
use futures::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder};
use tokio::sync::{mpsc, watch};

use super::snapshot::{Check, SnapshotFile, Snapshots, Source};
use super::{Proposal, RaftLogId, RaftSnapshotMeta, RaftStoredMembership, Reply, Types};
use crate::member::Member;

type RaftSnapshot = openraft::alias::SnapshotOf<Types, SnapshotFile>;

/// The replicated state machine, as this crate sees it.
pub(crate) trait Machine: Send + Sync + 'static {
    /// A complete state.
    type State: Send + 'static;

    /// A decoded entry.
    type Entry: Send + 'static;

    /// Whether entry indexes must be consecutive. They are in every real log, but openraft's storage suite skips some.
    const GAPLESS: bool = true;

    /// Applies a committed entry. An error stops the member.
    fn apply(&mut self, id: RaftLogId, proposal: &Proposal) -> io::Result<Reply>;

    /// Decodes an entry that is replayed. It is called off Raft's thread.
    fn decode(proposal: &Proposal) -> io::Result<Self::Entry>;

    /// Applies an entry that was committed before this start. The state is not shown to others before
    /// [`Self::replayed`].
    fn replay(&mut self, id: RaftLogId, entry: &Self::Entry, proposal: &Proposal) -> io::Result<()>;

    /// The last of these entries was applied, or it was one of Raft's own.
    fn replayed(&mut self);

    /// A view of the current state, and the last event in it.
    fn snapshot(&self) -> (Source, EventSeq);

    /// Reads a state from a snapshot's body. It may take long, so it is called off Raft's thread.
    fn read(body: &mut dyn Read) -> io::Result<Self::State>;

    /// Replaces the state with the one after the entry at `index`. Returns the old state, because dropping it may also
    /// take long.
    fn restore(&mut self, index: u64, state: Self::State) -> io::Result<Self::State>;
}

/// A machine with the id of its last applied entry and its snapshots.
pub(crate) struct MachineStore<M> {
    machine: M,
    applied: Option<RaftLogId>,
    /// The last entry that openraft replays at the start.
    replay_to: Option<u64>,
    membership: RaftStoredMembership,
    snapshots: Snapshots,
    history: watch::Receiver<EventSeq>,
    env: Env,
}

impl<M: Machine> MachineStore<M> {
    /// A store over an empty machine. openraft restores the current snapshot into it and replays the log up to the
    /// entry `committed`.
    pub(crate) fn new(
        machine: M,
        committed: Option<u64>,
        snapshots: Snapshots,
        history: watch::Receiver<EventSeq>,
        env: Env,
    ) -> Self {
        let membership = RaftStoredMembership::default();
        Self { machine, applied: None, replay_to: committed, membership, snapshots, history, env }
    }

    /// Applies entries that were committed before this start, and decodes those that follow on another thread
    /// meanwhile.
    async fn replay(&mut self, entries: Vec<EntryResponder<Types>>, last: u64) -> io::Result<()> {
        let proposal = |(entry, _): &EntryResponder<Types>| match &entry.payload {
            EntryPayload::Normal(proposal) if entry.log_id.index <= last => Some(proposal.clone()),
            _ => None,
        };
        let proposals: Vec<Proposal> = entries.iter().filter_map(proposal).collect();
        let (decoded, mut ready) = mpsc::channel(proposals.len().max(1));
        self.env.spawn_blocking("decode-entries", move || {
            // There is room for all of them. The receiver is gone if an earlier entry failed.
            proposals.iter().all(|proposal| decoded.try_send(M::decode(proposal)).is_ok())
        });
        for (entry, responder) in entries {
            let is_decoded = matches!(entry.payload, EntryPayload::Normal(_)) && entry.log_id.index <= last;
            let decoded = if is_decoded {
                Some(ready.recv().await.ok_or_else(|| io::Error::other("decoding an entry panicked"))??)
            } else {
                None
            };
            let reply = self.apply_one(entry.log_id, entry.payload, decoded)?;
            if entry.log_id.index == last {
                self.machine.replayed();
            }
            if let Some(responder) = responder {
                responder.send(reply);
            }
        }
        Ok(())
    }

    /// Applies an entry, which was decoded before if it is replayed.
    fn apply_one(
        &mut self,
        id: RaftLogId,
        payload: EntryPayload<Proposal, u64, Member>,
        decoded: Option<M::Entry>,
    ) -> io::Result<Reply> {
        self.check_follows(id)?;
        let reply = match payload {
            EntryPayload::Blank => Reply::Raft,
            EntryPayload::Normal(proposal) => {
                // A panic on a committed entry would recur on every member and at every start. It is reported as an
                // error that stops the member, not retried.
                let applied = catch_unwind(AssertUnwindSafe(|| match decoded {
                    Some(entry) => self.machine.replay(id, &entry, &proposal).map(|()| Reply::Applied),
                    None => self.machine.apply(id, &proposal),
                }));
                applied.unwrap_or_else(|_| Err(io::Error::other(format!("applying entry {id} panicked"))))?
            }
            EntryPayload::Membership(membership) => {
                self.membership = RaftStoredMembership::new(Some(id), membership);
                Reply::Raft
            }
        };
        self.applied = Some(id);
        Ok(reply)
    }

    #[cfg(test)]
    pub(crate) fn counted(&self) -> EventSeq {
        self.machine.snapshot().1
    }

    /// Applying an entry after a gap in the log would make this member silently differ from the others.
    fn check_follows(&self, id: RaftLogId) -> io::Result<()> {
        if !M::GAPLESS || id.index == self.applied.map_or(0, |applied| applied.index + 1) {
            return Ok(());
        }
        let last = self.applied.map_or_else(|| "nothing".to_owned(), |applied| format!("entry {}", applied.index));
        let what = format!("entry {} does not follow {last}, the last applied entry", id.index);
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }
}

impl<M: Machine> RaftStateMachine<Types> for MachineStore<M> {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> io::Result<(Option<RaftLogId>, RaftStoredMembership)> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = Result<EntryResponder<Types>, io::Error>> + Unpin + OptionalSend,
    {
        let next = self.applied.map_or(0, |applied| applied.index + 1);
        if let Some(last) = self.replay_to.filter(|last| next <= *last) {
            let mut replayed = Vec::new();
            while let Some(entry) = entries.next().await {
                replayed.push(entry?);
            }
            return self.replay(replayed, last).await;
        }
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            let reply = self.apply_one(entry.log_id, entry.payload, None)?;
            if let Some(responder) = responder {
                responder.send(reply);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        let (source, event_seq) = self.machine.snapshot();
        let meta = RaftSnapshotMeta { last_log_id: self.applied, last_membership: self.membership.clone() };
        Builder {
            taken: Some((source, meta)),
            event_seq,
            history: self.history.clone(),
            snapshots: self.snapshots.clone(),
            check: |body| M::read(body).map(drop),
            env: self.env.clone(),
        }
    }

    async fn install_snapshot(&mut self, meta: &RaftSnapshotMeta, snapshot: SnapshotFile) -> io::Result<()> {
        let index = meta.last_log_id.map_or(0, |id| id.index);
        let state = match snapshot.take_kept() {
            Some(state) => state,
            None => {
                let (file, meta) = (snapshot.clone(), meta.clone());
                let reading = self.env.spawn_blocking("read-snapshot", move || read::<M>(&file, &meta));
                reading.join().await.map_err(|_| io::Error::other("reading the snapshot panicked"))??
            }
        };
        let before = self.machine.restore(index, state)?;
        self.env.spawn_blocking("drop-state", move || drop(before));
        self.applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        if self.snapshots.current().is_none_or(|(current, _)| current.last_log_id != meta.last_log_id) {
            self.snapshots.adopt(meta, &snapshot.path)?;
        }
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<RaftSnapshot>> {
        Ok(self.snapshots.current().map(|(meta, snapshot)| RaftSnapshot { meta, snapshot }))
    }
}

/// Reads the state of a snapshot that was announced as `meta`.
pub(crate) fn read<M: Machine>(file: &SnapshotFile, meta: &RaftSnapshotMeta) -> io::Result<M::State> {
    let (found, state) = file.read(M::read)?;
    if found == *meta {
        return Ok(state);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the snapshot differs from the announced one"))
}

/// How long a snapshot waits for free disk space before it is tried again.
const SPACE_RETRY: Duration = Duration::from_secs(1);

/// Writes one snapshot from a view of the state, in the background.
pub(crate) struct Builder {
    taken: Option<(Source, RaftSnapshotMeta)>,
    event_seq: EventSeq,
    history: watch::Receiver<EventSeq>,
    snapshots: Snapshots,
    check: Check,
    env: Env,
}

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> io::Result<RaftSnapshot> {
        let (source, meta) = self.taken.take().ok_or_else(|| io::Error::other("this snapshot was already built"))?;
        // After a start from this snapshot the events before it are not replayed, so history must have them.
        let event_seq = self.event_seq;
        self.history.wait_for(|synced| *synced >= event_seq).await.map_err(io::Error::other)?;
        let source = Arc::new(source);
        loop {
            let (snapshots, written, source) = (self.snapshots.clone(), meta.clone(), Arc::clone(&source));
            let check = self.check;
            let writing = self.env.spawn_blocking("raft-snapshot", move || snapshots.write(&written, &source, check));
            let outcome = writing.join().await.map_err(|_| io::Error::other("writing the snapshot panicked"))?;
            match outcome {
                // Waiting loses no data, because the log is kept meanwhile.
                Err(error) if is_full(&error) => {
                    tracing::warn!(%error, "no disk space for a snapshot, trying again");
                    self.env.clock.sleep(SPACE_RETRY).await;
                }
                // The log keeps the entries that the snapshot would have covered, so no data is lost. Stopping the
                // process would not help.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    tracing::error!(error = %atlas_env::chain(&error), "a written snapshot cannot be loaded; the log is kept");
                    self.snapshots.set_refused(Some(self.env.clock.monotonic()));
                    let (meta, snapshot) = self.snapshots.current().unwrap_or_else(|| self.snapshots.none());
                    return Ok(RaftSnapshot { meta, snapshot });
                }
                Err(error) => return Err(error),
                Ok((meta, snapshot)) => {
                    self.snapshots.set_refused(None);
                    return Ok(RaftSnapshot { meta, snapshot });
                }
            }
        }
    }
}
