//! Jobs that attempts spawn: the worker's side, the leader's side and their messages.
//!
//! A worker repeats a spawn until it is answered, across connections; a parent that no longer waits sends it once more
//! and says so. A parent ends only when it waits for no child.

use atlas_types::{Command, ForsakeChild, Job, JobId, NodeId, Outcome, Rejection, SpawnedBy, Spawner};

use crate::leader::Reply;
use crate::message::{Conn, Event, Frame, Member, Node, ToNode};
use crate::options::{MS, SECOND};
use crate::workload::{self, Agent};
use crate::world::World;

/// A spawn that is not answered yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spawn {
    pub(crate) spawner: Spawner,
    pub(crate) agent: Agent,
    /// The parent waits no longer.
    pub(crate) left: bool,
}

/// The worker's side.
impl World {
    /// A parent that has begun to run asks for some children, for some of them only a while later.
    pub(crate) fn parent_starts(&mut self, node: Node, spawner: Spawner) {
        for _ in 0..self.rng.below(4) {
            let agent = self.rng.pick(&Agent::ALL);
            let number = self.fresh();
            let spawn = Spawn { spawner, agent, left: false };
            self.nodes[node].spawns.insert(number, spawn);
            self.after_up_to(500 * MS, Event::SpawnSaid(node, number));
            let patience = self.rng.pick(&[800 * MS, 5 * SECOND, 20 * SECOND]);
            self.after(patience, Event::SpawnTimeout(node, number));
        }
    }

    pub(crate) fn say_spawn(&mut self, node: Node, number: u64) {
        if let Some(spawn) = self.nodes[node].spawns.get(&number).copied() {
            self.send_frame(node, Frame::Spawn { number, spawn });
        }
    }

    /// Says again what was not answered before this connection.
    pub(crate) fn resend_spawns(&mut self, node: Node) {
        for number in self.nodes[node].spawns.keys().copied().collect::<Vec<_>>() {
            self.say_spawn(node, number);
        }
    }

    /// A parent has waited long enough.
    pub(crate) fn spawn_timeout(&mut self, node: Node, number: u64) {
        let Some(spawn) = self.nodes[node].spawns.get_mut(&number).filter(|spawn| !spawn.left) else { return };
        spawn.left = true;
        let token = spawn.spawner.token;
        self.coverage.count("children forsaken");
        self.say_spawn(node, number);
        self.child_ends(node, token);
    }

    /// A child has ended, or there is none.
    pub(crate) fn spawn_answered(&mut self, node: Node, child: JobId) {
        let spawns = &self.nodes[node].spawns;
        let known = spawns.iter().find(|(number, spawn)| spawn.spawner.child(**number) == child);
        let Some((&number, spawn)) = known else { return };
        let token = spawn.spawner.token;
        self.nodes[node].spawns.remove(&number);
        self.child_ends(node, token);
    }
}

/// The leader's side.
impl World {
    pub(crate) fn spawn_said(&mut self, member: Member, node: Node, conn: Conn, number: u64, spawn: Spawn) {
        let child = spawn.spawner.child(number);
        let request = if spawn.left {
            let (spawner, node) = (spawn.spawner, self.nodes[node].id.clone());
            workload::request(Command::ForsakeChild(ForsakeChild { spawner, node, child }))
        } else {
            workload::spawn(SpawnedBy::Attempt(spawn.spawner), number, spawn.agent)
        };
        let left = spawn.left;
        self.gather(member, request, Reply::Spawn { node, conn, child, left });
    }

    pub(crate) fn answer_spawn(
        &mut self,
        member: Member,
        (node, conn, child, left): (Node, Conn, JobId, bool),
        outcome: &Result<Outcome, Rejection>,
    ) {
        if outcome.is_ok() && !left {
            self.coverage.count("spawned jobs");
        }
        let state = self.members[member].replica.state();
        let family = std::iter::successors(state.job(child), |job| state.job(job.successor?));
        let waits = family.last().is_some_and(|job| !job.status.is_terminal());
        if outcome.is_err() || left || !waits {
            self.send_to_node(node, conn, ToNode::Spawned(child));
        }
    }

    /// Tells the worker of a parent that its child, or the last retry of it, has ended.
    pub(crate) fn tell_parent(&mut self, member: Member, job: &Job) {
        let Some(spawned) = job.spawned.filter(|_| job.successor.is_none()) else { return };
        let lease = self.members[member].replica.state().lease(spawned.by);
        let Some(at): Option<NodeId> = lease.map(|lease| lease.node.clone()) else { return };
        if let Some((node, conn)) = self.stream_to(member, &at) {
            self.send_to_node(node, conn, ToNode::Spawned(job.original.unwrap_or(job.id)));
        }
    }
}
