//! A worker's machine: the slot machine with a plain shell around it, and children that end after a while.
//!
//! A stream keeps its order and breaks as a whole, as TCP does; a message may arrive twice. A paused machine stops with
//! its children, and receives everything that was sent to it when it continues.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_slots::{AttemptEnd, Effect, Input, Options as SlotOptions, SlotId, Slots, StopReason};
use atlas_types::{
    Assignment, FailureKind, FencingToken, Inventory, Micros, NodeId, Report, ReportKind, Seq, Spawner, Usage,
};

use crate::Bug;
use crate::family::Spawn;
use crate::journal::programs::Program;
use crate::journal::{Sent, Walk};
use crate::logs::Lines;
use crate::message::{Conn, Event, Frame, Member, Node, ToMember, ToNode};
use crate::options::{MS, SECOND};
use crate::sleeper::Sleeper;
use crate::workload::{self, Agent};
use crate::world::World;

pub(crate) struct Machine {
    pub(crate) id: NodeId,
    pub(crate) inventory: Inventory,
    pub(crate) up: bool,
    /// The boot id of the process.
    pub(crate) boot: u128,
    /// The boot id of the process before this one.
    previous: Option<u128>,
    /// It stands still until then.
    pub(crate) paused_until: u64,
    /// No member can be reached until then.
    pub(crate) cut_until: u64,
    /// The leader it is connected to, and the connection.
    pub(crate) stream: Option<(Member, Conn)>,
    /// The least state that may answer what it says on that connection.
    floor: Seq,
    welcomed: bool,
    slots: Slots,
    children: BTreeMap<FencingToken, Child>,
    /// Results on its disk, by number, and the boot id under which they are reported.
    disk: BTreeMap<u64, Report>,
    disk_boot: u128,
    /// What its children spawned and wait for, by number.
    pub(crate) spawns: BTreeMap<u64, Spawn>,
    /// Children on their way through the journals of their jobs.
    pub(crate) walks: BTreeMap<FencingToken, Walk>,
    /// Its durable programs.
    pub(crate) programs: BTreeMap<FencingToken, Program>,
    /// What they record and no leader has answered, by number.
    pub(crate) entries: BTreeMap<u64, Sent>,
    /// Its attempts that park.
    pub(crate) sleepers: BTreeMap<FencingToken, Sleeper>,
    started_at: u64,
    /// Its clock runs so many millionths too fast or too slow.
    rate_ppm: i64,
    tick_at: u64,
    /// What was sent on the stream arrives in this order.
    sent_until: u64,
    received_until: u64,
    draining: bool,
}

struct Child {
    ends_at: u64,
    report: ReportKind,
    usable: bool,
    slot: SlotId,
}

impl Machine {
    pub(crate) fn new(id: NodeId, inventory: Inventory, rate_ppm: i64) -> Self {
        Self {
            id,
            inventory,
            up: false,
            boot: 0,
            previous: None,
            paused_until: 0,
            cut_until: 0,
            stream: None,
            floor: Seq(0),
            welcomed: false,
            slots: Slots::new(SlotOptions::default()),
            children: BTreeMap::new(),
            disk: BTreeMap::new(),
            disk_boot: 0,
            spawns: BTreeMap::new(),
            walks: BTreeMap::new(),
            programs: BTreeMap::new(),
            entries: BTreeMap::new(),
            sleepers: BTreeMap::new(),
            started_at: 0,
            rate_ppm,
            tick_at: 0,
            sent_until: 0,
            received_until: 0,
            draining: false,
        }
    }

    /// The least state that may answer what was said on `conn`; none if that is closed.
    pub(crate) fn floor_of(&self, conn: Conn) -> Option<Seq> {
        self.stream.filter(|(_, open)| *open == conn).map(|_| self.floor)
    }

    /// The attempts whose children run.
    pub(crate) fn children(&self) -> Vec<FencingToken> {
        self.children.keys().copied().collect()
    }

    /// What the machine's own clock shows.
    fn local(&self, now: u64) -> Duration {
        let elapsed = (now - self.started_at) as i64;
        Duration::from_micros((elapsed + elapsed * self.rate_ppm / 1_000_000) as u64)
    }

    /// The first moment at which its clock shows at least `local`.
    fn global(&self, local: Duration) -> u64 {
        let local = local.as_micros() as i64;
        self.started_at + (local * 1_000_000 / (1_000_000 + self.rate_ppm)) as u64 + 2
    }
}

impl World {
    /// A new process on the machine.
    pub(crate) fn start_node(&mut self, node: Node) {
        if self.nodes[node].up {
            return;
        }
        let boot = u128::from(self.fresh());
        let machine = &mut self.nodes[node];
        machine.up = true;
        machine.previous = Some(machine.boot);
        machine.boot = if machine.disk.is_empty() { boot } else { machine.disk_boot };
        let inventory = machine.inventory.clone();
        let idle_timeout = Duration::from_secs(10);
        let options = SlotOptions { idle_timeout, inventory, ..SlotOptions::default() };
        machine.slots = Slots::deliver(options, machine.disk.clone());
        machine.started_at = self.now;
        machine.tick_at = 0;
        machine.draining = false;
        let delivers = !machine.disk.is_empty();
        if delivers {
            self.coverage.count("results delivered by another process");
        }
        self.coverage.count("new node epochs");
        self.after_up_to(50 * MS, Event::Connect(node));
    }

    /// Kills the process; its children die with it.
    pub(crate) fn crash_node(&mut self, node: Node) {
        if !self.nodes[node].up {
            return;
        }
        for token in self.nodes[node].children() {
            self.leave_step(node, token);
        }
        self.part(node);
        let machine = &mut self.nodes[node];
        machine.up = false;
        machine.spawns.clear();
        machine.walks.clear();
        machine.programs.clear();
        machine.entries.clear();
        machine.sleepers.clear();
        for token in std::mem::take(&mut machine.children).into_keys() {
            self.oracle.child_ended(token, self.now);
        }
        let back = self.rng.range(50, 9_000) * MS;
        self.after(back, Event::NodeStart(node));
    }

    pub(crate) fn connect(&mut self, node: Node) {
        if !self.nodes[node].up || self.nodes[node].stream.is_some() {
            return;
        }
        if self.nodes[node].cut_until > self.now {
            let healed = self.nodes[node].cut_until;
            return self.at(healed, Event::Connect(node));
        }
        let any = self.rng.below(self.members.len() as u64) as usize;
        let member = if self.rng.chance(600) { self.raft.leader.unwrap_or(any) } else { any };
        let conn = self.fresh();
        let machine = &mut self.nodes[node];
        machine.stream = Some((member, conn));
        machine.floor = self.oracle.seq();
        machine.welcomed = false;
        self.after(SECOND, Event::HelloTimeout(node, conn));
        self.step_node(node, Input::Connected);
    }

    pub(crate) fn hello_timeout(&mut self, node: Node, conn: Conn) {
        let machine = &self.nodes[node];
        if !machine.welcomed && machine.stream.is_some_and(|(_, open)| open == conn) {
            self.disconnect(node);
        }
    }

    /// The node's end of its stream breaks; it tries again after a while.
    pub(crate) fn disconnect(&mut self, node: Node) {
        self.part(node);
        self.step_node(node, Input::Disconnected);
        self.after_up_to(400 * MS, Event::Connect(node));
    }

    /// Closes the node's end of its stream. The member hears of it, unless the connection is cut as well.
    fn part(&mut self, node: Node) {
        let Some((member, conn)) = self.nodes[node].stream else { return };
        if self.rng.chance(800) {
            let at = self.arrival().max(self.nodes[node].sent_until + 1);
            self.nodes[node].sent_until = at;
            let message = ToMember::Node { node, conn, frame: Frame::Parted };
            self.at(at, Event::ToMember(member, message));
        }
        self.nodes[node].stream = None;
    }

    pub(crate) fn node_receives(&mut self, node: Node, conn: Conn, message: ToNode) {
        if self.nodes[node].stream.is_none_or(|(_, open)| open != conn) {
            return;
        }
        let input = match message {
            ToNode::Welcome { epoch, ttl, leases } => {
                self.nodes[node].welcomed = true;
                self.resend_spawns(node);
                self.resend_entries(node);
                self.resend_dozes(node);
                let deaf = self.options.bug == Some(Bug::DeafWorker);
                Input::Welcome { epoch, ttl: if deaf { 10 * ttl } else { ttl }, leases }
            }
            ToNode::Grant(assignment) => Input::Granted(assignment),
            ToNode::Cancel(token) => Input::Cancelled { token, grace: Duration::from_millis(200) },
            ToNode::Revoke(token) => Input::Revoked { token },
            ToNode::HandBack(by) => Input::HandBack(by),
            ToNode::RenewAck(number) => Input::RenewAcked { number },
            ToNode::ReportAck { number, result } => Input::ReportAcked { number, result },
            ToNode::StepsAck { number, result } => {
                // First the machine stops what its clock has ended: that must not begin another step.
                self.step_node(node, Input::Tick);
                return self.entry_answered(node, number, result);
            }
            ToNode::Dozed { doze, answer, at } => return self.dozed(node, doze, answer, at),
            ToNode::Spawned(child) => return self.spawn_answered(node, child),
            ToNode::Closed => return self.disconnect(node),
        };
        self.step_node(node, input);
    }

    pub(crate) fn node_tick(&mut self, node: Node) {
        if self.nodes[node].up && self.nodes[node].tick_at <= self.now {
            self.nodes[node].tick_at = 0;
            self.step_node(node, Input::Tick);
        }
    }

    /// Asks a worker to end once it has nothing to run, or at once.
    pub(crate) fn drain_node(&mut self, node: Node, input: Input) {
        if self.nodes[node].up {
            self.nodes[node].draining = true;
            self.step_node(node, input);
        }
    }

    fn step_node(&mut self, node: Node, input: Input) {
        let machine = &mut self.nodes[node];
        if !machine.up {
            return;
        }
        let now = machine.local(self.now);
        for effect in machine.slots.step(input, now) {
            self.perform(node, effect);
        }
        let machine = &mut self.nodes[node];
        if let Some(at) = machine.slots.next_tick() {
            let at = machine.global(at).max(self.now + 1);
            if machine.tick_at == 0 || at < machine.tick_at {
                machine.tick_at = at;
                self.at(at, Event::NodeTick(node));
            }
        }
    }

    fn perform(&mut self, node: Node, effect: Effect) {
        match effect {
            // The leader answers with what it knows; what the worker believes to hold it diffs itself.
            Effect::SendHello { held: _ } => {
                let Machine { boot, previous, .. } = self.nodes[node];
                self.send_frame(node, Frame::Hello { boot, previous });
            }
            Effect::SendRenew { number } => self.send_frame(node, Frame::Renew(number)),
            Effect::SendReport { number, report } => self.send_frame(node, Frame::Report { number, report }),
            Effect::SaveReport { number, report } => {
                let (boot, report) = (self.nodes[node].boot, Box::new((*report).clone()));
                self.after_up_to(20 * MS, Event::Saved { node, boot, number, report });
            }
            Effect::SavedAnswered { number, .. } => {
                self.nodes[node].disk.remove(&number);
            }
            Effect::BeginEpoch => {
                let boot = u128::from(self.fresh());
                self.part(node);
                let machine = &mut self.nodes[node];
                machine.previous = Some(std::mem::replace(&mut machine.boot, boot));
                self.after_up_to(50 * MS, Event::Connect(node));
            }
            Effect::SendWarmChanged { digest, idle } => self.send_frame(node, Frame::Warm { digest, idle }),
            Effect::SendDraining => self.send_frame(node, Frame::Draining),
            Effect::SendLeaving => self.send_frame(node, Frame::Leaving),
            Effect::Disconnect { .. } => {
                self.part(node);
                self.after_up_to(400 * MS, Event::Connect(node));
            }
            Effect::PrepareAttempt { assignment } => {
                let (token, fails) = (assignment.token, self.faults_on && self.rng.chance(50));
                self.after_up_to(300 * MS, Event::Prepared { node, token, fails });
            }
            Effect::StartAttempt { assignment, slot, .. } => self.start_child(node, &assignment, slot),
            Effect::StopAttempt { token, why, grace } => self.stop_child(node, token, why, grace),
            // What comes for it all the same means nothing to the machine.
            Effect::ForgetPrepared { .. } => {}
            // Its sleepers ask the leader themselves.
            Effect::SendPark { .. } | Effect::Resume { .. } => {}
            Effect::EvictSlot { slot } => self.slot_ends(node, slot),
            Effect::Drained => {
                if std::mem::take(&mut self.nodes[node].draining) {
                    self.coverage.count("drains");
                    self.crash_node(node);
                }
            }
        }
    }

    /// What an attempt needs has come, or the node gives it up.
    pub(crate) fn prepared(&mut self, node: Node, token: FencingToken, fails: bool) {
        let input =
            if fails { Input::Unprepared { token, report: ReportKind::NotHeld } } else { Input::Prepared { token } };
        self.step_node(node, input);
    }

    /// A result is on the disk of the process that has it, if that still lives.
    pub(crate) fn saved(&mut self, node: Node, boot: u128, number: u64, report: Report) {
        let machine = &mut self.nodes[node];
        if !machine.up || machine.boot != boot {
            return;
        }
        machine.disk.insert(number, report);
        machine.disk_boot = boot;
        self.step_node(node, Input::Saved { number });
    }

    fn start_child(&mut self, node: Node, assignment: &Assignment, slot: SlotId) {
        let agent = Agent::named(&assignment.agent);
        let (job, token) = (assignment.job, assignment.token);
        self.coverage.count("executions");
        self.oracle.child_started(job, token, self.now);
        // One that journals ends well after its last step, or else when its time is over.
        let journaling = matches!(agent, Agent::Journaling | Agent::Program);
        let runs_for = if journaling { 20 * SECOND } else { self.rng.pick(&[5, 50, 300, 1_500, 4_000, 7_000]) * MS };
        let is_plain = agent == Agent::Shaky || Agent::LONERS.contains(&agent);
        // Attempts end at once on a node that is broken. Its circuit, and that of the shaky agent, close again after the faults.
        let broken = self.faults_on && self.options.seed.is_multiple_of(4) && node == 0 && is_plain;
        let runs_for = if broken { 5 * MS } else { runs_for };
        let fails = journaling
            || self.rng.chance(match agent {
                _ if broken => 950,
                Agent::Flaky => 600,
                Agent::Shaky if self.faults_on => 900,
                _ => 50,
            });
        let execution = Micros(runs_for);
        let usage = Usage { execution, ..Usage::default() };
        let report = if fails {
            let starts = !matches!(agent, Agent::Flaky | Agent::Shaky) || self.rng.chance(500);
            let kind = match (broken, starts) {
                (true, _) => FailureKind::Internal,
                (false, true) => FailureKind::Agent,
                (false, false) => FailureKind::Startup,
            };
            workload::failed(kind, "boom", usage)
        } else {
            ReportKind::Completed { output: workload::output(token), usage, metadata: None }
        };
        // A sleeper ends when it has slept.
        let ends_at = if agent == Agent::Sleeper { u64::MAX } else { self.now + runs_for };
        let usable = self.rng.chance(900);
        self.nodes[node].children.insert(token, Child { ends_at, report, usable, slot });
        self.after_up_to(1_000 * MS, Event::LogSaid(node, Lines { job, token, count: 1 }));
        match agent {
            Agent::Sleeper => return self.sleeper_starts(node, assignment),
            Agent::Parent => self.parent_starts(node, Spawner { job, token }),
            Agent::Journaling => self.begin_walk(node, assignment),
            Agent::Program => self.program_starts(node, assignment),
            _ => {}
        }
        self.at(ends_at, Event::ChildEnds(node, token));
    }

    /// A child on its way through a journal has made its last step.
    pub(crate) fn walk_ends(&mut self, node: Node, token: FencingToken) {
        self.end_walk(node, token);
        if let Some(child) = self.nodes[node].children.get_mut(&token) {
            child.ends_at = self.now + 1;
            child.report =
                ReportKind::Completed { output: workload::output(token), usage: Usage::default(), metadata: None };
            self.after(1, Event::ChildEnds(node, token));
        }
    }

    /// A child gets a signal. Killing takes a moment; a polite one may take all of its grace.
    fn stop_child(&mut self, node: Node, token: FencingToken, why: StopReason, grace: Duration) {
        let parked = why == StopReason::Revoked && self.nodes[node].sleepers.contains_key(&token);
        if parked && self.options.bug == Some(Bug::ParkKeepsPlace) {
            return;
        }
        self.nodes[node].sleepers.remove(&token);
        let killed_within = 20 * MS;
        let grace = grace.as_micros() as u64;
        self.end_walk(node, token);
        let takes = self.rng.range(1, killed_within + if why == StopReason::Cancelled { grace } else { 0 });
        let ends_at = self.now + takes;
        self.nodes[node].spawns.retain(|_, spawn| spawn.spawner.token != token);
        // One that is overdue waited for children of its own.
        let now = self.now;
        let lasts = |child: &&mut Child| child.ends_at > ends_at || child.ends_at <= now;
        if let Some(child) = self.nodes[node].children.get_mut(&token).filter(lasts) {
            child.ends_at = ends_at;
            child.usable = false;
            self.at(ends_at, Event::ChildEnds(node, token));
        }
    }

    /// The child of a sleeper has nothing left to wait for.
    pub(crate) fn end_now(&mut self, node: Node, token: FencingToken) {
        let now = self.now;
        if let Some(child) = self.nodes[node].children.get_mut(&token) {
            child.ends_at = now;
            self.child_ends(node, token);
        }
    }

    /// A child gives up.
    pub(crate) fn fail_now(&mut self, node: Node, token: FencingToken, why: &str) {
        if let Some(child) = self.nodes[node].children.get_mut(&token) {
            child.report = workload::failed(FailureKind::Internal, why, Usage::default());
        }
        self.end_now(node, token);
    }

    pub(crate) fn child_ends(&mut self, node: Node, token: FencingToken) {
        let now = self.now;
        let due = self.nodes[node].children.get(&token).is_some_and(|child| child.ends_at <= now);
        let waits = self.nodes[node].spawns.values().any(|spawn| spawn.spawner.token == token && !spawn.left);
        let children = &mut self.nodes[node].children;
        let Some(child) = (if due && !waits { children.remove(&token) } else { None }) else { return };
        self.nodes[node].spawns.retain(|_, spawn| spawn.spawner.token != token);
        self.end_walk(node, token);
        self.oracle.child_ended(token, now);
        let end = AttemptEnd { report: child.report, slot_usable: child.usable };
        let left = (!child.usable).then_some(child.slot);
        self.step_node(node, Input::Ended { token, end });
        if let Some(slot) = left {
            self.slot_ends(node, slot);
        }
    }

    /// A slot shuts down, which takes a moment.
    fn slot_ends(&mut self, node: Node, slot: SlotId) {
        let boot = self.nodes[node].boot;
        self.after_up_to(20 * MS, Event::SlotGone { node, boot, slot });
    }

    pub(crate) fn slot_gone(&mut self, node: Node, boot: u128, slot: SlotId) {
        if self.nodes[node].boot == boot {
            self.step_node(node, Input::SlotGone { slot });
        }
    }

    pub(crate) fn send_frame(&mut self, node: Node, frame: Frame) {
        let Some((member, conn)) = self.nodes[node].stream else { return };
        let at = self.arrival().max(self.nodes[node].sent_until + 1);
        self.nodes[node].sent_until = at;
        if self.stream_breaks() {
            return self.at(at, Event::ToNode(node, conn, ToNode::Closed));
        }
        let message = ToMember::Node { node, conn, frame };
        if self.arrives_twice() {
            self.at(at, Event::ToMember(member, message.clone()));
        }
        self.at(at, Event::ToMember(member, message));
    }

    pub(crate) fn send_to_node(&mut self, node: Node, conn: Conn, message: ToNode) {
        let at = self.arrival().max(self.nodes[node].received_until + 1);
        self.nodes[node].received_until = at;
        let message = if self.stream_breaks() { ToNode::Closed } else { message };
        if self.arrives_twice() && !matches!(message, ToNode::Welcome { .. }) {
            self.at(at, Event::ToNode(node, conn, message.clone()));
        }
        self.at(at, Event::ToNode(node, conn, message));
    }

    fn stream_breaks(&mut self) -> bool {
        self.faults_on && self.rng.chance(self.options.loss / 5)
    }
}
