//! Faults of programs and machines: crash, transfer of leadership, drain, and clock jumps.

use std::time::Duration;

use atlas_types::{Command, DrainNode};
use turmoil::Sim;

use super::{Due, host, worker};
use crate::run::World;
use crate::seen::Seen;

impl World {
    pub(super) fn crash(&mut self, sim: &mut Sim<'_>, member: usize, what: &'static str) -> bool {
        if !self.is_up(member) {
            return false;
        }
        self.kill(sim, member);
        self.cluster.count(what);
        let back = self.rng.range(50, 4_000);
        self.after(Duration::from_millis(back), Due::Start(member));
        true
    }

    pub(super) fn crash_all(&mut self, sim: &mut Sim<'_>) -> bool {
        for member in 0..self.options.members {
            if self.is_up(member) {
                self.kill(sim, member);
                let back = self.rng.range(50, 2_000);
                self.after(Duration::from_millis(back), Due::Start(member));
            }
        }
        self.cluster.count("all killed");
        true
    }

    /// Keeps a member down for so long that it may need a snapshot.
    pub(super) fn away_for_long(&mut self, sim: &mut Sim<'_>, member: usize) -> bool {
        if !self.is_up(member) {
            return false;
        }
        self.kill(sim, member);
        let back = Duration::from_secs(self.rng.range(6, 11));
        self.after(back, Due::Start(member));
        self.cluster.count("members away for long");
        true
    }

    pub(super) fn transfer(&mut self, leader: usize, to: usize) -> bool {
        self.cluster.ask_transfer(leader, self.cluster.id(to));
        self.cluster.count("leadership transfers");
        true
    }

    pub(super) fn jump(&mut self, member: usize) -> bool {
        let by = self.rng.pick(&[-3_600, -5, 5, 60, 86_400, 315_360_000]);
        self.cluster.skew(&host(member)).jump(by * 1_000_000);
        self.cluster.count("wall clock jumps");
        true
    }

    /// Kills a worker's process and with it its children.
    pub(super) fn crash_worker(&mut self, sim: &mut Sim<'_>, node: usize) -> bool {
        if !sim.is_host_running(worker(node)) {
            return false;
        }
        self.look();
        self.cluster.going_down(&worker(node));
        sim.crash(worker(node));
        self.cluster.see(Seen::WorkerDown { node: crate::worker::node(node) });
        self.cluster.count("workers killed");
        let back = self.rng.range(50, 6_000);
        self.after(Duration::from_millis(back), Due::StartWorker(node));
        true
    }

    /// Drains a worker for a while. The first worker is spared, because it has hardware that no other has.
    pub(super) fn drain_worker(&mut self) -> bool {
        let nodes = self.options.nodes;
        if nodes < 2 {
            return false;
        }
        let node = 1 + self.rng.below(nodes as u64 - 1) as usize;
        self.cluster.command(Command::DrainNode(DrainNode { node: crate::worker::node(node), deadline: None }));
        self.cluster.count("workers drained");
        let long = Duration::from_millis(self.rng.range(500, 4_000));
        self.after(long, Due::Uncordon(node));
        true
    }
}
