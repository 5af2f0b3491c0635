//! The world: all machines, the next events, and the loop that executes them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use atlas_types::{Command, Digest, JobId, SinkAck, Step};

use crate::client::ClientState;
use crate::coverage::Coverage;
use crate::leader::Reply;
use crate::member::{Controller, PendingRead};
use crate::message::{Answer, Ask, Client, Event, Member, ToMember};
use crate::node::Machine;
use crate::options::{MS, SECOND};
use crate::oracle::Oracle;
use crate::raft::Raft;
use crate::rng::{Rng, mix};
use crate::runs::Runs;
use crate::{Bug, Options, workload};

pub(crate) const CLUSTER_ID: u128 = 7;

/// After the faults, all jobs have to end in this time.
const LIVENESS_BOUND: u64 = 120 * SECOND;

/// A run that takes more steps than this goes round in circles.
const STEPS_MAX: u64 = 400_000;

/// Longer lines of a trace are cut.
const TRACE_LINE_MAX: usize = 240;

/// What a run was like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What it has exercised.
    pub coverage: Coverage,
    /// A digest of every step: the same for the same seed.
    pub trace: u64,
    /// How many there were.
    pub steps: u64,
}

/// A run that fell short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What was violated, with the command that shows it again.
    pub text: String,
    /// True if nothing was violated: the run did too little to prove anything.
    pub void: bool,
    /// Every step of the run, if the options ask for it.
    pub trace: Vec<String>,
}

impl Failure {
    pub(crate) fn of(options: &Options, what: &str, void: bool) -> Self {
        let seed = options.seed;
        let text = format!(
            "{what}\n  options: {options}\n  repeat: ATLAS_SEED={seed} cargo test -p atlas-sim --test seeds -- one_seed --nocapture"
        );
        Self { text, void, trace: Vec::new() }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// A running digest of what happened.
#[derive(Debug, Default)]
pub(crate) struct Trace(u64);

impl Trace {
    pub(crate) fn add(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.0 = mix(self.0 ^ number).wrapping_add(0x9E37_79B9_7F4A_7C15);
        }
    }
}

pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) rng: Rng,
    /// Microseconds since the run began.
    pub(crate) now: u64,
    pub(crate) faults_on: bool,
    pub(crate) raft: Raft,
    pub(crate) members: Vec<Controller>,
    pub(crate) nodes: Vec<Machine>,
    pub(crate) clients: Vec<ClientState>,
    pub(crate) oracle: Oracle,
    pub(crate) coverage: Coverage,
    pub(crate) trace: Trace,
    /// The artifacts of folds.
    pub(crate) folds: BTreeMap<Digest, Vec<Arc<Step>>>,
    /// What committed events tell of runs.
    pub(crate) runs: Runs,
    lines: Vec<String>,
    due: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, Event>,
    numbers: u64,
}

/// Runs one seed to its end.
pub fn run(options: &Options) -> Result<Report, Failure> {
    let mut world = World::new(options.clone());
    let steps = world.run();
    let ended = format!("(after {steps} steps, {} ms)", world.now / MS);
    let failure = match (world.oracle.violation(), world.coverage.run_shortfall()) {
        (Some(violation), _) => Failure::of(options, &format!("{violation} {ended}"), false),
        (None, Some(short)) => Failure::of(options, &format!("void, it only had {short} {ended}"), true),
        (None, None) => return Ok(Report { coverage: world.coverage, trace: world.trace.0, steps }),
    };
    Err(Failure { trace: world.lines, ..failure })
}

impl World {
    fn new(options: Options) -> Self {
        let mut rng = Rng::new(options.seed);
        let nodes = (0..options.nodes).map(|index| {
            let id = format!("node-{index}").parse().unwrap_or_else(|_| unreachable!("a node name"));
            let rate_ppm = rng.range(0, 20_000) as i64 - 10_000;
            Machine::new(id, workload::inventory(index, &mut rng), rate_ppm)
        });
        let nodes: Vec<Machine> = nodes.collect();
        let mut setup = workload::setup(options.jobs_ended_kept);
        setup.extend(workload::team_setup());
        let clients = (0..options.clients).map(|client| {
            let setup = if client == 0 { setup.clone() } else { Vec::new() };
            ClientState::new(setup, options.jobs_per_client)
        });
        let clients = clients.collect();
        let mut world = Self {
            rng,
            now: 0,
            faults_on: true,
            raft: Raft::default(),
            members: (0..options.members).map(|_| Controller::new()).collect(),
            nodes,
            clients,
            oracle: Oracle::new(options.check_every),
            coverage: Coverage::default(),
            trace: Trace::default(),
            folds: BTreeMap::new(),
            runs: Runs::default(),
            lines: Vec::new(),
            due: BinaryHeap::new(),
            events: BTreeMap::new(),
            numbers: 0,
            options,
        };
        world.at(0, Event::Elect);
        (0..world.nodes.len()).for_each(|node| world.after_up_to(SECOND, Event::NodeStart(node)));
        (0..world.clients.len()).for_each(|client| world.after_up_to(SECOND, Event::ClientActs(client)));
        for n in 0..world.options.faults {
            let at = 2 * SECOND + world.rng.below(world.options.faults_for);
            world.at(at, Event::Fault(n));
        }
        world.at(2 * SECOND + world.options.faults_for, Event::FaultsEnd);
        world
    }

    /// Lets everything happen until all is done, something is violated or it takes too long; returns how many steps it took.
    fn run(&mut self) -> u64 {
        let bound = 2 * SECOND + self.options.faults_for + LIVENESS_BOUND;
        let mut steps = 0;
        while let Some(Reverse((at, number))) = self.due.pop() {
            let Some(event) = self.events.remove(&number) else { continue };
            self.now = at;
            steps += 1;
            if at > bound || steps > STEPS_MAX {
                let unended = self.oracle.unended();
                self.oracle.violate(format!("not all has ended: {unended}"));
            }
            self.step(number, event);
            if self.oracle.violation().is_some() || (!self.faults_on && steps.is_multiple_of(64) && self.is_done()) {
                break;
            }
        }
        self.oracle.finish(self.now);
        steps
    }

    fn is_done(&self) -> bool {
        let caught_up = self.members.iter().all(|member| member.applied == self.raft.log.len());
        caught_up && self.clients.iter().all(ClientState::is_done) && self.oracle.all_ended()
    }

    fn step(&mut self, number: u64, event: Event) {
        // What stands still finds everything that came for it when it goes on.
        if let Some(later) = self.held_up(&event) {
            return self.at(later, event);
        }
        self.trace.add(&[number, self.now]);
        if self.options.trace {
            let mut line = format!("{:>9.3} ms {event:?}", self.now as f64 / MS as f64);
            line.truncate(line.floor_char_boundary(TRACE_LINE_MAX));
            self.lines.push(line);
        }
        match event {
            Event::ToMember(member, message) => self.member_receives(member, message),
            Event::ToNode(node, conn, message) => self.node_receives(node, conn, message),
            Event::ToClient(client, op, answer) => self.client_answered(client, op, answer),
            Event::MemberTick { member, term } => self.member_tick(member, term),
            Event::Commit { member, term, proposal } => self.committed(member, term, proposal),
            Event::Release { member, term, batch } => self.released(member, term, batch),
            Event::Confirm { member, term, round } => self.confirmed(member, term, round),
            Event::Apply(member) => self.apply(member),
            Event::ReadIndex { member, read } => self.read_index(member, read),
            Event::Elect => self.elect(),
            Event::StepDown { member, term } => self.step_down(member, term),
            Event::Restart(member) => self.restart(member),
            Event::NodeTick(node) => self.node_tick(node),
            Event::Connect(node) => self.connect(node),
            Event::HelloTimeout(node, conn) => self.hello_timeout(node, conn),
            Event::Saved { node, boot, number, report } => self.saved(node, boot, number, *report),
            Event::Prepared { node, token, fails } => self.prepared(node, token, fails),
            Event::ChildEnds(node, token) => self.child_ends(node, token),
            Event::SlotGone { node, boot, slot } => self.slot_gone(node, boot, slot),
            Event::SpawnSaid(node, number) => self.say_spawn(node, number),
            Event::SpawnTimeout(node, number) => self.spawn_timeout(node, number),
            Event::StepMade(node, token, number) => self.step_is_made(node, token, number),
            Event::EntrySaid(node, number) => self.say_entry(node, number),
            Event::DozeSaid(node, token) => self.say_doze(node, token),
            Event::StepSaidLate(node, sent) => self.step_said_late(node, *sent),
            Event::LogSaid(node, lines) => self.log_said(node, lines),
            Event::Message { job, number } => self.message(job, number),
            Event::Answer(job, question) => self.answer(job, question),
            Event::Approve(job, looks) => self.approve(job, looks),
            Event::NodeStart(node) => self.start_node(node),
            Event::NodeAwake(node) => self.node_tick(node),
            Event::ClientActs(client) => self.client_acts(client),
            Event::ClientTimeout(client, op) => self.client_timeout(client, op),
            Event::Fault(n) => self.fault(n),
            Event::FaultsEnd => self.faults_end(),
            Event::Heal => self.heal(),
        }
    }

    /// Until when the receiver of an event stands still, if it does.
    fn held_up(&self, event: &Event) -> Option<u64> {
        let until = match event {
            Event::ToMember(member, _)
            | Event::MemberTick { member, .. }
            | Event::Commit { member, .. }
            | Event::Release { member, .. }
            | Event::Confirm { member, .. }
            | Event::Apply(member)
            | Event::ReadIndex { member, .. } => self.members[*member].stalled_until,
            Event::ToNode(node, ..)
            | Event::NodeTick(node)
            | Event::Connect(node)
            | Event::HelloTimeout(node, _)
            | Event::SpawnSaid(node, _)
            | Event::SpawnTimeout(node, _)
            | Event::DozeSaid(node, _)
            | Event::LogSaid(node, _)
            | Event::StepMade(node, ..)
            | Event::EntrySaid(node, _)
            | Event::Saved { node, .. }
            | Event::Prepared { node, .. }
            | Event::ChildEnds(node, _)
            | Event::SlotGone { node, .. } => self.nodes[*node].paused_until,
            _ => 0,
        };
        (until > self.now).then_some(until)
    }

    fn member_receives(&mut self, member: Member, message: ToMember) {
        if !self.members[member].up {
            return;
        }
        match message {
            ToMember::Client { client, op, ask: Ask::Change(mut request) } => {
                if self.options.bug == Some(Bug::NoDedupe) {
                    request.origin.request_id = None;
                    if let Command::SubmitJob(command) = &mut request.command {
                        command.id = JobId(self.rng.next());
                    }
                }
                self.gather(member, *request, Reply::Client { client, op });
            }
            ToMember::Client { client, op, ask: Ask::Read(job) } => self.begin_read(member, client, op, job),
            ToMember::Node { node, conn, frame } => self.node_says(member, node, conn, frame),
            ToMember::Synced { member: of, event } => {
                let command = Command::SinkAck(SinkAck { member: of, event_seq: event });
                self.gather(member, workload::request(command), Reply::Nobody);
            }
        }
    }

    /// Any member answers reads, once it has applied what was committed when it asked the quorum.
    fn begin_read(&mut self, member: Member, client: Client, op: u64, job: JobId) {
        if self.options.bug == Some(Bug::StaleRead) {
            return self.answer_read(member, client, op, job);
        }
        let read = self.fresh();
        self.members[member].reads.push(PendingRead { read, index: None, client, op, job });
        self.after_up_to(20 * MS, Event::ReadIndex { member, read });
    }

    fn read_index(&mut self, member: Member, read: u64) {
        if self.raft.isolated.contains(&member) || self.raft.leader.is_none() || !self.has_quorum() {
            self.members[member].reads.retain(|pending| pending.read != read);
            return;
        }
        let index = self.raft.log.len();
        if let Some(pending) = self.members[member].reads.iter_mut().find(|pending| pending.read == read) {
            pending.index = Some(index);
        }
        self.answer_reads(member);
    }

    pub(crate) fn answer_reads(&mut self, member: Member) {
        let applied = self.members[member].applied;
        let ready = |pending: &mut PendingRead| pending.index.is_some_and(|index| index <= applied);
        let ready: Vec<PendingRead> = self.members[member].reads.extract_if(.., ready).collect();
        for PendingRead { client, op, job, .. } in ready {
            self.answer_read(member, client, op, job);
        }
    }

    fn answer_read(&mut self, member: Member, client: Client, op: u64, job: JobId) {
        let state = self.members[member].replica.state();
        let answer = Answer::Job { job: state.job(job).cloned(), seq: state.seq() };
        self.send_to_client(client, op, answer);
    }
}

/// Time and the network.
impl World {
    /// A number that was not used before.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) fn at(&mut self, at: u64, event: Event) {
        let number = self.fresh();
        self.due.push(Reverse((at, number)));
        self.events.insert(number, event);
    }

    pub(crate) fn after(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    pub(crate) fn after_up_to(&mut self, delay_max: u64, event: Event) {
        let delay = self.rng.range(1, delay_max);
        self.after(delay, event);
    }

    /// When a message that is sent now arrives.
    pub(crate) fn arrival(&mut self) -> u64 {
        let delay_max = if self.faults_on { self.options.delay_max } else { 5 * MS };
        self.now + self.rng.range(50, delay_max)
    }

    pub(crate) fn is_lost(&mut self) -> bool {
        self.faults_on && self.rng.chance(self.options.loss)
    }

    pub(crate) fn arrives_twice(&mut self) -> bool {
        self.faults_on && self.rng.chance(self.options.duplication)
    }

    pub(crate) fn send_to_member(&mut self, member: Member, message: ToMember) {
        if self.is_lost() {
            return;
        }
        if self.arrives_twice() {
            let at = self.arrival();
            self.at(at, Event::ToMember(member, message.clone()));
        }
        let at = self.arrival();
        self.at(at, Event::ToMember(member, message));
    }

    pub(crate) fn send_to_client(&mut self, client: Client, op: u64, answer: Answer) {
        if !self.is_lost() {
            let at = self.arrival();
            self.at(at, Event::ToClient(client, op, answer));
        }
    }
}
