//! What goes wrong, and how it is put right again.

use std::time::Duration;

use atlas_types::{Command, Cordon, DrainNode};
use turmoil::Sim;

use crate::Bug;
use crate::run::{RENEW, World};
use crate::seen::Seen;

/// The faults, by the names under which they are counted.
pub const FAULTS: [&str; 22] = [
    "leader killed",
    "member killed",
    "all killed",
    "members away for long",
    "power lost in a sync",
    "syncs failed",
    "slow disks",
    "leader cut off",
    "member cut off",
    "one-way cuts",
    "links held up",
    "slow networks",
    "leadership transfers",
    "wall clock jumps",
    "workers killed",
    "workers cut off",
    "workers held up",
    "disks full",
    "workers drained",
    "disks replaced",
    "disks damaged",
    "restarts",
];

/// What is to be done later.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// The next fault of the plan.
    Fault(u64),
    /// A member's process starts again.
    Start(usize),
    /// A worker's process starts again.
    StartWorker(usize),
    /// A link works again, in both directions.
    Repair(String, String),
    /// What was held up between two arrives.
    Release(String, String),
    /// Messages are as fast as the options say.
    Calm,
    /// A member's disk is as fast as the options say.
    DiskWell(usize),
    /// A member's disk has room again.
    Room(usize),
    /// A worker may have leases again.
    Uncordon(usize),
    /// A member whose disk is damaged gets a new one.
    Renew(usize),
}

/// How many kinds there are; some come more than once.
const KINDS: u64 = 24;

/// Less than this in a segment of the log is not damaged: all of it may be the last groups.
const DAMAGE_MIN: usize = 6 * BLOCK;
/// What the log writes at least.
const BLOCK: usize = 4_096;

fn host(member: usize) -> String {
    format!("c{}", member + 1)
}

fn worker(node: usize) -> String {
    format!("w{}", node + 1)
}

impl World {
    /// The `n`-th fault. The kinds take turns, so that every run sees most of them.
    pub(crate) fn fault(&mut self, sim: &mut Sim<'_>, n: u64) {
        let members = self.options.members;
        let any = self.rng.below(members as u64) as usize;
        let leader = self.cluster.leader();
        let target = leader.unwrap_or(any);
        let other = (target + 1 + self.rng.below(members as u64 - 1) as usize) % members;
        let node = self.rng.below(self.options.nodes as u64) as usize;
        let kind = match self.options.kinds {
            [] => (self.options.seed.wrapping_mul(3) + 7 * n) % KINDS,
            kinds => kinds[(self.options.seed.wrapping_add(n) % kinds.len() as u64) as usize],
        };
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
            15 => self.away_for_long(sim, other),
            16 => self.crash_worker(sim, node),
            17 | 18 => self.cut_off_worker(sim, node),
            19 => self.hold_up_worker(sim, node),
            20 => self.replace(sim, any),
            21 => self.fill_disk(any),
            22 => self.damage(sim, any),
            _ => self.drain_worker(),
        };
        if installed {
            self.cluster.count("faults");
        }
    }

    fn is_up(&self, member: usize) -> bool {
        self.cluster.handle(member).is_some()
    }

    /// Kills a process and the machine under it: what was not synced is lost or kept by chance.
    pub(crate) fn kill(&mut self, sim: &mut Sim<'_>, member: usize) {
        let (disk, files) = (self.rng.next(), self.rng.next());
        self.look();
        self.failing.retain(|(failing, _), _| *failing != member);
        self.cluster.down(member);
        // The disk first: what the dying process still does must not reach it.
        self.cluster.disk(member).crash(disk);
        self.cluster.files(member).crash(files);
        if self.cluster.has(Bug::SegmentNameNotSynced) {
            let disk = self.cluster.disk(member);
            // The first has been there for long.
            disk.sequences().into_iter().skip(1).next_back().into_iter().for_each(|newest| disk.remove(newest));
        }
        self.cluster.going_down(&host(member));
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
        let disk = self.cluster.disk(member);
        disk.lose_power_at_sync(n);
        self.failing.insert((member, "power lost in a sync"), disk.syncs() + n);
        self.cluster.count("power lost in a sync");
        true
    }

    fn fail_sync(&mut self, member: usize) -> bool {
        if !self.is_up(member) {
            return false;
        }
        let n = self.rng.below(4);
        let disk = self.cluster.disk(member);
        disk.fail_sync(n);
        self.failing.insert((member, "syncs failed"), disk.syncs() + n);
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
        self.cluster.ask_transfer(leader, self.cluster.id(to));
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

    /// Kills a worker's process; its children die with it.
    fn crash_worker(&mut self, sim: &mut Sim<'_>, node: usize) -> bool {
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

    /// No member can be reached for a while that may be longer than the worker's leases live; its children run on.
    fn cut_off_worker(&mut self, sim: &mut Sim<'_>, node: usize) -> bool {
        let ttl = u64::try_from(self.options.session_ttl.as_millis()).unwrap_or(u64::MAX);
        let long = Duration::from_millis(self.rng.range(ttl / 2, 3 * ttl));
        for member in 0..self.options.members {
            sim.partition(worker(node), host(member));
            self.after(long, Due::Repair(worker(node), host(member)));
        }
        self.cluster.count("workers cut off");
        true
    }

    /// What a worker says, and what it is told, comes late and all at once.
    fn hold_up_worker(&mut self, sim: &mut Sim<'_>, node: usize) -> bool {
        let ttl = u64::try_from(self.options.session_ttl.as_millis()).unwrap_or(u64::MAX);
        let long = Duration::from_millis(self.rng.range(ttl / 4, 2 * ttl));
        for member in 0..self.options.members {
            sim.hold(worker(node), host(member));
            self.after(long, Due::Release(worker(node), host(member)));
        }
        self.cluster.count("workers held up");
        true
    }

    /// A machine's disk is beyond repair: another member comes in its place, which has nothing.
    fn replace(&mut self, sim: &mut Sim<'_>, member: usize) -> bool {
        if !self.may_lose_a_disk() {
            return false;
        }
        self.kill(sim, member);
        self.cluster.replace(member);
        self.cluster.see(Seen::Replaced { member });
        self.cluster.count("disks replaced");
        let back = self.rng.range(50, 1_500);
        self.after(Duration::from_millis(back), Due::Start(member));
        true
    }

    /// One at a time, and only of a whole group: what two have lost nobody can bring back.
    fn may_lose_a_disk(&self) -> bool {
        let all_up = (0..self.options.members).all(|member| self.is_up(member));
        all_up && self.cluster.replacement().is_none() && self.damaged.is_empty()
    }

    /// A bit of what a member has synced turns, in front of its last groups: those could as well be torn. The member must not start on
    /// it, and gets a new disk.
    fn damage(&mut self, sim: &mut Sim<'_>, member: usize) -> bool {
        let disk = self.cluster.disk(member);
        let Some(sequence) = disk.sequences().last().copied() else { return false };
        let written = disk.with(sequence, |bytes| bytes.iter().rposition(|byte| *byte != 0)).flatten();
        let Some(written) = written.filter(|written| *written > DAMAGE_MIN) else { return false };
        if !self.may_lose_a_disk() {
            return false;
        }
        self.kill(sim, member);
        let (from, cuts) = (self.rng.below(written as u64 / 2) as usize, self.cluster.has(Bug::DamageCutOff));
        let turned = disk.with(sequence, |bytes| {
            let Some(at) = (from..written).find(|at| bytes[*at] != 0) else { return false };
            bytes[at] ^= 1;
            if cuts {
                bytes[at / BLOCK * BLOCK..].fill(0);
            }
            true
        });
        if turned == Some(true) {
            self.damaged.insert(member);
            self.cluster.see(Seen::Damaged { member });
            self.cluster.count("disks damaged");
        }
        let back = self.rng.range(50, 1_500);
        self.after(Duration::from_millis(back), Due::Start(member));
        true
    }

    /// The disk of a member that could not start is replaced, as soon as no other member is.
    fn renew(&mut self, member: usize) {
        if !self.damaged.contains(&member) {
            return;
        }
        if self.cluster.replace(member) {
            self.damaged.remove(&member);
            self.cluster.see(Seen::Replaced { member });
            self.after(Duration::ZERO, Due::Start(member));
        } else {
            self.after(RENEW, Due::Renew(member));
        }
    }

    /// Nothing more fits on a member's disk for a while.
    fn fill_disk(&mut self, member: usize) -> bool {
        if !self.is_up(member) {
            return false;
        }
        self.cluster.disk(member).set_capacity(Some(0));
        self.cluster.see(Seen::DiskFull { member });
        self.cluster.count("disks full");
        let long = Duration::from_millis(self.rng.range(500, 4_000));
        self.after(long, Due::Room(member));
        true
    }

    /// A worker gets no new leases for a while. The first has what no other has, and is spared.
    fn drain_worker(&mut self) -> bool {
        let nodes = self.options.nodes;
        if nodes < 2 {
            return false;
        }
        let node = 1 + self.rng.below(nodes as u64 - 1) as usize;
        self.cluster.command(Command::DrainNode(DrainNode { node: crate::worker::node(node) }));
        self.cluster.count("workers drained");
        let long = Duration::from_millis(self.rng.range(500, 4_000));
        self.after(long, Due::Uncordon(node));
        true
    }

    fn start_worker(&mut self, sim: &mut Sim<'_>, node: usize) {
        if !sim.is_host_running(worker(node)) {
            sim.bounce(worker(node));
        }
    }

    /// Does what is due.
    pub(crate) fn perform(&mut self, sim: &mut Sim<'_>, due: Due) {
        match due {
            Due::Fault(n) => self.fault(sim, n),
            Due::Start(member) => self.start(sim, member),
            Due::StartWorker(node) => self.start_worker(sim, node),
            Due::Repair(a, b) => sim.repair(a, b),
            Due::Release(a, b) => sim.release(a, b),
            Due::Calm => sim.set_max_message_latency(self.options.delay_max),
            Due::DiskWell(member) => self.cluster.disk(member).set_latency(Duration::ZERO, self.options.disk_max),
            Due::Room(member) => {
                self.cluster.disk(member).set_capacity(None);
                self.cluster.see(Seen::DiskRoom { member });
            }
            Due::Renew(member) => self.renew(member),
            Due::Uncordon(node) => {
                self.cluster.command(Command::Cordon(Cordon { node: crate::worker::node(node), cordoned: false }));
            }
        }
    }

    fn start(&mut self, sim: &mut Sim<'_>, member: usize) {
        if !self.is_up(member) {
            if self.cluster.has(Bug::DiskReplaced) {
                let disk = self.cluster.disk(member);
                disk.sequences().into_iter().for_each(|sequence| disk.remove(sequence));
                self.cluster.files(member).wipe();
            }
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
        for node in 0..self.options.nodes {
            for member in 0..self.options.members {
                sim.release(worker(node), host(member));
                sim.repair(worker(node), host(member));
            }
            self.start_worker(sim, node);
            self.perform(sim, Due::Uncordon(node));
        }
        self.perform(sim, Due::Calm);
        for member in 0..self.options.members {
            self.perform(sim, Due::DiskWell(member));
            self.perform(sim, Due::Room(member));
            self.start(sim, member);
        }
    }
}

fn pairs(members: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..members).flat_map(move |a| (a + 1..members).map(move |b| (a, b)))
}
