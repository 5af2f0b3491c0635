//! Faults other than those of the network.

use atlas_slots::Input;
use atlas_types::{
    Circuit, Command, Cordon, DrainNode, LoseNode, Micros, Namespace, NodeEpoch, NoteRival, ResumeAgent, ResumeNode,
    level,
};

use crate::Bug;
use crate::chains;
use crate::leader::Reply;
use crate::message::Event;
use crate::options::{MS, SECOND};
use crate::workload::{self, Agent};
use crate::world::World;

/// How much longer than its election timeout a group waits before it takes a leader that stands still for dead.
const ELECTION_TIMEOUT: u64 = 350 * MS;

impl World {
    /// The `n`-th fault. The kinds take turns, so that every run sees most of them.
    pub(crate) fn fault(&mut self, n: u64) {
        if !self.faults_on {
            // It was put off until the faults were over.
            return;
        }
        if self.raft.leader.is_none() {
            // Nothing that is broken already is broken again: a fault that hits nobody is none.
            return self.after_up_to(SECOND, Event::Fault(n));
        }
        self.coverage.count("faults");
        let member = self.rng.below(self.members.len() as u64) as usize;
        let node = self.rng.below(self.nodes.len() as u64) as usize;
        match (self.options.seed + 5 * n) % 14 {
            0 | 1 => {
                let leader = self.raft.leader.unwrap_or(member);
                self.crash(leader);
            }
            2 => self.crash(member),
            3 | 4 => self.cut_leader(),
            5 => self.stall_leader(),
            6 => self.crash_node(node),
            7 | 8 => self.pause_node(node),
            9 | 10 => self.break_stream(node),
            11 => {
                self.coverage.count("wall clock jumps");
                let seconds = self.rng.pick(&[-3_600, -5, 5, 60, 86_400]);
                self.members[member].wall_offset += seconds * SECOND as i64;
            }
            12 => {
                let input = if self.rng.chance(500) { Input::Drain } else { Input::Abandon };
                self.drain_node(node, input);
            }
            _ => self.operate(node),
        }
    }

    /// The leader is cut from its peers, and still reached by clients and workers until it notices.
    fn cut_leader(&mut self) {
        let Some(member) = self.raft.leader else { return };
        let term = self.raft.term;
        self.raft.isolated.insert(member);
        self.depose();
        let unaware = self.rng.range(100, 8_000) * MS;
        self.after(unaware, Event::StepDown { member, term });
    }

    /// The leader's loop stands still; beyond the election timeout it is a leader no more when it goes on.
    fn stall_leader(&mut self) {
        let Some(member) = self.raft.leader else { return };
        self.coverage.count("stalled loops");
        let long = self.rng.range(200, 6_000) * MS;
        let term = self.raft.term;
        self.members[member].stalled_until = self.now + long;
        // Some groups only notice late; with one member there would be nobody to notice at all.
        if long > ELECTION_TIMEOUT && self.rng.chance(500) {
            self.depose();
            let heard = self.rng.range(0, 500) * MS;
            self.after(long + heard, Event::StepDown { member, term });
        }
    }

    fn pause_node(&mut self, node: usize) {
        if !self.nodes[node].up || self.nodes[node].paused_until > self.now {
            return;
        }
        self.coverage.count("node pauses");
        let long = self.rng.range(1, 3 * self.options.session_ttl);
        let children = self.nodes[node].children();
        self.oracle.freeze(&children, self.now, self.now + long);
        self.nodes[node].paused_until = self.now + long;
        self.after(long, Event::NodeAwake(node));
    }

    /// A worker's stream breaks; it may be cut off for longer than its session lives, while its children go on.
    fn break_stream(&mut self, node: usize) {
        let Some((member, _)) = self.nodes[node].stream else { return };
        if self.rng.chance(700) {
            self.coverage.count("workers cut off");
            self.nodes[node].cut_until = self.now + self.rng.range(1, 3 * self.options.session_ttl);
        }
        self.disconnect(node);
        if self.options.bug == Some(Bug::LossByBrokenStream) {
            let id = self.nodes[node].id.clone();
            let state = self.members[member].replica.state();
            if let Some(epoch) = state.node(&id).map(|found| found.node.epoch) {
                let command = Command::LoseNode(LoseNode { node: id, epoch });
                self.gather(member, workload::request(command), Reply::Nobody);
            }
        }
    }

    /// An operator has a wish for a node.
    fn operate(&mut self, node: usize) {
        let Some(member) = self.raft.leader else { return };
        let id = self.nodes[node].id.clone();
        let command = match self.rng.below(16) {
            0..3 => {
                self.coverage.count("deadlines of drains");
                let deadline = Some(Micros::from_millis(self.rng.range(0, 3_000)));
                Command::DrainNode(DrainNode { node: id, deadline })
            }
            // The first stays where it is: it can run everything.
            3..6 if node > 0 => {
                self.coverage.count("nodes labelled");
                workload::relabel(id, &mut self.rng)
            }
            // Below that level it would be taken for a node, which never has a session.
            6 if self.members[member].replica.state().level() >= level::CHECKED_INVENTORIES => {
                self.coverage.count("inventories refused");
                workload::register_twins(id)
            }
            9..11 | 14 if self.members[member].replica.state().level() >= level::OBJECTS => {
                self.coverage.count("objects put, deleted or observed");
                workload::configure(self.members[member].replica.state(), &mut self.rng)
            }
            11..13 if self.members[member].replica.state().level() >= level::RUNS => {
                self.coverage.count("chains started or cancelled");
                chains::operate(self.members[member].replica.state(), &mut self.rng)
            }
            13 if self.members[member].replica.state().level() >= level::RIVALS => {
                let epoch = self.members[member].replica.state().node(&id).map(|found| found.node.epoch);
                let (epoch, address) = (epoch.unwrap_or(NodeEpoch(1)), "10.0.0.9:1".into());
                Command::NoteRival(NoteRival { node: id, epoch, address, holder: "10.0.0.1:1".into() })
            }
            7..9 => {
                self.coverage.count("versions published, retired or deleted");
                workload::republish(&mut self.rng)
            }
            _ => Command::Cordon(Cordon { node: id, cordoned: self.rng.chance(500) }),
        };
        self.gather(member, workload::request(command), Reply::Nobody);
    }

    /// The faults are over: everything comes back, and nothing else goes wrong.
    pub(crate) fn faults_end(&mut self) {
        self.faults_on = false;
        for member in 0..self.members.len() {
            self.restart(member);
        }
        for node in 0..self.nodes.len() {
            self.start_node(node);
        }
        self.after(2 * SECOND, Event::Heal);
    }

    /// Takes back what an operator did, so that nothing is left that keeps jobs waiting for good.
    pub(crate) fn heal(&mut self) {
        let Some(member) = self.raft.leader else { return self.after(SECOND, Event::Heal) };
        for node in 0..self.nodes.len() {
            let command = Command::Cordon(Cordon { node: self.nodes[node].id.clone(), cordoned: false });
            self.gather(member, workload::request(command), Reply::Nobody);
        }
        let open = |circuit: &Circuit| circuit.open.is_some();
        let agent = Agent::Shaky.name();
        let state = self.members[member].replica.state();
        let resumes =
            state.agent_versions(&Namespace::default_namespace(), &agent).filter(|agent| open(&agent.circuit));
        let agents =
            resumes.map(|agent| Command::ResumeAgent(ResumeAgent { name: agent.name.clone(), version: agent.version }));
        let nodes = state.nodes().filter(|node| open(&node.node.circuit));
        let nodes = nodes.map(|node| Command::ResumeNode(ResumeNode { node: node.node.id.clone() }));
        for command in agents.chain(nodes).collect::<Vec<_>>() {
            self.coverage.count("circuits closed by hand");
            self.gather(member, workload::request(command), Reply::Nobody);
        }
        let cordoned = |world: &Self| world.oracle.state().nodes().any(|node| node.node.cordoned || node.node.draining);
        if cordoned(self) {
            self.after(SECOND, Event::Heal);
        }
    }
}
