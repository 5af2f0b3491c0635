//! Durable programs: code that does several things at a time, and whose calls are found by what they ask for and not by their place.
//!
//! A program goes through branches at the same time. Each call of a branch takes a while, is recorded, and the branch goes on once the leader
//! has answered. When all branches have ended, a last call says in which order they did, so a replay that lets them end in another order
//! asks for another one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use atlas_durable::{CallEffect, CallKind, CallReplay, CallRequest, Key, PastCall};
use atlas_slots::Replay as Journal;
use atlas_types::{
    AssignedJournal, Assignment, FencingToken, JobId, Payload, Step, StepKey, StepKind, StepUsage, StepsResult,
};

use super::{Entry, digest};
use crate::Bug;
use crate::message::{Event, Node};
use crate::options::MS;
use crate::rng::mix;
use crate::world::World;

/// The branch of the last call.
const LAST: u64 = u64::MAX;

/// A running attempt of a program.
pub(crate) struct Program {
    pub(crate) job: JobId,
    code: Code,
    /// How new steps get into the journal.
    pub(crate) journal: Journal,
    /// What the calls get that earlier attempts recorded.
    replay: CallReplay,
    recorded: Vec<StepKey>,
    /// The calls that are open, by number: the branch and the key.
    open: BTreeMap<u64, (u64, StepKey)>,
    asked: u64,
    /// Calls that have ended and are not recorded, in this order. The first one is on its way.
    ended: VecDeque<u64>,
}

/// Where the program's own code is. It is the same in each attempt for the same answers.
struct Code {
    job: JobId,
    /// How many calls of each branch have ended.
    branches: Vec<u64>,
    /// The branches that have ended, in their order.
    order: u64,
    is_over: bool,
}

/// How many calls each branch of a program makes.
fn lengths(job: JobId) -> Vec<u64> {
    (0..2 + mix(job.0) % 2).map(|branch| 1 + mix(job.0 ^ (branch + 1)) % 3).collect()
}

/// How many steps the attempts of a program make together.
pub(crate) fn calls_of(job: JobId) -> u64 {
    lengths(job).iter().sum::<u64>() + 1
}

fn key(job: JobId, branch: u64, nth: u64) -> StepKey {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix(job.0 ^ mix(branch)).to_le_bytes());
    key[8..].copy_from_slice(&mix(job.0 ^ mix(nth.wrapping_add(branch))).to_le_bytes());
    StepKey(key)
}

impl Code {
    fn new(job: JobId) -> Self {
        Self { job, branches: vec![0; lengths(job).len()], order: 0, is_over: false }
    }

    /// The first calls.
    fn begin(&self) -> Vec<(u64, StepKey)> {
        (0..self.branches.len() as u64).map(|branch| (branch, key(self.job, branch, 0))).collect()
    }

    /// A call of a branch is answered. The calls that follow.
    fn answered(&mut self, branch: u64) -> Vec<(u64, StepKey)> {
        let Some(ended) = self.branches.get_mut(branch as usize) else {
            self.is_over = true;
            return Vec::new();
        };
        *ended += 1;
        let lengths = lengths(self.job);
        if *ended < lengths[branch as usize] {
            return vec![(branch, key(self.job, branch, *ended))];
        }
        self.order = mix(self.order ^ (branch + 1));
        if self.branches == lengths { vec![(LAST, key(self.job, LAST, self.order))] } else { Vec::new() }
    }

    /// Whether it does one thing only.
    fn is_alone(&self) -> bool {
        self.branches.iter().zip(lengths(self.job)).filter(|(ended, length)| **ended < *length).count() <= 1
    }
}

fn step(job: JobId, key: StepKey) -> Arc<Step> {
    let size = 1 + mix(job.0 ^ u64::from(key.0[0])) % 9_000;
    let outcome = Payload::inline(&vec![b'1'; size as usize]);
    Arc::new(Step { kind: StepKind::Code, key, outcome, usage: StepUsage::default() })
}

impl World {
    pub(crate) fn program_starts(&mut self, node: Node, assignment: &Assignment) {
        let job = assignment.job;
        let assigned: AssignedJournal = assignment.journal.as_deref().cloned().unwrap_or_default();
        let mut journal = Journal::new(assigned);
        let mut recorded = Vec::new();
        loop {
            match journal.peek() {
                Err(artifact) => {
                    let steps = self.folds.get(&digest(&artifact)).cloned().unwrap_or_default();
                    if journal.loaded(steps).is_err() {
                        return self.oracle.violate(format!("a fold of {job} does not hold its steps"));
                    }
                }
                Ok(Some((kind, key))) => {
                    // The next one is asked for, so it is the recorded one.
                    let _ = journal.ask(kind, key);
                    recorded.push(key);
                }
                Ok(None) => break,
            }
        }
        if !recorded.is_empty() {
            self.coverage.count("programs continued");
        }
        if self.options.bug == Some(Bug::CallBegunAgain) {
            recorded.pop();
        }
        let calls =
            recorded.iter().map(|key| PastCall { key: Key(key.0), kind: CallKind::Step, name: key.to_string() });
        let replay = CallReplay::new(calls.collect(), now(self.now), Duration::ZERO);
        let code = Code::new(job);
        let first = code.begin();
        let (open, ended) = (BTreeMap::new(), VecDeque::new());
        let program = Program { job, code, journal, replay, recorded, open, asked: 0, ended };
        self.nodes[node].programs.insert(assignment.token, program);
        self.program_asks(node, assignment.token, first);
    }

    /// The program asks for calls, and goes on with what is recorded as far as it can.
    fn program_asks(&mut self, node: Node, token: FencingToken, calls: Vec<(u64, StepKey)>) {
        let mut calls = VecDeque::from(calls);
        let mut effects = VecDeque::new();
        loop {
            let Some(program) = self.nodes[node].programs.get_mut(&token) else { return };
            // The code goes on until it waits before it is told of the next end.
            if let Some((branch, key)) = calls.pop_front() {
                program.asked += 1;
                let call = program.asked;
                program.open.insert(call, (branch, key));
                let alone = calls.is_empty() && program.code.is_alone();
                let asked = CallRequest {
                    key: Key(key.0),
                    kind: CallKind::Step,
                    name: key.to_string(),
                    given: String::new(),
                    at: String::new(),
                    alone,
                };
                let mut more = program.replay.ask(call, asked, now(self.now));
                if more.len() > 1 {
                    self.coverage.count("calls released together");
                    if self.options.bug == Some(Bug::ReleasedOutOfOrder) {
                        more.reverse();
                    }
                }
                effects.extend(more);
                continue;
            }
            match effects.pop_front() {
                None => return,
                Some(CallEffect::Release { call, record }) => {
                    let key = program.recorded.get(record).copied().unwrap_or_default();
                    calls.extend(self.call_ends(node, token, call, key));
                }
                Some(CallEffect::Begin(call)) => {
                    let Some((_, key)) = program.open.get(&call).copied() else { continue };
                    let job = program.job;
                    self.oracle.call_made(job, key, token);
                    self.coverage.count("calls made");
                    self.after_up_to(500 * MS, Event::StepMade(node, token, call));
                }
                Some(CallEffect::Differs(difference)) => {
                    let job = program.job;
                    return self.oracle.violate(format!("{job} left its path: {difference}"));
                }
                Some(other) => {
                    let job = program.job;
                    return self.oracle.violate(format!("a call of {job} is not a new one: {other:?}"));
                }
            }
        }
    }

    /// A call has a result. The calls that the program makes next.
    fn call_ends(&mut self, node: Node, token: FencingToken, call: u64, key: StepKey) -> Vec<(u64, StepKey)> {
        let Some(program) = self.nodes[node].programs.get_mut(&token) else { return Vec::new() };
        let job = program.job;
        let Some((branch, _)) = program.open.remove(&call) else { return Vec::new() };
        let next = program.code.answered(branch);
        let is_over = program.code.is_over;
        self.oracle.call_used(job, key, token);
        if is_over {
            self.walk_ends(node, token);
        }
        next
    }

    /// A call is made, and has to be recorded.
    pub(crate) fn call_is_made(&mut self, node: Node, token: FencingToken, call: u64) {
        let Some(program) = self.nodes[node].programs.get_mut(&token) else { return };
        let Some((_, key)) = program.open.get(&call).copied() else { return };
        program.ended.push_back(call);
        let (job, is_first) = (program.job, program.ended.len() == 1);
        if self.options.bug == Some(Bug::AnsweredBeforeApplied) {
            self.oracle.call_used(job, key, token);
        }
        if is_first {
            self.record_step(node, token, step(job, key));
        }
    }

    /// The leader has answered what was sent last.
    pub(crate) fn program_entry(&mut self, node: Node, token: FencingToken, answer: (StepsResult, Entry, Arc<Step>)) {
        let Some(program) = self.nodes[node].programs.get_mut(&token) else { return };
        let job = program.job;
        match answer {
            (StepsResult::Applied, Entry::Step { step: applied, .. }, _) => {
                let key = applied.key;
                program.journal.applied(applied);
                let Some(call) = program.ended.pop_front() else { return };
                let next = program.ended.front().and_then(|call| program.open.get(call)).map(|(_, key)| *key);
                let calls = self.call_ends(node, token, call, key);
                self.program_asks(node, token, calls);
                if let Some(key) = next {
                    self.record_step(node, token, step(job, key));
                }
            }
            (StepsResult::Applied, Entry::Fold(_), step) => {
                program.journal.folded();
                self.record_step(node, token, step);
            }
            (StepsResult::Refused { why, .. }, ..) => {
                self.oracle.violate(format!("a step of {job} was refused: {why}"));
            }
            // The attempt is stopped as soon as its worker hears of the lease.
            _ => {}
        }
    }
}

/// Virtual time as a clock of a worker.
fn now(micros: u64) -> Duration {
    Duration::from_micros(micros)
}
