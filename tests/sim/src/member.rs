//! One controller: its replica, its snapshot on disk, and its recovery after a crash.

use std::sync::Arc;

use atlas_replica::{Head, Replica};
use atlas_state::State;
use atlas_types::{EventSeq, MemberId, Timestamp};

use crate::Bug;
use crate::leader::Leader;
use crate::message::{Event, Member, ToMember};
use crate::options::MS;
use crate::raft::LogEntry;
use crate::world::{CLUSTER_ID, World};

pub(crate) enum Role {
    Follower,
    Leader(Box<Leader>),
}

pub(crate) struct Controller {
    pub(crate) up: bool,
    pub(crate) replica: Replica,
    /// Entries of the log that are applied.
    pub(crate) applied: usize,
    pub(crate) role: Role,
    /// It stands still until then: what comes for it waits.
    pub(crate) stalled_until: u64,
    /// How far its wall clock is off, in microseconds.
    pub(crate) wall_offset: i64,
    /// Read indexes that were granted, by number.
    pub(crate) reads: Vec<PendingRead>,
    /// The head it had when it last led: kept only by [`Bug::HeadKept`].
    pub(crate) head_kept: Option<Head>,
    /// What its history last told the leader.
    synced: EventSeq,
    snapshot: Option<(usize, Arc<[u8]>)>,
}

/// A read that waits until its index is applied.
pub(crate) struct PendingRead {
    pub(crate) read: u64,
    pub(crate) index: Option<usize>,
    pub(crate) client: usize,
    pub(crate) op: u64,
    pub(crate) job: atlas_types::JobId,
}

impl Controller {
    pub(crate) fn new() -> Self {
        Self {
            up: true,
            replica: Replica::new(State::new(CLUSTER_ID)),
            applied: 0,
            role: Role::Follower,
            stalled_until: 0,
            wall_offset: 0,
            reads: Vec::new(),
            head_kept: None,
            synced: EventSeq(0),
            snapshot: None,
        }
    }
}

impl World {
    /// A member's wall clock. No run begins at the epoch.
    pub(crate) fn wall(&self, member: Member) -> Timestamp {
        Timestamp(1_700_000_000_000_000 + self.now as i64 + self.members[member].wall_offset)
    }

    /// Applies some of what is committed, or all; a follower may lag behind as far as it likes.
    pub(crate) fn apply(&mut self, member: Member) {
        if !self.members[member].up || self.raft.isolated.contains(&member) {
            return;
        }
        let behind = self.raft.log.len() - self.members[member].applied;
        let some = if behind > 1 && self.rng.chance(300) { self.rng.below(behind as u64) as usize } else { behind };
        for _ in 0..some {
            self.apply_next(member);
        }
        if some < behind {
            self.after_up_to(200 * MS, Event::Apply(member));
        }
        self.answer_reads(member);
        self.take_over_if_ready(member);
        if self.rng.chance(100) {
            self.take_snapshot(member);
        }
        let event = self.members[member].replica.state().event_seq();
        let news = event > self.members[member].synced && self.rng.chance(150);
        if let Some(leader) = self.raft.leader.filter(|_| news) {
            self.members[member].synced = event;
            let synced = ToMember::Synced { member: MemberId(member as u64), event };
            self.send_to_member(leader, synced);
        }
    }

    pub(crate) fn apply_next(&mut self, member: Member) {
        let controller = &mut self.members[member];
        let entry = self.raft.log[controller.applied].clone();
        controller.applied += 1;
        if let LogEntry::Entry(bytes) = entry {
            let own_clock = self.options.bug == Some(Bug::OwnClock) && self.now.is_multiple_of(7);
            let bytes = if own_clock { at_own_time(&bytes) } else { bytes };
            match controller.replica.apply(&bytes) {
                Ok(applied) if applied.stale => self.coverage.count("stale entries"),
                Ok(_) => {}
                Err(halt) => self.oracle.violate(format!("member {member} stopped: {halt:?}")),
            }
        }
        let controller = &self.members[member];
        self.oracle.check_replica(member, controller.applied, controller.replica.state());
    }

    /// Writes a snapshot of what is applied to the member's disk.
    pub(crate) fn take_snapshot(&mut self, member: Member) {
        let controller = &mut self.members[member];
        let mut bytes = Vec::new();
        match atlas_format::encode_snapshot(&controller.replica.state().to_image(), &mut bytes) {
            Ok(()) => controller.snapshot = Some((controller.applied, bytes.into())),
            Err(error) => self.oracle.violate(format!("could not write a snapshot: {error}")),
        }
    }

    /// Kills a member: what is not on its disk is gone.
    pub(crate) fn crash(&mut self, member: Member) {
        if !self.members[member].up {
            return;
        }
        if self.raft.leader == Some(member) {
            self.depose();
        }
        self.coverage.count("member crashes");
        self.raft.isolated.remove(&member);
        let controller = &mut self.members[member];
        controller.up = false;
        controller.role = Role::Follower;
        controller.reads.clear();
        controller.head_kept = None;
        self.break_streams_to(member);
        let back = self.rng.range(100, 6_000) * MS;
        self.after(back, Event::Restart(member));
    }

    /// Starts a member from its own disk, or from another's snapshot: its log was purged, or its disk is new.
    pub(crate) fn restart(&mut self, member: Member) {
        if self.members[member].up {
            return;
        }
        self.members[member].up = true;
        let foreign = self.rng.chance(400);
        if foreign {
            let source = (0..self.members.len()).filter(|&other| other != member);
            let source = source.max_by_key(|&other| self.members[other].applied).unwrap_or(member);
            self.take_snapshot(source);
            self.members[member].snapshot = self.members[source].snapshot.clone();
        }
        match self.members[member].snapshot.clone() {
            Some((index, bytes)) => self.install(member, index, &bytes),
            None => {
                self.members[member].replica = Replica::new(State::new(CLUSTER_ID));
                self.members[member].applied = 0;
            }
        }
        if self.options.bug == Some(Bug::EntrySkipped) && self.members[member].applied < self.raft.log.len() {
            self.members[member].applied += 1;
        }
        self.after_up_to(100 * MS, Event::Apply(member));
    }

    fn install(&mut self, member: Member, index: usize, bytes: &[u8]) {
        let image = match atlas_format::decode_snapshot(bytes) {
            Ok(image) => image,
            Err(error) => return self.oracle.violate(format!("could not read a snapshot: {error}")),
        };
        let written = atlas_format::digest_state(&image);
        let mut image = image;
        if self.options.bug == Some(Bug::SnapshotForgetsRequests) {
            image.requests.clear();
        }
        let state = match State::from_image(image) {
            Ok(state) => state,
            Err(error) => return self.oracle.violate(format!("a snapshot is not a state: {error:?}")),
        };
        if atlas_format::digest_state(&state.to_image()) != written {
            self.oracle.violate(format!("member {member} differs from the snapshot it installed"));
        }
        self.coverage.count("snapshots installed");
        self.members[member].replica = Replica::new(state);
        self.members[member].applied = index;
        self.oracle.check_replica(member, index, self.members[member].replica.state());
    }
}

/// The same entry a moment later: what a replica would do that asked its own clock.
fn at_own_time(bytes: &[u8]) -> Arc<[u8]> {
    match atlas_format::decode_entry(bytes) {
        Ok(mut entry) => {
            entry.at.0 += 1;
            atlas_format::encode_entry(&entry).into()
        }
        Err(_) => bytes.into(),
    }
}
