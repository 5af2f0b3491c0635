//! The rules of an entry's header (ADR 1), and its requests in order.

use atlas_types::{ClusterTime, Entry, EventRecord, Level, Outcome, Rejection, Request, Seq, Timestamp};

use crate::change::Change;
use crate::command;
use crate::state::State;

/// The result of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// It was planned on another state and changed nothing, here and on every replica.
    Stale,
    /// It was applied.
    Done {
        /// One answer per request, in order.
        outcomes: Vec<Result<Outcome, Rejection>>,
        /// What happened, in order.
        events: Vec<EventRecord>,
    },
}

/// Why a replica must stop: going on would make it differ from the others.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// The entry is of another cluster.
    #[error("the entry belongs to cluster {found:032x}, this state to {expected:032x}")]
    OtherCluster {
        /// The state's cluster.
        expected: u128,
        /// The entry's.
        found: u128,
    },
    /// The entry needs a newer program.
    #[error("the entry asks for feature level {} of its readers, this program has {}", needed.0, known.0)]
    LevelUnknown {
        /// What the entry asks for.
        needed: Level,
        /// What this program has.
        known: Level,
    },
    /// The entry was written below the level that is active.
    #[error("the entry was written at feature level {}, {} is active", found.0, active.0)]
    LevelBack {
        /// The entry's level.
        found: Level,
        /// The state's level.
        active: Level,
    },
    /// The entry was planned on a state that holds entries which this one lacks, though all before it in the log were applied here.
    #[error("the entry follows entry {expected}, this state has only {seq} of them")]
    Behind {
        /// Entries applied where it was planned.
        expected: Seq,
        /// Entries applied here.
        seq: Seq,
    },
    /// The same number of entries led to another state here than where the entry was planned.
    #[error("this state differs from the leader's after entry {seq}")]
    Diverged {
        /// Entries applied.
        seq: Seq,
    },
}

impl State {
    /// Applies an entry: the rules of its header, then each request in order.
    ///
    /// An error stops this replica. The chain is left to the caller ([`Self::set_chain`]), who has the bytes.
    pub fn apply_entry(&mut self, entry: &Entry) -> Result<Applied, Halt> {
        if entry.cluster_id != self.cluster_id {
            return Err(Halt::OtherCluster { expected: self.cluster_id, found: entry.cluster_id });
        }
        if entry.min_reader_level > Level::CURRENT {
            return Err(Halt::LevelUnknown { needed: entry.min_reader_level, known: Level::CURRENT });
        }
        // The planner had applied only the entries before it in the log, and so has this replica.
        if entry.parent.seq > self.seq {
            return Err(Halt::Behind { expected: entry.parent.seq, seq: self.seq });
        }
        if entry.parent.seq < self.seq {
            return Ok(Applied::Stale);
        }
        if entry.parent.chain != self.chain {
            return Err(Halt::Diverged { seq: self.seq });
        }
        if entry.level < self.level {
            return Err(Halt::LevelBack { found: entry.level, active: self.level });
        }
        self.raise(entry.level);
        self.begin_entry(entry.at, entry.clock);
        let (at, clock) = (self.at, self.clock);
        let mut outcomes = Vec::with_capacity(entry.requests.len());
        let mut events = Vec::with_capacity(2 * entry.requests.len());
        for request in &entry.requests {
            outcomes.push(self.apply_to(request, at, clock, &mut events));
        }
        self.end_entry();
        Ok(Applied::Done { outcomes, events })
    }

    /// Makes a feature level the active one, with the entry that is about to begin; it never goes back.
    pub fn raise(&mut self, level: Level) {
        self.dedupe.raise(self.level, level);
        self.level = self.level.max(level);
    }

    /// Begins an entry at a time; neither clock goes back. The head plans with this, [`Self::apply`] and [`Self::end_entry`], which
    /// together do what [`Self::apply_entry`] does.
    pub fn begin_entry(&mut self, at: Timestamp, clock: ClusterTime) {
        self.seq = self.seq.next();
        self.at = self.at.max(at);
        self.clock = self.clock.max(clock);
        self.end_pauses();
    }

    /// Ends an entry: forgets remembered requests whose time has passed.
    pub fn end_entry(&mut self) {
        self.dedupe.expire(self.clock, &self.config, self.level);
    }

    /// Applies one request of an entry: answers it and tells what happened. A refusal changes nothing.
    pub fn apply(
        &mut self,
        request: &Request,
        at: Timestamp,
        clock: ClusterTime,
    ) -> (Result<Outcome, Rejection>, Vec<EventRecord>) {
        let mut events = Vec::new();
        let outcome = self.apply_to(request, at, clock, &mut events);
        (outcome, events)
    }

    /// Applies one request of an entry like [`Self::apply`], and adds what happened to the events of the entry.
    pub fn apply_to(
        &mut self,
        request: &Request,
        at: Timestamp,
        clock: ClusterTime,
        events: &mut Vec<EventRecord>,
    ) -> Result<Outcome, Rejection> {
        if let Some(answer) = self.remembered(&request.origin) {
            return answer;
        }
        let mut change = Change { state: self, origin: &request.origin, at, clock, events };
        let outcome = command::apply(&request.command, &mut change)?;
        self.dedupe.remember(&request.origin, &outcome, clock, &self.config, self.level);
        Ok(outcome)
    }
}
