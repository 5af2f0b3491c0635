//! What goes wrong, and how it is put right again.

use std::time::Duration;

use atlas_raft::Leadership;
use turmoil::Sim;

use crate::cluster::id;
use crate::run::World;
use crate::seen::Seen;

/// What is to be done later.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// The next fault of the plan.
    Fault(u64),
    /// A member's process starts again.
    Start(usize),
    /// A link works again, in both directions.
    Repair(String, String),
    /// What was held up between two arrives.
    Release(String, String),
    /// Messages are as fast as the options say.
    Calm,
    /// A member's disk is as fast as the options say.
    DiskWell(usize),
}

fn host(member: usize) -> String {
    format!("c{}", member + 1)
}

impl World {
    /// The `n`-th fault. The kinds take turns, so that every run sees most of them.
    pub(crate) fn fault(&mut self, sim: &mut Sim<'_>, n: u64) {
        let members = self.options.members;
        let any = self.rng.below(members as u64) as usize;
        let leader = self.leader();
        let target = leader.unwrap_or(any);
        let other = (target + 1 + self.rng.below(members as u64 - 1) as usize) % members;
        let kind = (self.options.seed.wrapping_mul(3) + 5 * n) % 16;
        let installed = match kind {
            0 | 1 => self.crash(sim, target, "leader killed"),
            2 => self.crash(sim, any, "member killed"),
            3 => self.crash_all(sim),
            4 => self.crash_in_a_sync(any),
            5 | 6 => self.cut_off(sim, target, "leader cut off"),
            7 => self.cut_off(sim, any, "member cut off"),
            8 => self.cut_one_way(sim, target, other),
            9 => self.hold_up(sim, target, other),
            10 => self.slow_network(sim),
            11 => self.slow_disk(any),
            12 => self.fail_sync(any),
            13 => self.transfer(target, other),
            14 => self.jump(any),
            _ => self.away_for_long(sim, other),
        };
        if installed {
            self.cluster.count("faults");
        }
    }

    /// The member that leads, as far as anybody can tell.
    pub(crate) fn leader(&self) -> Option<usize> {
        let leads = |member: &usize| {
            let handle = self.cluster.handle(*member);
            handle.is_some_and(|handle| matches!(*handle.leadership().borrow(), Leadership::Leader { .. }))
        };
        (0..self.options.members).find(leads)
    }

    fn is_up(&self, member: usize) -> bool {
        self.cluster.handle(member).is_some()
    }

    /// Kills a process and the machine under it: what was not synced is lost or kept by chance.
    pub(crate) fn kill(&mut self, sim: &mut Sim<'_>, member: usize) {
        let (disk, files) = (self.rng.next(), self.rng.next());
        self.look();
        self.cluster.down(member);
        // The disk first: what the dying process still does must not reach it.
        self.cluster.disk(member).crash(disk);
        self.cluster.files(member).crash(files);
        sim.crash(host(member));
        self.cluster.see(Seen::Down { member });
    }

    fn crash(&mut self, sim: &mut Sim<'_>, member: usize, what: &'static str) -> bool {
        if !self.is_up(member) {
            return false;
        }
        self.kill(sim, member);
        self.cluster.count(what);
        let back = self.rng.range(50, 4_000);
        self.after(Duration::from_millis(back), Due::Start(member));
        true
    }

    fn crash_all(&mut self, sim: &mut Sim<'_>) -> bool {
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

    /// The power goes in the middle of a sync that is soon to come; the loop notices that the member has failed.
    fn crash_in_a_sync(&mut self, member: usize) -> bool {
        if !self.is_up(member) {
            return false;
        }
        let n = self.rng.below(4);
        self.cluster.disk(member).lose_power_at_sync(n);
        self.cluster.see(Seen::SyncFailed { member });
        self.cluster.count("power lost in a sync");
        true
    }

    fn fail_sync(&mut self, member: usize) -> bool {
        if !self.is_up(member) {
            return false;
        }
        let n = self.rng.below(4);
        self.cluster.disk(member).fail_sync(n);
        self.cluster.see(Seen::SyncFailed { member });
        self.cluster.count("syncs failed");
        true
    }

    /// A member is cut off from its peers; clients and workers still reach it.
    fn cut_off(&mut self, sim: &mut Sim<'_>, member: usize, what: &'static str) -> bool {
        let long = Duration::from_millis(self.rng.range(300, 6_000));
        for peer in (0..self.options.members).filter(|peer| *peer != member) {
            sim.partition(host(member), host(peer));
            self.after(long, Due::Repair(host(member), host(peer)));
        }
        self.cluster.count(what);
        true
    }

    fn cut_one_way(&mut self, sim: &mut Sim<'_>, member: usize, peer: usize) -> bool {
        let (from, to) = if self.rng.chance(500) { (member, peer) } else { (peer, member) };
        sim.partition_oneway(host(from), host(to));
        let long = Duration::from_millis(self.rng.range(300, 5_000));
        self.after(long, Due::Repair(host(from), host(to)));
        self.cluster.count("one-way cuts");
        true
    }

    /// Everything between two members is late, and comes at once.
    fn hold_up(&mut self, sim: &mut Sim<'_>, member: usize, peer: usize) -> bool {
        sim.hold(host(member), host(peer));
        let long = Duration::from_millis(self.rng.range(100, 3_000));
        self.after(long, Due::Release(host(member), host(peer)));
        self.cluster.count("links held up");
        true
    }

    fn slow_network(&mut self, sim: &mut Sim<'_>) -> bool {
        sim.set_max_message_latency(Duration::from_millis(self.rng.range(50, 250)));
        let long = Duration::from_millis(self.rng.range(500, 3_000));
        self.after(long, Due::Calm);
        self.cluster.count("slow networks");
        true
    }

    fn slow_disk(&mut self, member: usize) -> bool {
        let most = Duration::from_millis(self.rng.range(20, 300));
        self.cluster.disk(member).set_latency(most / 4, most);
        let long = Duration::from_millis(self.rng.range(1_000, 5_000));
        self.after(long, Due::DiskWell(member));
        self.cluster.count("slow disks");
        true
    }

    fn transfer(&mut self, leader: usize, to: usize) -> bool {
        self.cluster.ask_transfer(leader, id(to));
        self.cluster.count("leadership transfers");
        true
    }

    fn jump(&mut self, member: usize) -> bool {
        let by = self.rng.pick(&[-3_600, -5, 5, 60, 86_400, 315_360_000]);
        self.cluster.skew(&host(member)).jump(by * 1_000_000);
        self.cluster.count("wall clock jumps");
        true
    }

    /// A member is dead for so long that it may need a snapshot.
    fn away_for_long(&mut self, sim: &mut Sim<'_>, member: usize) -> bool {
        if !self.is_up(member) {
            return false;
        }
        self.kill(sim, member);
        let back = Duration::from_secs(self.rng.range(6, 11));
        self.after(back, Due::Start(member));
        self.cluster.count("members away for long");
        true
    }

    /// Does what is due.
    pub(crate) fn perform(&mut self, sim: &mut Sim<'_>, due: Due) {
        match due {
            Due::Fault(n) => self.fault(sim, n),
            Due::Start(member) => self.start(sim, member),
            Due::Repair(a, b) => sim.repair(a, b),
            Due::Release(a, b) => sim.release(a, b),
            Due::Calm => sim.set_max_message_latency(self.options.delay_max),
            Due::DiskWell(member) => self.cluster.disk(member).set_latency(Duration::ZERO, self.options.disk_max),
        }
    }

    fn start(&mut self, sim: &mut Sim<'_>, member: usize) {
        if !self.is_up(member) {
            sim.bounce(host(member));
            self.cluster.count("restarts");
        }
    }

    /// The faults are over: everything works again, and nothing else goes wrong.
    pub(crate) fn heal(&mut self, sim: &mut Sim<'_>) {
        for (a, b) in pairs(self.options.members) {
            sim.release(host(a), host(b));
            sim.repair(host(a), host(b));
        }
        self.perform(sim, Due::Calm);
        for member in 0..self.options.members {
            self.perform(sim, Due::DiskWell(member));
            self.start(sim, member);
        }
    }
}

fn pairs(members: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..members).flat_map(move |a| (a + 1..members).map(move |b| (a, b)))
}
