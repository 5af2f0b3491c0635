//! Slots share the node's memory and GPU memory: idle ones make room.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use atlas_allocation::Free;
use atlas_types::{Allocation, Digest, FencingToken, GpuShare, NodeEpoch, ReportKind, ReportResult};
use expect_test::expect;
use proptest::prelude::*;

use super::check::{check, inventory};
use super::language::{assignment, completed};
use crate::{Effect, Input, Options, SlotId, Slots};

#[test]
fn an_idle_slot_is_evicted_before_a_job_that_needs_its_gpu_starts() {
    check(
        "connect; welcome; grant 1 vram=20; done 1; ack 1; grant 2 digest=2 vram=20; gone 1",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 vram=20
                start 1 slot=1 cold
            done 1
                report 1: 1 completed idle=1
            ack 1
            grant 2 digest=2 vram=20
                evict 1
                warm sha256:01010101 idle=0
            gone 1
                start 2 slot=2 cold
        "#]],
    );
}

#[test]
fn idle_slots_stay_while_there_is_room() {
    check(
        "connect; welcome; grant 1 vram=10; done 1; grant 2 digest=2 vram=14; grant 3 digest=3 gpu=1",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 vram=10
                start 1 slot=1 cold
            done 1
                report 1: 1 completed idle=1
            grant 2 digest=2 vram=14
                start 2 slot=2 cold
            grant 3 digest=3 gpu=1
                start 3 slot=3 cold
        "#]],
    );
}

#[test]
fn only_slots_that_hold_what_is_missing_are_evicted_the_longest_idle_first() {
    check(
        "connect; welcome; grant 1 digest=1 gpu=1; done 1; grant 2 digest=2 memory=30; done 2; +1;
        grant 3 digest=3 memory=20; done 3; grant 4 digest=4 memory=40; gone 2",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 digest=1 gpu=1
                start 1 slot=1 cold
            done 1
                report 1: 1 completed idle=1
            grant 2 digest=2 memory=30
                start 2 slot=2 cold
            done 2
                report 2: 2 completed idle=1
            +1
            grant 3 digest=3 memory=20
                start 3 slot=3 cold
            done 3
                report 3: 3 completed idle=1
            grant 4 digest=4 memory=40
                evict 2
                warm sha256:02020202 idle=0
            gone 2
                start 4 slot=4 cold
        "#]],
    );
}

#[test]
fn the_memory_of_a_stopped_attempt_is_free_when_its_process_is_gone() {
    check(
        "connect; welcome; grant 1 vram=20; revoke 1; grant 2 digest=2 vram=20; dead 1; gone 1",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 vram=20
                start 1 slot=1 cold
            revoke 1
                stop 1 Revoked grace=0s
            grant 2 digest=2 vram=20
            dead 1
            gone 1
                start 2 slot=2 cold
        "#]],
    );
}

#[test]
fn a_slot_that_ends_with_its_job_is_not_idle_and_holds_nothing_when_it_is_gone() {
    check(
        "connect; welcome; grant 1 vram=20; once 1; gone 1; grant 2 digest=2 vram=20; once 2; grant 3 vram=20; gone 2",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 vram=20
                start 1 slot=1 cold
            once 1
                report 1: 1 completed idle=0
            gone 1
            grant 2 digest=2 vram=20
                start 2 slot=2 cold
            once 2
                report 2: 2 completed idle=0
            grant 3 vram=20
            gone 2
                start 3 slot=3 cold
        "#]],
    );
}

#[test]
fn a_start_is_committed_once_there_is_room() {
    check(
        "connect; welcome; grant 1 vram=20; done 1; ack 1; grant 2 digest=2 vram=20 start; ready 2; gone 1; ack 2",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 vram=20
                start 1 slot=1 cold
            done 1
                report 1: 1 completed idle=1
            ack 1
            grant 2 digest=2 vram=20 start
                prepare 2
            ready 2
                evict 1
                warm sha256:01010101 idle=0
            gone 1
                report 2: 2 started
            ack 2
                start 2 slot=2 cold
        "#]],
    );
}

#[test]
fn a_warm_slot_reserved_for_a_start_that_is_refused_stays_warm() {
    check(
        "connect; welcome; grant 1; done 1; ack 1; grant 2 start; ready 2; ack 2 fenced; grant 3",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1
                start 1 slot=1 cold
            done 1
                report 1: 1 completed idle=1
            ack 1
            grant 2 start
                prepare 2
            ready 2
                report 2: 2 started
            ack 2 fenced
                forget 2
            grant 3
                start 3 slot=1 warm
        "#]],
    );
}

#[test]
fn what_waits_for_room_can_be_cancelled() {
    check(
        "connect; welcome; grant 1 vram=20; done 1; ack 1; grant 2 digest=2 vram=20; cancel 2; gone 1",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 vram=20
                start 1 slot=1 cold
            done 1
                report 1: 1 completed idle=1
            ack 1
            grant 2 digest=2 vram=20
                evict 1
                warm sha256:01010101 idle=0
            cancel 2
                report 2: 2 cancelled
            gone 1
        "#]],
    );
}

#[test]
fn a_job_larger_than_the_node_runs_alone() {
    check(
        "connect; welcome; grant 1 memory=10; done 1; grant 2 digest=2 memory=100; gone 1",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 memory=10
                start 1 slot=1 cold
            done 1
                report 1: 1 completed idle=1
            grant 2 digest=2 memory=100
                evict 1
                warm sha256:01010101 idle=0
            gone 1
                start 2 slot=2 cold
        "#]],
    );
}

#[derive(Debug, Clone)]
enum Act {
    Grant { agent: u8, start: bool },
    Prepare,
    Ack,
    End { usable: bool },
    Revoke,
    Cancel,
    Died,
    Gone,
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..6_u8, any::<bool>()).prop_map(|(agent, start)| Act::Grant { agent, start }),
        3 => Just(Act::Prepare),
        3 => Just(Act::Ack),
        5 => any::<bool>().prop_map(|usable| Act::End { usable }),
        1 => Just(Act::Revoke),
        1 => Just(Act::Cancel),
        1 => Just(Act::Died),
        4 => Just(Act::Gone),
        1 => (1..200_u64).prop_map(Act::Wait),
    ]
}

/// What agents of this number hold: different ones share memory and one of two GPUs.
fn holds(agent: u8) -> Allocation {
    let gpu = |index, vram_bytes| vec![GpuShare { index, vram_bytes }];
    let (memory_bytes, gpus) = match agent {
        0 => (30, vec![]),
        1 => (20, gpu(0, 20)),
        2 => (1, gpu(0, 10)),
        3 => (64, vec![]),
        4 => (5, vec![GpuShare { index: 0, vram_bytes: 24 }, GpuShare { index: 1, vram_bytes: 24 }]),
        _ => (0, gpu(1, 14)),
    };
    Allocation { memory_bytes, gpus, ..Allocation::default() }
}

/// A leader that counts idle slots as free, and the node's processes.
struct World {
    slots: Slots,
    now: Duration,
    next_token: u64,
    leases: BTreeMap<FencingToken, Allocation>,
    /// What each process occupies, idle or not, until it is gone.
    processes: BTreeMap<SlotId, Allocation>,
    idle: BTreeSet<SlotId>,
    leaving: BTreeSet<SlotId>,
    running: BTreeMap<FencingToken, SlotId>,
    stopping: BTreeSet<FencingToken>,
    preparing: BTreeSet<FencingToken>,
    started: BTreeSet<FencingToken>,
    reports: BTreeMap<u64, (FencingToken, bool)>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            slots: Slots::new(Options { inventory: inventory(), ..Options::default() }),
            now: Duration::ZERO,
            next_token: 0,
            leases: BTreeMap::new(),
            processes: BTreeMap::new(),
            idle: BTreeSet::new(),
            leaving: BTreeSet::new(),
            running: BTreeMap::new(),
            stopping: BTreeSet::new(),
            preparing: BTreeSet::new(),
            started: BTreeSet::new(),
            reports: BTreeMap::new(),
        };
        world.step(Input::Connected);
        let ttl = Duration::from_secs(1 << 30);
        world.step(Input::Welcome { epoch: NodeEpoch(1), ttl, leases: Vec::new() });
        world
    }

    fn step(&mut self, input: Input) {
        for effect in self.slots.step(input, self.now) {
            match effect {
                Effect::PrepareAttempt { assignment } => drop(self.preparing.insert(assignment.token)),
                Effect::ForgetPrepared { token } => drop(self.preparing.remove(&token)),
                Effect::StartAttempt { assignment, slot, warm } => {
                    // The program of a slot reserved for an attempt may die, and the attempt gets another one.
                    assert_eq!(warm, self.idle.remove(&slot), "a warm slot is there");
                    self.leaving.remove(&slot);
                    self.started.insert(assignment.token);
                    self.running.insert(assignment.token, slot);
                    self.processes.insert(slot, assignment.allocation);
                    let mut left = Free::of(&inventory());
                    let fit = self.processes.values().all(|holds| left.hold(holds));
                    assert!(fit, "processes need more than the node has: {:?}", self.processes);
                }
                Effect::StopAttempt { token, .. } => drop(self.stopping.insert(token)),
                Effect::EvictSlot { slot } => {
                    self.idle.remove(&slot);
                    self.leaving.insert(slot);
                }
                Effect::SendReport { number, report } => {
                    let start = report.kind == ReportKind::Started;
                    if !start {
                        self.leases.remove(&report.token);
                    }
                    self.reports.insert(number, (report.token, start));
                }
                _ => {}
            }
        }
    }

    fn grant(&mut self, agent: u8, start: bool) {
        let mut left = Free::of(&inventory());
        let fits = self.leases.values().chain([&holds(agent)]).all(|holds| left.hold(holds));
        if fits {
            self.next_token += 1;
            let mut lease = assignment(self.next_token);
            lease.digest = Digest([agent; 32]);
            lease.allocation = holds(agent);
            lease.needs_start = start;
            self.leases.insert(lease.token, lease.allocation.clone());
            self.step(Input::Granted(Box::new(lease)));
        }
    }

    fn end(&mut self, token: FencingToken, usable: bool) {
        let Some(slot) = self.running.remove(&token) else { return };
        let usable = usable && !self.stopping.remove(&token);
        if usable {
            self.idle.insert(slot);
        } else {
            self.leaving.insert(slot);
        }
        let mut end = completed();
        end.slot_usable = usable;
        self.step(Input::Ended { token, end });
    }

    /// One process that shuts down is gone; false if none does.
    fn gone(&mut self) -> bool {
        let Some(slot) = self.leaving.pop_first() else { return false };
        self.processes.remove(&slot);
        self.step(Input::SlotGone { slot });
        true
    }

    fn prepare(&mut self) -> bool {
        let Some(token) = self.preparing.pop_first() else { return false };
        self.step(Input::Prepared { token });
        true
    }

    fn ack(&mut self) -> bool {
        let Some((number, (token, start))) = self.reports.pop_first() else { return false };
        let result =
            if start && !self.leases.contains_key(&token) { ReportResult::Fenced } else { ReportResult::Applied };
        self.step(Input::ReportAcked { number, result });
        true
    }

    fn act(&mut self, act: &Act) {
        let lease = self.leases.keys().next().copied();
        match act {
            Act::Grant { agent, start } => self.grant(*agent, *start),
            Act::Prepare => drop(self.prepare()),
            Act::Ack => drop(self.ack()),
            Act::End { usable } => {
                if let Some(token) = self.running.keys().next().copied() {
                    self.end(token, *usable);
                }
            }
            Act::Revoke => {
                if let Some(token) = lease {
                    self.leases.remove(&token);
                    self.step(Input::Revoked { token });
                }
            }
            Act::Cancel => {
                if let Some(token) = lease {
                    self.step(Input::Cancelled { token, grace: Duration::ZERO });
                }
            }
            Act::Died => {
                if let Some(slot) = self.idle.pop_first() {
                    self.processes.remove(&slot);
                    self.leaving.insert(slot);
                    self.step(Input::SlotDied { slot });
                }
            }
            Act::Gone => drop(self.gone()),
            Act::Wait(seconds) => {
                self.now += Duration::from_secs(*seconds);
                self.step(Input::Tick);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn slots_never_hold_more_than_the_node_has_and_what_fits_starts(acts in prop::collection::vec(act(), 1..100)) {
        let mut world = World::new();
        for act in &acts {
            world.act(act);
        }
        // No job ends by itself any more: what was stopped dies, and every other lease gets its slot.
        for token in world.stopping.clone() {
            world.end(token, false);
        }
        while world.gone() || world.prepare() || world.ack() {}
        for token in world.leases.keys() {
            prop_assert!(world.started.contains(token), "{} was granted and never started", token);
        }
    }
}
