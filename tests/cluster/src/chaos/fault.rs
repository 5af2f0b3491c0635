//! Faults: each is installed, held for a while and healed, and reports its result.

use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use serde_json::json;

use super::journal::Outcome;
use super::rig::{CLIENTS, Rig};
use crate::net::{Installed, Link};
use crate::rng::Rng;

/// Longest time in which the load of a few clients writes enough log to trigger a snapshot.
const SNAPSHOT_MAX: Duration = Duration::from_secs(40);

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    KillLeader,
    /// `kill -9` of all controllers at once.
    KillAll,
    /// `kill -9` of the leader and another controller at once; the remaining three of five serve.
    KillTwo,
    /// `kill -9` of a worker, with which its children end.
    KillWorker,
    /// The leader is cut from its peers; clients and workers still reach it.
    IsolateLeader,
    /// Messages from one controller to another are lost; the reverse direction works.
    OneWay,
    /// A worker is cut from all controllers for longer than the TTL of its session.
    IsolateWorker,
    /// A worker is paused for 0.5, 1.1 or 3 times the TTL of its session.
    PauseWorker,
    /// The leader is paused for longer than an election takes.
    PauseLeader,
    /// The leader's disk is filled, and freed again.
    FillDisk,
    /// Syncs of a controller, the leader or another one, take 50 ms longer.
    SlowDisk,
    /// One sync of a controller fails.
    FailSync,
    /// The wall clock of a controller steps.
    StepClock,
    /// Controllers are stopped in order and started again, one after the other.
    RollingRestart,
    /// A controller is removed, loses its disk, and joins again as another member.
    Replace,
    /// A controller is down until the leader has purged the log that it needs, so that it receives a snapshot.
    LeaveBehind,
    /// The leader transfers its leadership.
    TransferLeader,
    /// All links lose, duplicate, delay and reorder frames.
    Flaky,
}

/// The result of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Became {
    Installed,
    Skipped,
    /// The target of the fault was broken already, or ended during the fault.
    Indeterminate,
}

impl Fault {
    /// The name of the fault in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KillLeader => "kill leader",
            Self::KillAll => "kill all",
            Self::KillTwo => "kill two",
            Self::KillWorker => "kill worker",
            Self::IsolateLeader => "isolate leader",
            Self::OneWay => "one way",
            Self::IsolateWorker => "isolate worker",
            Self::PauseWorker => "pause worker",
            Self::PauseLeader => "pause leader",
            Self::FillDisk => "fill disk",
            Self::SlowDisk => "slow disk",
            Self::FailSync => "fail sync",
            Self::StepClock => "step clock",
            Self::RollingRestart => "rolling restart",
            Self::Replace => "replace",
            Self::LeaveBehind => "leave behind",
            Self::TransferLeader => "transfer leader",
            Self::Flaky => "flaky",
        }
    }

    /// Installs the fault, holds it for a while and heals it.
    pub(crate) fn inject(self, rig: &mut Rig, rng: &mut Rng) -> Became {
        let ttl = rig.session_ttl;
        match self {
            Self::KillLeader => {
                let Some(leader) = rig.leader() else { return Became::Skipped };
                let killed = rig.controllers[leader].kill();
                hold(rng, 0, 900);
                rig.controllers[leader].start();
                installed(killed)
            }
            Self::KillAll => {
                let killed = rig.controllers.iter_mut().map(|machine| machine.kill()).filter(|killed| *killed).count();
                hold(rng, 0, 900);
                rig.controllers.iter_mut().for_each(|machine| machine.start());
                installed(killed == rig.controllers.len())
            }
            Self::KillTwo => {
                let Some(leader) = rig.leader().filter(|_| rig.controllers.len() > 4) else { return Became::Skipped };
                let other = other_than(leader, rig, rng);
                let killed = [leader, other].map(|which| rig.controllers[which].kill()) == [true; 2];
                let left = (0..rig.controllers.len()).find(|which| ![leader, other].contains(which)).unwrap_or(0);
                // The two must stay down until the others have served; otherwise the fault is no more than a killed
                // leader.
                let served = rig.until("the others serve", Duration::from_secs(10), |rig| rig.serves(left));
                hold(rng, 500, 1_500);
                for which in [leader, other] {
                    rig.controllers[which].start();
                }
                installed(killed && served.is_ok())
            }
            Self::KillWorker => {
                let worker = rng.below(rig.workers.len() as u64) as usize;
                let killed = rig.workers[worker].kill();
                hold(rng, 0, 900);
                rig.workers[worker].start();
                installed(killed)
            }
            Self::IsolateLeader => {
                let Some(leader) = rig.leader().filter(|_| rig.controllers.len() > 1) else { return Became::Skipped };
                let became = cut_from_controllers(rig, rig.controllers[leader].name());
                hold(rng, 1_000, 4_000);
                rig.network.heal();
                became
            }
            Self::OneWay => {
                let Some(leader) = rig.leader().filter(|_| rig.controllers.len() > 1) else { return Became::Skipped };
                let other = other_than(leader, rig, rng);
                let (from, to) = if rng.chance(500) { (leader, other) } else { (other, leader) };
                let became = rig.network.cut_one_way(rig.controllers[from].name(), rig.controllers[to].name());
                hold(rng, 1_000, 4_000);
                rig.network.heal();
                carried(became)
            }
            Self::IsolateWorker => {
                let worker = rng.below(rig.workers.len() as u64) as usize;
                let became = cut_from_controllers(rig, rig.workers[worker].name());
                let ttl = ttl.as_millis() as u64;
                hold(rng, ttl + ttl / 4, 2 * ttl);
                rig.network.heal();
                became
            }
            Self::PauseWorker => {
                let worker = rng.below(rig.workers.len() as u64) as usize;
                let paused = rig.workers[worker].pause();
                let tenths = rng.pick(&[5, 11, 30]);
                std::thread::sleep(ttl * tenths / 10);
                rig.workers[worker].resume();
                installed(paused)
            }
            Self::PauseLeader => {
                let Some(leader) = rig.leader() else { return Became::Skipped };
                let paused = rig.controllers[leader].pause();
                hold(rng, 500, 1_750);
                rig.controllers[leader].resume();
                installed(paused)
            }
            Self::FillDisk => {
                let Some(leader) = rig.leader() else { return Became::Skipped };
                let machine = &rig.controllers[leader];
                if !machine.disk().is_limited() {
                    return Became::Skipped;
                }
                machine.disk().fill(machine.host());
                hold(rng, 1_000, 3_000);
                machine.disk().free(machine.host());
                Became::Installed
            }
            Self::SlowDisk => {
                let Some(leader) = rig.leader() else { return Became::Skipped };
                let which = if rng.chance(500) { leader } else { rng.below(rig.controllers.len() as u64) as usize };
                let Some(shim) = rig.controllers[which].shim() else { return Became::Skipped };
                shim.slow_syncs(Duration::from_millis(50));
                hold(rng, 1_000, 3_000);
                shim.heal();
                Became::Installed
            }
            Self::FailSync => {
                let which = rng.below(rig.controllers.len() as u64) as usize;
                let Some(shim) = rig.controllers[which].shim() else { return Became::Skipped };
                shim.fail_syncs(1);
                // A failed sync is fatal: the process ends by itself, and is started again on its data.
                let ended = eventually_ends(rig, which);
                if let Some(shim) = rig.controllers[which].shim() {
                    shim.heal();
                }
                rig.controllers[which].start();
                if ended { Became::Installed } else { Became::Indeterminate }
            }
            Self::StepClock => {
                let which = rng.below(rig.controllers.len() as u64) as usize;
                let Some(shim) = rig.controllers[which].shim() else { return Became::Skipped };
                let seconds = rng.pick(&[-86_400, -3_600, -6, -1, 1, 6, 3_600, 315_360_000]);
                shim.shift_clock(seconds * 1_000);
                hold(rng, 300, 1_500);
                Became::Installed
            }
            Self::RollingRestart => {
                let mut stopped = true;
                for which in 0..rig.controllers.len() {
                    stopped &= rig.controllers[which].stop() == Some(0);
                    rig.controllers[which].start();
                    let back =
                        rig.until("a restarted controller serves", Duration::from_secs(20), |rig| rig.serves(which));
                    stopped &= back.is_ok();
                }
                installed(stopped)
            }
            Self::Replace => replace(rig, rng),
            Self::LeaveBehind => leave_behind(rig, rng),
            Self::TransferLeader => {
                let Some(leader) = rig.leader().filter(|_| rig.controllers.len() > 1) else { return Became::Skipped };
                let other = other_than(leader, rig, rng);
                let to = json!({"to": rig.controllers[other].name()});
                let at = rig.controllers[rng.below(rig.controllers.len() as u64) as usize].http();
                match rig.ask(async |http| http.post(at, "/api/cluster/transfer-leader", to).await) {
                    Outcome::Done(_) => Became::Installed,
                    _ => Became::Indeterminate,
                }
            }
            Self::Flaky => {
                let link = Link {
                    loss: rng.range(10, 150),
                    duplication: rng.range(0, 50),
                    delay: Duration::from_millis(rng.range(0, 20)),
                    jitter: Duration::from_millis(rng.range(0, 30)),
                    cut: false,
                };
                let became = all_links(rig, link);
                hold(rng, 2_000, 5_000);
                rig.network.heal();
                became
            }
        }
    }
}

/// A controller other than `which`.
fn other_than(which: usize, rig: &Rig, rng: &mut Rng) -> usize {
    let count = rig.controllers.len();
    (which + 1 + rng.below(count as u64 - 1) as usize) % count
}

/// Removes a controller, wipes its disk and lets it join again. If the removal is not certain, the controller keeps its
/// disk: the cluster does not promise to survive a voter that has lost acknowledged data.
fn replace(rig: &mut Rig, rng: &mut Rng) -> Became {
    let which = rng.below(rig.controllers.len() as u64) as usize;
    if rig.controllers.len() < 2 {
        return Became::Skipped;
    }
    let through = other_than(which, rig, rng);
    let name = rig.controllers[which].name().to_owned();
    let Some(number) = rig.number(through, &name, true) else { return Became::Skipped };
    // The controller is killed first, or is removed while it runs and then ends by itself.
    if rng.chance(500) {
        rig.controllers[which].kill();
    }
    let removed = rig.remove(number, through);
    rig.note(&format!("member {number}, {name}, removed through {through}: {removed}"));
    if !removed {
        rig.controllers[which].start();
        return Became::Indeterminate;
    }
    rig.controllers[which].kill();
    let machine = &rig.controllers[which];
    machine.disk().wipe(machine.host());
    let joined = rig.join(which, through);
    rig.note(&format!("{name} joined again: {joined:?}"));
    installed(joined.is_ok())
}

/// Kills a controller, and starts it again after the leader has taken a snapshot and purged the log that the controller
/// is missing.
fn leave_behind(rig: &mut Rig, rng: &mut Rng) -> Became {
    let Some(leader) = rig.leader().filter(|_| rig.controllers.len() > 1) else { return Became::Skipped };
    let other = other_than(leader, rig, rng);
    let received = |rig: &Rig| rig.controllers[other].text().matches("received a snapshot").count();
    let (had, before) = (received(rig), newest_snapshot(rig, leader));
    let killed = rig.controllers[other].kill();
    let taken = rig.until("the leader has a new snapshot", SNAPSHOT_MAX, |rig| newest_snapshot(rig, leader) > before);
    // The leader checks every five seconds whether it can purge the log. It keeps entries that it is still sending to
    // the killed member until that attempt fails.
    hold(rng, 8_000, 9_000);
    rig.controllers[other].start();
    let sent = rig.until("it was sent a snapshot", Duration::from_secs(10), |rig| received(rig) > had);
    installed(killed && taken.is_ok() && sent.is_ok())
}

/// The name of the newest snapshot on a controller's disk. Names begin with the log index, so the newest is the
/// maximum.
fn newest_snapshot(rig: &Rig, which: usize) -> Option<OsString> {
    let files = fs::read_dir(rig.controllers[which].disk().data().join("raft/snapshots")).ok()?;
    files
        .filter_map(|file| Some(file.ok()?.file_name()))
        .filter(|name| name.as_encoded_bytes().ends_with(b".snap"))
        .max()
}

fn installed(yes: bool) -> Became {
    if yes { Became::Installed } else { Became::Indeterminate }
}

fn carried(installed: Installed) -> Became {
    match installed {
        Installed::Yes => Became::Installed,
        Installed::No => Became::Skipped,
    }
}

/// Waits between `low` and `high` milliseconds.
fn hold(rng: &mut Rng, low: u64, high: u64) {
    std::thread::sleep(Duration::from_millis(rng.range(low, high)));
}

fn cut_from_controllers(rig: &Rig, name: &str) -> Became {
    let others = rig.controllers.iter().map(|machine| machine.name()).filter(|other| *other != name);
    others.map(|other| carried(rig.network.cut(name, other))).last().unwrap_or(Became::Skipped)
}

fn all_links(rig: &Rig, link: Link) -> Became {
    let machines = rig.controllers.iter().chain(&rig.workers).map(|machine| machine.name());
    let names: Vec<&str> = machines.chain([CLIENTS]).collect();
    let mut became = Became::Skipped;
    for from in &names {
        for to in names.iter().filter(|to| *to != from) {
            became = carried(rig.network.set(from, to, link));
        }
    }
    became
}

fn eventually_ends(rig: &mut Rig, which: usize) -> bool {
    let deadline = rig.env.clock.monotonic() + Duration::from_secs(5);
    while rig.env.clock.monotonic() < deadline {
        if rig.controllers[which].ended().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}
