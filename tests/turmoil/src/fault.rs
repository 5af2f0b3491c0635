//! Faults, and how they are healed.

mod disk;
mod link;
mod process;

use std::time::Duration;

use atlas_types::{Command, Cordon};
use turmoil::Sim;

use crate::Bug;
use crate::run::World;
use crate::seen::Seen;

/// The names of the faults, under which they are counted.
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

/// A scheduled action.
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
    /// Delivers the messages that were held up on a link.
    Release(String, String),
    /// Resets the network delay to that of the options.
    Calm,
    /// Resets the speed of a member's disk to that of the options.
    DiskWell(usize),
    /// Makes room on a member's disk again.
    Room(usize),
    /// Allows leases for a worker again.
    Uncordon(usize),
    /// Gives a member with a damaged disk a new one.
    Renew(usize),
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The leader's machine is killed with its process.
    KillLeader,
    /// Any member's machine is killed with its process.
    KillMember,
    /// All members' machines are killed at once.
    KillAll,
    /// A member loses power in the middle of a sync.
    LosePower,
    /// A sync of a member fails.
    FailSync,
    /// A member's disk is slow.
    SlowDisk,
    /// A member's disk is full.
    FillDisk,
    /// Bits on a member's disk flip.
    DamageDisk,
    /// A member's disk is lost, and another member replaces the member.
    ReplaceDisk,
    /// The leader is cut off from its peers.
    CutOffLeader,
    /// Any member is cut off from its peers.
    CutOffMember,
    /// A link works in one direction only.
    CutOneWay,
    /// Messages on a link arrive late and all at once.
    HoldUp,
    /// All links are slow.
    SlowNetwork,
    /// An operator hands leadership over.
    Transfer,
    /// A member's wall clock jumps.
    JumpClock,
    /// A member is down for so long that it may need a snapshot.
    AwayForLong,
    /// A worker's process is killed.
    KillWorker,
    /// A worker cannot reach any member.
    CutOffWorker,
    /// Messages of a worker arrive late and all at once.
    HoldUpWorker,
    /// A worker is drained.
    DrainWorker,
}

/// The order of the kinds. It determines which faults a seed produces.
const TURNS: [Kind; 24] = [
    Kind::KillLeader,
    Kind::KillLeader,
    Kind::KillMember,
    Kind::KillAll,
    Kind::LosePower,
    Kind::CutOffLeader,
    Kind::CutOffLeader,
    Kind::CutOffMember,
    Kind::CutOneWay,
    Kind::HoldUp,
    Kind::SlowNetwork,
    Kind::SlowDisk,
    Kind::FailSync,
    Kind::Transfer,
    Kind::JumpClock,
    Kind::AwayForLong,
    Kind::KillWorker,
    Kind::CutOffWorker,
    Kind::CutOffWorker,
    Kind::HoldUpWorker,
    Kind::ReplaceDisk,
    Kind::FillDisk,
    Kind::DamageDisk,
    Kind::DrainWorker,
];

fn host(member: usize) -> String {
    format!("c{}", member + 1)
}

fn worker(node: usize) -> String {
    format!("w{}", node + 1)
}

impl World {
    /// The `n`-th fault. The kinds take turns, so that every run has most of them.
    pub(crate) fn fault(&mut self, sim: &mut Sim<'_>, n: u64) {
        let members = self.options.members;
        let any = self.rng.below(members as u64) as usize;
        let leader = self.cluster.leader();
        let target = leader.unwrap_or(any);
        let other = (target + 1 + self.rng.below(members as u64 - 1) as usize) % members;
        let node = self.rng.below(self.options.nodes as u64) as usize;
        let kind = match self.options.kinds {
            [] => TURNS[(self.options.seed.wrapping_mul(3) + 7 * n) as usize % TURNS.len()],
            kinds => kinds[self.options.seed.wrapping_add(n) as usize % kinds.len()],
        };
        let installed = match kind {
            Kind::KillLeader => self.crash(sim, target, "leader killed"),
            Kind::KillMember => self.crash(sim, any, "member killed"),
            Kind::KillAll => self.crash_all(sim),
            Kind::LosePower => self.crash_in_a_sync(any),
            Kind::FailSync => self.fail_sync(any),
            Kind::SlowDisk => self.slow_disk(any),
            Kind::FillDisk => self.fill_disk(any),
            Kind::DamageDisk => self.damage(sim, any),
            Kind::ReplaceDisk => self.replace(sim, any),
            Kind::CutOffLeader => self.cut_off(sim, target, "leader cut off"),
            Kind::CutOffMember => self.cut_off(sim, any, "member cut off"),
            Kind::CutOneWay => self.cut_one_way(sim, target, other),
            Kind::HoldUp => self.hold_up(sim, target, other),
            Kind::SlowNetwork => self.slow_network(sim),
            Kind::Transfer => self.transfer(target, other),
            Kind::JumpClock => self.jump(any),
            Kind::AwayForLong => self.away_for_long(sim, other),
            Kind::KillWorker => self.crash_worker(sim, node),
            Kind::CutOffWorker => self.cut_off_worker(sim, node),
            Kind::HoldUpWorker => self.hold_up_worker(sim, node),
            Kind::DrainWorker => self.drain_worker(),
        };
        if installed {
            self.cluster.count("faults");
        }
    }

    fn is_up(&self, member: usize) -> bool {
        self.cluster.handle(member).is_some()
    }

    /// Kills a process together with its machine: each unsynced write is lost or kept at random.
    pub(crate) fn kill(&mut self, sim: &mut Sim<'_>, member: usize) {
        let (disk, files) = (self.rng.next(), self.rng.next());
        self.look();
        self.failing.retain(|(failing, _), _| *failing != member);
        self.cluster.down(member);
        // The disk is crashed first, so that later actions of the dying process cannot reach it.
        self.cluster.disk(member).crash(disk);
        self.cluster.files(member).crash(files);
        if self.cluster.has(Bug::SegmentNameNotSynced) {
            let disk = self.cluster.disk(member);
            // The first segment is old, so its name is durable.
            disk.sequences().into_iter().skip(1).next_back().into_iter().for_each(|newest| disk.remove(newest));
        }
        self.cluster.going_down(&host(member));
        sim.crash(host(member));
        self.cluster.see(Seen::Down { member });
    }

    fn start_worker(&mut self, sim: &mut Sim<'_>, node: usize) {
        if !sim.is_host_running(worker(node)) {
            sim.bounce(worker(node));
        }
    }

    /// Performs a scheduled action.
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
                self.cluster.disk(member).wipe();
                self.cluster.files(member).wipe();
            }
            sim.bounce(host(member));
            self.cluster.count("restarts");
        }
    }

    /// Ends all faults: everything works again, and no further fault occurs.
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
