//! Raft, as far as the machines above it can tell: one log that a majority has, terms, and leaders that come and go.
//!
//! An entry in flight is either committed or lost when its leader stops, and its outcome is unknown. A deposed leader
//! may not know that for a while, and continues until it does.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::member::Role;
use crate::message::{Event, Member};
use crate::options::MS;
use crate::world::World;

#[derive(Debug, Clone)]
pub(crate) enum LogEntry {
    Blank,
    Entry(Arc<[u8]>),
}

#[derive(Debug, Default)]
pub(crate) struct Raft {
    /// What is committed.
    pub(crate) log: Vec<LogEntry>,
    pub(crate) term: u64,
    pub(crate) leader: Option<Member>,
    /// Members cut off from the others; clients and workers still reach them.
    pub(crate) isolated: BTreeSet<Member>,
}

impl World {
    pub(crate) fn leads(&self, member: Member, term: u64) -> bool {
        self.raft.leader == Some(member) && self.raft.term == term
    }

    /// True while a majority can hear each other.
    pub(crate) fn has_quorum(&self) -> bool {
        2 * self.connected().len() > self.members.len()
    }

    /// Members that take part: up, not cut off, and not standing still.
    fn connected(&self) -> Vec<Member> {
        let takes_part = |&m: &Member| {
            self.members[m].up && !self.raft.isolated.contains(&m) && self.members[m].stalled_until <= self.now
        };
        (0..self.members.len()).filter(takes_part).collect()
    }

    /// An entry is on a majority's disks.
    pub(crate) fn commit(&mut self, bytes: Arc<[u8]>) {
        let events = self.oracle.commit(&bytes, self.now, &mut self.coverage);
        events.iter().for_each(|record| self.runs.see(record));
        self.raft.log.push(LogEntry::Entry(bytes));
        self.coverage.count("committed entries");
        self.trace.add(&[self.raft.log.len() as u64, self.oracle.fingerprint()]);
    }

    pub(crate) fn elect(&mut self) {
        if self.raft.leader.is_some() {
            return;
        }
        let candidates = self.connected();
        if 2 * candidates.len() <= self.members.len() {
            self.after(200 * MS, Event::Elect);
            return;
        }
        let member = self.rng.pick(&candidates);
        self.raft.term += 1;
        self.raft.leader = Some(member);
        self.raft.log.push(LogEntry::Blank);
        self.oracle.blank();
        self.coverage.count("leader changes");
        let (term, blank) = (self.raft.term, self.raft.log.len());
        self.begin_leadership(member, term, blank);
        self.after_up_to(50 * MS, Event::Apply(member));
        // The others get the blank entry as well: perhaps nothing else is ever written in this term.
        for other in (0..self.members.len()).filter(|&other| other != member) {
            self.after_up_to(90 * MS, Event::Apply(other));
        }
    }

    /// The leader is no longer one, whether it knows or not. What it had in flight is on a majority's disks, or is not.
    pub(crate) fn depose(&mut self) {
        let Some(member) = self.raft.leader.take() else { return };
        let term = self.raft.term;
        if let Role::Leader(leader) = &self.members[member].role
            && let Some(in_flight) = leader.in_flight.as_ref().filter(|_| leader.term == term)
        {
            let bytes: Arc<[u8]> = in_flight.planned.entry_bytes.as_slice().into();
            if self.rng.chance(500) {
                self.coverage.count("entries committed by the next leader");
                self.commit(bytes);
            } else {
                self.coverage.count("entries lost with their leader");
            }
        }
        let pause = self.rng.range(150, 600) * MS;
        self.after(pause, Event::Elect);
    }

    /// A leader learns that it was deposed: everything it had not finished is unknown to whoever asked.
    pub(crate) fn step_down(&mut self, member: Member, term: u64) {
        if self.raft.isolated.remove(&member) {
            self.after_up_to(20 * MS, Event::Apply(member));
        }
        if let Role::Leader(leader) = &self.members[member].role
            && leader.term == term
        {
            self.end_leadership(member);
        }
    }
}
