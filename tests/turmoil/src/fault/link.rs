//! Link faults: cut, cut in one direction, delayed or slow.

use std::time::Duration;

use turmoil::Sim;

use super::{Due, host, worker};
use crate::run::World;

impl World {
    /// Cuts a member off from its peers. Clients and workers still reach it.
    pub(super) fn cut_off(&mut self, sim: &mut Sim<'_>, member: usize, what: &'static str) -> bool {
        let long = Duration::from_millis(self.rng.range(300, 6_000));
        for peer in (0..self.options.members).filter(|peer| *peer != member) {
            sim.partition(host(member), host(peer));
            self.after(long, Due::Repair(host(member), host(peer)));
        }
        self.cluster.count(what);
        true
    }

    pub(super) fn cut_one_way(&mut self, sim: &mut Sim<'_>, member: usize, peer: usize) -> bool {
        let (from, to) = if self.rng.chance(500) { (member, peer) } else { (peer, member) };
        sim.partition_oneway(host(from), host(to));
        let long = Duration::from_millis(self.rng.range(300, 5_000));
        self.after(long, Due::Repair(host(from), host(to)));
        self.cluster.count("one-way cuts");
        true
    }

    /// Holds up all messages between two members, which then arrive at once.
    pub(super) fn hold_up(&mut self, sim: &mut Sim<'_>, member: usize, peer: usize) -> bool {
        sim.hold(host(member), host(peer));
        let long = Duration::from_millis(self.rng.range(100, 3_000));
        self.after(long, Due::Release(host(member), host(peer)));
        self.cluster.count("links held up");
        true
    }

    pub(super) fn slow_network(&mut self, sim: &mut Sim<'_>) -> bool {
        sim.set_max_message_latency(Duration::from_millis(self.rng.range(50, 250)));
        let long = Duration::from_millis(self.rng.range(500, 3_000));
        self.after(long, Due::Calm);
        self.cluster.count("slow networks");
        true
    }

    /// Cuts a worker off from all members, possibly for longer than its leases live. Its children continue to run.
    pub(super) fn cut_off_worker(&mut self, sim: &mut Sim<'_>, node: usize) -> bool {
        let ttl = u64::try_from(self.options.session_ttl.as_millis()).unwrap_or(u64::MAX);
        let long = Duration::from_millis(self.rng.range(ttl / 2, 3 * ttl));
        for member in 0..self.options.members {
            sim.partition(worker(node), host(member));
            self.after(long, Due::Repair(worker(node), host(member)));
        }
        self.cluster.count("workers cut off");
        true
    }

    /// Holds up all messages from and to a worker, which then arrive at once.
    pub(super) fn hold_up_worker(&mut self, sim: &mut Sim<'_>, node: usize) -> bool {
        let ttl = u64::try_from(self.options.session_ttl.as_millis()).unwrap_or(u64::MAX);
        let long = Duration::from_millis(self.rng.range(ttl / 4, 2 * ttl));
        for member in 0..self.options.members {
            sim.hold(worker(node), host(member));
            self.after(long, Due::Release(worker(node), host(member)));
        }
        self.cluster.count("workers held up");
        true
    }
}
