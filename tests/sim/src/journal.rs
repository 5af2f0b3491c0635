//! Journals: the worker's side, which replays and records the steps of a job, and the leader's side, which applies them.
//!
//! The child of a journaling agent makes a few steps, one after the other. Each takes a while, is recorded, and is used once the leader has
//! answered. What a worker sends about a journal it repeats until it is answered, across connections.

pub(crate) mod programs;

use std::sync::Arc;

use atlas_slots::{Recording, Replay, StepAnswer};
use atlas_types::{
    AssignedJournal, Assignment, Command, Digest, FencingToken, Fold, FoldSteps, JobId, Journal, Outcome, Payload,
    PayloadBody, RecordSteps, Rejection, Reservation, ReserveBudget, Step, StepKey, StepKind, StepUsage, StepsResult,
};

use crate::Bug;
use crate::leader::Reply;
use crate::message::{Conn, Event, Frame, Member, Node, ToNode};
use crate::options::MS;
use crate::rng::mix;
use crate::workload;
use crate::world::World;

/// A child on its way through the journal of its job.
pub(crate) struct Walk {
    job: JobId,
    /// The job whose steps it makes: its own, or the first one that it is a fork of.
    path: JobId,
    replay: Replay,
}

/// What is sent about a journal.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    Step { from: u64, step: Arc<Step> },
    Fold(Fold),
}

/// An entry that is not answered yet.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) job: JobId,
    pub(crate) token: FencingToken,
    pub(crate) entry: Entry,
    /// The step that is recorded with it, or after it.
    step: Arc<Step>,
}

/// How many steps the attempts of a job on this path make together.
pub(crate) fn steps_of(path: JobId) -> u64 {
    3 + path.0 % 6
}

/// A step as every attempt makes it.
fn step(path: JobId, number: u64) -> Step {
    let hash = mix(path.0 ^ number);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&hash.to_le_bytes());
    let outcome = Payload::inline(&vec![b'1'; 1 + (hash % 12_000) as usize]);
    let kind = if number == 0 { StepKind::Start } else { StepKind::Model };
    Step { kind, key: StepKey(key), outcome, usage: StepUsage::default() }
}

/// The worker's side.
impl World {
    /// A child begins with what earlier attempts have recorded.
    pub(crate) fn begin_walk(&mut self, node: Node, assignment: &Assignment) {
        let mut assigned: AssignedJournal = assignment.journal.as_deref().cloned().unwrap_or_default();
        if self.options.bug == Some(Bug::ReplayDropsStep) {
            Arc::make_mut(&mut assigned.journal).steps.pop();
        }
        if assigned.journal.next() > 0 {
            self.coverage.count("journals continued");
        }
        let path = self.oracle.path_of(assignment.job);
        let walk = Walk { job: assignment.job, path, replay: Replay::new(assigned) };
        self.nodes[node].walks.insert(assignment.token, walk);
        self.walk_on(node, assignment.token);
    }

    /// Replays what is recorded, and begins the first step that is not; the last one ends the child.
    fn walk_on(&mut self, node: Node, token: FencingToken) {
        loop {
            let Some(walk) = self.nodes[node].walks.get_mut(&token) else { return };
            let (job, path, number) = (walk.job, walk.path, walk.replay.next());
            if number == steps_of(path) {
                return self.walk_ends(node, token);
            }
            let wanted = step(path, number);
            match walk.replay.ask(wanted.kind, wanted.key) {
                Ok(StepAnswer::Recorded(recorded)) => {
                    if *recorded != wanted {
                        self.oracle.violate(format!("step {number} of {job} was recorded otherwise than it was made"));
                    }
                    self.oracle.step_used(job, number);
                }
                Ok(StepAnswer::Load(artifact)) => {
                    let steps = self.folds.get(&digest(&artifact)).cloned().unwrap_or_default();
                    self.coverage.count("folds replayed");
                    let Some(walk) = self.nodes[node].walks.get_mut(&token) else { return };
                    if walk.replay.loaded(steps).is_err() {
                        return self.oracle.violate(format!("a fold of {job} does not hold its steps"));
                    }
                }
                Ok(StepAnswer::New) => {
                    self.oracle.step_made(job, number, token);
                    self.coverage.count("steps made");
                    return self.after_up_to(500 * MS, Event::StepMade(node, token, number));
                }
                Err(differs) => return self.oracle.violate(format!("{job} left its path: {differs}")),
            }
        }
    }

    /// A step is made, and has to be recorded.
    pub(crate) fn step_is_made(&mut self, node: Node, token: FencingToken, number: u64) {
        if self.nodes[node].programs.contains_key(&token) {
            return self.call_is_made(node, token, number);
        }
        let Some(walk) = self.nodes[node].walks.get(&token).filter(|walk| walk.replay.next() == number) else { return };
        let step = Arc::new(step(walk.path, number));
        self.record_step(node, token, step);
        if self.options.bug == Some(Bug::UseBeforeApplied) {
            let Some(walk) = self.nodes[node].walks.get_mut(&token) else { return };
            let job = walk.job;
            self.oracle.step_used(job, number);
        }
    }

    /// Sends a step, or the fold that makes room for it.
    pub(crate) fn record_step(&mut self, node: Node, token: FencingToken, step: Arc<Step>) {
        let fold = self.fresh();
        let machine = &self.nodes[node];
        let walk = machine.walks.get(&token).map(|walk| (walk.job, &walk.replay));
        let program = machine.programs.get(&token).map(|program| (program.job, &program.journal));
        let Some((job, journal)) = walk.or(program) else { return };
        let entry = match journal.record(&step) {
            Recording::Send { from } => Entry::Step { from, step: Arc::clone(&step) },
            Recording::Fold { upto, steps } => {
                let artifact = artifact(fold);
                self.folds.insert(digest(&artifact), steps);
                Entry::Fold(Fold { upto, artifact })
            }
        };
        let number = self.fresh();
        self.nodes[node].entries.insert(number, Sent { job, token, entry, step });
        self.say_entry(node, number);
    }

    pub(crate) fn say_entry(&mut self, node: Node, number: u64) {
        if let Some(sent) = self.nodes[node].entries.get(&number).cloned() {
            self.send_frame(node, Frame::Journal { number, sent });
        }
    }

    /// Says again what was not answered before this connection.
    pub(crate) fn resend_entries(&mut self, node: Node) {
        for number in self.nodes[node].entries.keys().copied().collect::<Vec<_>>() {
            self.say_entry(node, number);
        }
    }

    /// The leader has answered. The machine has stopped attempts whose leases ended meanwhile.
    pub(crate) fn entry_answered(&mut self, node: Node, number: u64, result: StepsResult) {
        let Some(Sent { job, token, entry, step }) = self.nodes[node].entries.get(&number).cloned() else { return };
        if result == StepsResult::NoRoom {
            self.coverage.count("steps without room");
            return self.after(300 * MS, Event::EntrySaid(node, number));
        }
        self.nodes[node].entries.remove(&number);
        if self.nodes[node].programs.contains_key(&token) {
            return self.program_entry(node, token, (result, entry, step));
        }
        let Some(walk) = self.nodes[node].walks.get_mut(&token) else { return };
        match (result, entry) {
            (StepsResult::Applied, Entry::Step { from, step }) => {
                walk.replay.applied(step);
                self.oracle.step_used(job, from);
                self.walk_on(node, token);
            }
            (StepsResult::Applied, Entry::Fold(_)) => {
                walk.replay.folded();
                self.coverage.count("folds");
                self.record_step(node, token, step);
            }
            (StepsResult::Refused { step, why }, _) => {
                self.oracle.violate(format!("step {step} of {job} was refused: {why}"));
            }
            (StepsResult::OverBudget { .. }, _) => {
                self.oracle.violate(format!("a step of {job} is over a budget, but steps reserve nothing"));
            }
            // The attempt is stopped as soon as its worker hears of the lease.
            (StepsResult::Fenced | StepsResult::Busy | StepsResult::NoRoom, _) => {}
        }
    }

    /// An attempt is over: nothing more is made or sent for it.
    pub(crate) fn end_walk(&mut self, node: Node, token: FencingToken) {
        self.leave_step(node, token);
        let machine = &mut self.nodes[node];
        machine.walks.remove(&token);
        machine.programs.remove(&token);
        machine.entries.retain(|_, sent| sent.token != token);
    }

    /// The step that an attempt was at when it was stopped may reach a leader late: the network held it back.
    pub(crate) fn leave_step(&mut self, node: Node, token: FencingToken) {
        let Some(walk) = self.nodes[node].walks.get(&token) else { return };
        let (job, path, from) = (walk.job, walk.path, walk.replay.next());
        if self.faults_on && from < steps_of(path) && self.rng.chance(500) {
            // What a model answers is not the same every time.
            let outcome = Payload::inline(token.0.to_string().as_bytes());
            let step = Arc::new(Step { outcome, ..step(path, from) });
            let sent = Sent { job, token, entry: Entry::Step { from, step: Arc::clone(&step) }, step };
            self.after_up_to(6_000 * MS, Event::StepSaidLate(node, Box::new(sent)));
        }
    }

    /// It arrives on a connection that its worker has closed, after its lease has ended.
    pub(crate) fn step_said_late(&mut self, node: Node, sent: Sent) {
        let holds = self.oracle.state().lease(sent.job).is_some_and(|lease| lease.token == sent.token);
        if let Some(member) = self.raft.leader.filter(|_| !holds) {
            self.journal_said(member, node, 0, 0, sent);
        }
    }
}

/// The side of people.
impl World {
    /// The beginning of a fold that ends in the middle of it after so many steps, as doors cut it for forks.
    pub(crate) fn cut(&mut self, journal: &Journal, steps: u64) -> Option<Payload> {
        let at = journal.folds.iter().position(|fold| fold.upto > steps)?;
        let from = at.checked_sub(1).and_then(|before| journal.folds.get(before)).map_or(0, |fold| fold.upto);
        if from == steps {
            return None;
        }
        let mut beginning = self.folds.get(&digest(&journal.folds[at].artifact)).cloned().unwrap_or_default();
        if self.options.bug != Some(Bug::ForkCutsLate) {
            beginning.truncate((steps - from) as usize);
        }
        let cut = artifact(self.fresh());
        self.folds.insert(digest(&cut), beginning);
        self.coverage.count("folds cut for forks");
        Some(cut)
    }
}

/// The leader's side.
impl World {
    pub(crate) fn journal_said(&mut self, member: Member, node: Node, conn: Conn, number: u64, sent: Sent) {
        let Sent { job, mut token, entry, .. } = sent;
        let mut node_id = self.nodes[node].id.clone();
        if self.options.bug == Some(Bug::StepsUnfenced)
            && let Some(lease) = self.members[member].replica.state().lease(job)
        {
            (token, node_id) = (lease.token, lease.node.clone());
        }
        if let Entry::Step { from, step } = &entry {
            let call = Reservation { key: step.key, nanodollars: 30 + from };
            let command = Command::ReserveBudget(ReserveBudget { job, node: node_id.clone(), token, call });
            self.gather(member, workload::request(command), Reply::Nobody);
        }
        let command = match entry {
            Entry::Step { from, step } => {
                Command::RecordSteps(RecordSteps { job, node: node_id, token, from, steps: vec![step] })
            }
            Entry::Fold(Fold { upto, artifact }) => {
                Command::FoldSteps(FoldSteps { job, node: node_id, token, upto, artifact })
            }
        };
        self.gather(member, workload::request(command), Reply::Journal { node, conn, number });
    }

    pub(crate) fn answer_entry(&mut self, node: Node, conn: Conn, number: u64, outcome: &Result<Outcome, Rejection>) {
        let result = match outcome {
            Ok(_) => StepsResult::Applied,
            Err(Rejection::Fenced | Rejection::UnknownJob { .. } | Rejection::WrongStatus { .. }) => {
                self.coverage.count("fenced steps");
                StepsResult::Fenced
            }
            Err(Rejection::LimitReached { what: "journal bytes", .. }) => StepsResult::NoRoom,
            Err(rejection) => StepsResult::Refused { step: 0, why: rejection.to_string() },
        };
        self.send_to_node(node, conn, ToNode::StepsAck { number, result });
    }
}

/// The artifact of a fold.
pub(crate) fn artifact(number: u64) -> Payload {
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&number.to_le_bytes());
    Payload { key_id: 0, body: PayloadBody::Artifact { digest: Digest(digest), size_bytes: 1 } }
}

pub(crate) fn digest(artifact: &Payload) -> Digest {
    match artifact.body {
        PayloadBody::Artifact { digest, .. } => digest,
        PayloadBody::Inline(_) => Digest([0; 32]),
    }
}
