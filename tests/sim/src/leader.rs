//! The leader loop: gather, plan at the head, commit, and only then answer (ADR 1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use atlas_duty::sessions::Round;
use atlas_duty::{Sessions, Strategy};
use atlas_replica::{Head, PlannedEntry};
use atlas_state::State;
use atlas_types::{
    BootId, ClusterTime, Command, EventRecord, Inventory, Job, JobId, JobStatus, Level, LoseNode, MemberId, Micros,
    Namespace, NodeEpoch, NodeHealth, NodeId, Outcome, Reason, RegisterNode, Rejection, Request, RunId,
};

use crate::Bug;
use crate::chains;
use crate::member::Role;
use crate::message::{Answer, Client, Conn, Event, Member, Node};
use crate::options::MS;
use crate::routing;
use crate::sleeper::Doze;
use crate::workload;
use crate::world::World;

pub(crate) type Answered = (Reply, Result<Outcome, Rejection>);

/// Whom a planned request is to be answered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    Nobody,
    Client {
        client: Client,
        op: u64,
    },
    Report {
        node: Node,
        conn: Conn,
        number: u64,
    },
    Hello {
        node: Node,
        conn: Conn,
    },
    Spawn {
        node: Node,
        conn: Conn,
        child: JobId,
        left: bool,
    },
    Journal {
        node: Node,
        conn: Conn,
        number: u64,
    },
    Doze {
        node: Node,
        conn: Conn,
        doze: Doze,
    },
    /// Nobody waits for it, but it is counted.
    Log,
}

pub(crate) struct InFlight {
    proposal: u64,
    pub(crate) planned: PlannedEntry,
    replies: Vec<Answered>,
}

/// A worker's stream to this leader.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) conn: Conn,
    pub(crate) epoch: NodeEpoch,
}

pub(crate) struct Leader {
    pub(crate) term: u64,
    /// The log up to the blank entry of this term: only then is the head complete.
    pub(crate) blank: usize,
    pub(crate) head: Option<Head>,
    pub(crate) sessions: Sessions,
    pub(crate) gathered: Vec<(Request, Reply)>,
    pub(crate) in_flight: Option<InFlight>,
    pub(crate) streams: BTreeMap<Node, Stream>,
    /// The runs that this leader began.
    runs_begun: BTreeSet<RunId>,
    /// Answers without an entry, waiting for the quorum.
    releases: BTreeMap<u64, Vec<Answered>>,
    /// The cluster's clock when this leadership began, and this member's own.
    clock: (ClusterTime, u64, i64),
}

impl World {
    pub(crate) fn leader(&mut self, member: Member) -> Option<&mut Leader> {
        match &mut self.members[member].role {
            Role::Leader(leader) => Some(leader),
            Role::Follower => None,
        }
    }

    pub(crate) fn begin_leadership(&mut self, member: Member, term: u64, blank: usize) {
        let ttl = Duration::from_micros(self.options.session_ttl);
        self.members[member].role = Role::Leader(Box::new(Leader {
            term,
            blank,
            head: None,
            sessions: Sessions::new(ttl),
            gathered: Vec::new(),
            in_flight: None,
            streams: BTreeMap::new(),
            runs_begun: BTreeSet::new(),
            releases: BTreeMap::new(),
            clock: (ClusterTime(0), 0, 0),
        }));
    }

    /// The head is the applied state once the blank entry of this leadership is applied.
    pub(crate) fn take_over_if_ready(&mut self, member: Member) {
        let now = self.now;
        let wall = self.wall(member).0;
        let bug = self.options.bug;
        let controller = &mut self.members[member];
        let Role::Leader(leader) = &mut controller.role else { return };
        if leader.head.is_some() || controller.applied < leader.blank {
            return;
        }
        let state = controller.replica.state();
        let kept = controller.head_kept.take().filter(|_| bug == Some(Bug::HeadKept));
        let mut head = kept.unwrap_or_else(|| Head::new(state.clone()));
        // All members are of this program.
        head.raise(Level::CURRENT);
        leader.head = Some(head);
        leader.clock = (state.clock(), now, wall);
        let up = state.nodes().filter(|node| node.node.health == NodeHealth::Ready);
        let up: Vec<(NodeId, NodeEpoch)> = up.map(|node| (node.node.id.clone(), node.node.epoch)).collect();
        if bug == Some(Bug::TakeoverWithoutTtl) {
            let lose = |(node, epoch): &(NodeId, NodeEpoch)| LoseNode { node: node.clone(), epoch: *epoch };
            let lost = up.iter().map(|node| (workload::request(Command::LoseNode(lose(node))), Reply::Nobody));
            leader.gathered.extend(lost);
        }
        leader.sessions.take_over(up, Duration::from_micros(now));
        let term = leader.term;
        self.after_up_to(10 * MS, Event::MemberTick { member, term });
    }

    pub(crate) fn end_leadership(&mut self, member: Member) {
        let Role::Leader(leader) = std::mem::replace(&mut self.members[member].role, Role::Follower) else { return };
        if self.options.bug == Some(Bug::HeadKept) {
            self.members[member].head_kept.clone_from(&leader.head);
        }
        // What was never planned was never proposed; all the rest may be in the log.
        for (_, reply) in leader.gathered {
            self.send_reply(reply, Answer::NotLeader);
        }
        let released = leader.releases.into_values().flatten();
        for (reply, _) in leader.in_flight.into_iter().flat_map(|in_flight| in_flight.replies).chain(released) {
            self.send_reply(reply, Answer::Unknown);
        }
        for (node, stream) in leader.streams {
            self.close_stream(node, stream.conn);
        }
    }

    pub(crate) fn member_tick(&mut self, member: Member, term: u64) {
        let now = Duration::from_micros(self.now);
        let Some(leader) = self.leader(member).filter(|leader| leader.head.is_some() && leader.term == term) else {
            return;
        };
        leader.sessions.tick(now);
        let round = leader.sessions.begin_round();
        if let Some(round) = round {
            if self.options.bug == Some(Bug::RenewalWithoutQuorum) {
                self.acknowledge(member, round);
            } else {
                self.after_up_to(20 * MS, Event::Confirm { member, term, round });
            }
        }
        self.pump(member);
        self.after(self.options.session_ttl / 10, Event::MemberTick { member, term });
    }

    /// Plans what was gathered, unless an entry is in flight: that is the group commit.
    pub(crate) fn pump(&mut self, member: Member) {
        let wall = self.wall(member);
        let now = self.now;
        let bug = self.options.bug;
        let tiny = self.rng.chance(100);
        let voters: Vec<MemberId> = (0..self.members.len() as u64).map(MemberId).collect();
        let runs = self.runs.clone();
        let Some(leader) = self.leader(member) else { return };
        let Some(head) = leader.head.as_mut().filter(|_| leader.in_flight.is_none()) else { return };
        let mut gathered = std::mem::take(&mut leader.gathered);
        if tiny && gathered.len() > 1 {
            leader.gathered = gathered.split_off(1);
        }
        let (requests, replies): (Vec<Request>, Vec<Reply>) = gathered.into_iter().unzip();
        let (base, began, wall_began) = leader.clock;
        let elapsed = match bug {
            Some(Bug::TimeoutsByWallClock) => u64::try_from(wall.0 - wall_began).unwrap_or(0),
            _ => now - began,
        };
        let (sessions, begun) = (&leader.sessions, &mut leader.runs_begun);
        let mut duties = |state: &State, budget: usize| {
            let mut runs = runs.advance(state, begun, bug);
            runs.extend(chains::advance(state));
            if !runs.is_empty() {
                return runs;
            }
            let decisions = routing::decide(state);
            if !decisions.is_empty() {
                return decisions;
            }
            let mut commands = duties(state, sessions, &voters, budget);
            if bug == Some(Bug::WakeForgotten) {
                commands.retain(|request| !wakes_parked(state, request));
            }
            match bug {
                Some(Bug::NamespaceStarves) => commands.retain(|request| !starves(state, request)),
                Some(Bug::YoungestFirst) => commands.retain(|request| !is_oldest(state, request)),
                _ => {}
            }
            commands
        };
        let planned = head.plan(requests, wall, base.plus(Micros(elapsed)), &mut duties);
        let mut replies = replies.into_iter();
        let outcomes = planned.outcomes.iter().cloned();
        let mut answered: Vec<Answered> =
            outcomes.zip(replies.by_ref()).map(|(outcome, reply)| (reply, outcome)).collect();
        let leftover = planned.leftover.iter().cloned().zip(replies);
        leader.gathered.splice(0..0, leftover);
        let term = leader.term;
        if planned.panics > 0 {
            self.oracle.violate("a command or duty panicked".to_owned());
        }
        if planned.is_empty() {
            if !answered.is_empty() {
                self.release_after_quorum(member, answered);
            }
            return;
        }
        if bug == Some(Bug::AckBeforeCommit) {
            let to_client = |(reply, _): &mut Answered| matches!(reply, Reply::Client { .. });
            for (reply, outcome) in answered.extract_if(.., to_client) {
                self.send_reply(reply, Answer::Outcome(outcome));
            }
        }
        let proposal = self.fresh();
        let Some(leader) = self.leader(member) else { return };
        leader.in_flight = Some(InFlight { proposal, planned, replies: answered });
        if !self.leads(member, term) {
            self.coverage.count("entries of a deposed leader");
        }
        // Now and then a majority takes its time: that is when leaders go with an entry in flight.
        let slow = self.faults_on && self.rng.chance(100);
        self.after_up_to(if slow { 600 * MS } else { 15 * MS }, Event::Commit { member, term, proposal });
    }

    /// The entry in flight is committed, if this member still leads.
    pub(crate) fn committed(&mut self, member: Member, term: u64, proposal: u64) {
        if !self.leads(member, term) {
            return;
        }
        if !self.has_quorum() {
            self.after(100 * MS, Event::Commit { member, term, proposal });
            return;
        }
        let Some(leader) = self.leader(member) else { return };
        let Some(InFlight { planned, replies, .. }) = leader.in_flight.take_if(|entry| entry.proposal == proposal)
        else {
            return;
        };
        let bytes: Arc<[u8]> = planned.entry_bytes.as_slice().into();
        self.commit(Arc::clone(&bytes));
        let before = self.members[member].replica.state().clone();
        let controller = &mut self.members[member];
        controller.applied += 1;
        match controller.replica.adopt(&planned) {
            Ok(applied) if applied.stale => self.coverage.count("stale entries"),
            Ok(_) => {}
            Err(halt) => self.oracle.violate(format!("the leader, member {member}, stopped: {halt:?}")),
        }
        let controller = &self.members[member];
        self.oracle.check_replica(member, controller.applied, controller.replica.state());
        // A proposal that was retried below us may be in the log twice: the second is stale.
        if self.faults_on && self.rng.chance(20) {
            self.commit(bytes);
            self.apply_next(member);
        }
        self.keep_sessions(member, &planned);
        self.settle(member, replies);
        self.tell_workers(member, &before, &planned.events);
        self.answer_reads(member);
        for other in (0..self.members.len()).filter(|&other| other != member) {
            self.after_up_to(40 * MS, Event::Apply(other));
        }
        self.pump(member);
    }

    /// Holds answers that need no entry until the quorum has said that this member still leads.
    pub(crate) fn release_after_quorum(&mut self, member: Member, answered: Vec<Answered>) {
        if self.options.bug == Some(Bug::RefusalWithoutQuorum) {
            self.settle_refusals(member, answered);
            return;
        }
        let batch = self.fresh();
        let Some(leader) = self.leader(member) else { return };
        let term = leader.term;
        leader.releases.insert(batch, answered);
        self.after_up_to(20 * MS, Event::Release { member, term, batch });
    }

    pub(crate) fn released(&mut self, member: Member, term: u64, batch: u64) {
        if !self.leads(member, term) {
            return;
        }
        if !self.has_quorum() {
            self.after(100 * MS, Event::Release { member, term, batch });
            return;
        }
        let answered = self.leader(member).and_then(|leader| leader.releases.remove(&batch));
        self.settle_refusals(member, answered.unwrap_or_default());
    }

    /// What needs no entry is as good as a read: it may not be older than what those who ask could know.
    fn settle_refusals(&mut self, member: Member, answered: Vec<Answered>) {
        let seq = self.members[member].replica.state().seq();
        for (reply, _) in &answered {
            let floor = match *reply {
                Reply::Nobody | Reply::Log => None,
                Reply::Client { client, op } => self.clients[client].floor_of(op),
                Reply::Report { node, conn, .. }
                | Reply::Hello { node, conn }
                | Reply::Spawn { node, conn, .. }
                | Reply::Journal { node, conn, .. }
                | Reply::Doze { node, conn, .. } => self.nodes[node].floor_of(conn),
            };
            if let Some(floor) = floor {
                self.oracle.check_age(seq, floor);
            }
        }
        self.settle(member, answered);
    }

    pub(crate) fn confirmed(&mut self, member: Member, term: u64, round: Round) {
        if self.leads(member, term) && self.has_quorum() {
            self.acknowledge(member, round);
        }
    }

    fn settle(&mut self, member: Member, answered: Vec<Answered>) {
        for (reply, outcome) in answered {
            match (reply, &outcome) {
                (Reply::Hello { node, conn }, Ok(Outcome::NodeRegistered { epoch })) => {
                    self.welcome(member, node, conn, *epoch);
                }
                (Reply::Hello { node, conn }, _) => self.close_stream(node, conn),
                (Reply::Report { node, conn, number }, _) => self.answer_report(node, conn, number, &outcome),
                (Reply::Journal { node, conn, number }, _) => self.answer_entry(node, conn, number, &outcome),
                (Reply::Spawn { node, conn, child, left }, _) => {
                    self.answer_spawn(member, (node, conn, child, left), &outcome);
                }
                (Reply::Doze { node, conn, doze }, _) => self.answer_doze(member, (node, conn, doze), &outcome),
                (Reply::Log, Err(Rejection::Fenced)) => self.coverage.count("fenced logs"),
                (reply, _) => self.send_reply(reply, Answer::Outcome(outcome)),
            }
        }
    }

    /// A request for the leader's next entry; a member that does not lead says so.
    pub(crate) fn gather(&mut self, member: Member, request: Request, reply: Reply) {
        match self.leader(member).filter(|leader| leader.head.is_some()) {
            Some(leader) => {
                leader.gathered.push((request, reply));
                self.pump(member);
            }
            None => self.send_reply(reply, Answer::NotLeader),
        }
    }

    /// A worker says hello. A resume needs no entry, only the certainty that this member leads.
    pub(crate) fn hello(&mut self, member: Member, node: Node, conn: Conn, (boot, previous): (u128, Option<u128>)) {
        let (id, inventory) = (self.nodes[node].id.clone(), self.nodes[node].inventory.clone());
        let now = Duration::from_micros(self.now);
        let Some((head, sessions)) =
            self.leader(member).and_then(|leader| Some((leader.head.as_ref()?, &leader.sessions)))
        else {
            self.close_stream(node, conn);
            return;
        };
        let other = head.state().node(&id).map(|found| &found.node).filter(|node| node.boot_id != BootId(boot));
        let successor = |other: &atlas_types::Node| previous == Some(other.boot_id.0);
        if other.is_some_and(|other| !sessions.may_take(&id, other.epoch, successor(other), now)) {
            self.coverage.count("names refused");
            self.close_stream(node, conn);
            return;
        }
        match resumed(head.state(), &id, boot, &inventory) {
            Some(epoch) => {
                let answered = vec![(Reply::Hello { node, conn }, Ok(Outcome::NodeRegistered { epoch }))];
                self.release_after_quorum(member, answered);
            }
            None => {
                let command = RegisterNode { node: id, boot_id: BootId(boot), inventory };
                let request = workload::request(Command::RegisterNode(command));
                self.gather(member, request, Reply::Hello { node, conn });
            }
        }
    }

    /// Every node that is ready has a session at its leader, and no other.
    fn keep_sessions(&mut self, member: Member, planned: &PlannedEntry) {
        let now = Duration::from_micros(self.now);
        let Some(leader) = self.leader(member) else { return };
        leader.sessions.applied(planned.events.iter().map(|record| &record.event), &planned.state, now);
        if let Some(node) = leader.sessions.mismatch(&planned.state) {
            self.oracle.violate(format!("{node} is ready without a session, or has one and is not ready"));
        }
    }

    fn tell_workers(&mut self, member: Member, before: &State, events: &[EventRecord]) {
        for record in events {
            self.tell_worker(member, before, &record.event);
        }
    }
}

/// The epoch that a hello resumes; none if it has to be recorded.
fn resumed(state: &State, id: &NodeId, boot: u128, inventory: &Inventory) -> Option<NodeEpoch> {
    let node = &state.node(id)?.node;
    let same = node.boot_id == BootId(boot) && node.health == NodeHealth::Ready && *node.inventory == *inventory;
    same.then_some(node.epoch)
}

/// Whether a request wakes a job for which a time has come while it was parked.
fn wakes_parked(state: &State, request: &Request) -> bool {
    let Command::WakeJob(command) = &request.command else { return false };
    state.job(command.job).is_some_and(|job| job.reason == Reason::Parked)
}

/// Whether a request grants a job of the one namespace while jobs of the other wait.
fn starves(state: &State, request: &Request) -> bool {
    let waits = |job: &Arc<Job>| matches!(job.reason, Reason::Queued | Reason::Lost);
    let mut others = state.jobs(&Namespace::default_namespace(), Some(JobStatus::Pending), None);
    matches!(request.command, Command::GrantLease(_))
        && request.origin.namespace == workload::team()
        && others.any(waits)
}

/// Whether a request grants the first of several jobs of an agent that wait.
fn is_oldest(state: &State, request: &Request) -> bool {
    let Command::GrantLease(grant) = &request.command else { return false };
    let Some(granted) = state.job(grant.job) else { return false };
    let waits = |job: &&Arc<Job>| matches!(job.reason, Reason::Queued | Reason::Lost) && job.agent == granted.agent;
    let pending = state.jobs(&granted.namespace, Some(JobStatus::Pending), None).filter(waits);
    let turns: Vec<_> = pending.map(|job| state.turn(job)).collect();
    turns.len() > 1 && turns.iter().min() == Some(&state.turn(granted))
}

fn duties(state: &State, sessions: &Sessions, voters: &[MemberId], budget: usize) -> Vec<Request> {
    let mut commands = atlas_duty::follow(state, sessions, state.clock(), Strategy::BinPack, budget);
    commands.extend(atlas_duty::prune(state, voters, budget - commands.len()));
    commands
}
