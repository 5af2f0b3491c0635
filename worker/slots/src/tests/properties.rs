//! Random histories against a model of what must never happen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use atlas_types::{
    ClusterTime, FencingToken, HandBack, HandBackDeadline, JobId, Micros, NodeEpoch, ParkResult, ReportKind,
    ReportResult, Wait,
};
use proptest::prelude::*;

use super::language::{assignment, completed, park};
use crate::{Effect, Input, Options, Slots, StopReason};

const TTL: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
enum Act {
    Connect,
    Welcome { lost_grants: u64 },
    Grant { again: bool, start: bool },
    RenewAck,
    Ack { fenced: bool },
    Save,
    Prepare { fails: bool },
    End,
    Revoke,
    Cancel,
    HandBack { until: u64, within: Option<u64> },
    Abandon,
    Lose,
    Sleep { between_steps: bool },
    SleepOver,
    ParkAck(ParkResult),
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Connect),
        3 => (0..3_u64).prop_map(|lost_grants| Act::Welcome { lost_grants }),
        4 => (any::<bool>(), any::<bool>()).prop_map(|(again, start)| Act::Grant { again, start }),
        3 => Just(Act::RenewAck),
        3 => any::<bool>().prop_map(|fenced| Act::Ack { fenced }),
        3 => Just(Act::Save),
        3 => any::<bool>().prop_map(|fails| Act::Prepare { fails }),
        3 => Just(Act::End),
        1 => Just(Act::Revoke),
        1 => Just(Act::Cancel),
        1 => (0..2_u64, proptest::option::of(0..9_u64)).prop_map(|(until, within)| Act::HandBack { until, within }),
        1 => Just(Act::Abandon),
        1 => Just(Act::Lose),
        3 => any::<bool>().prop_map(|between_steps| Act::Sleep { between_steps }),
        2 => Just(Act::SleepOver),
        2 => prop_oneof![Just(ParkResult::Parked), Just(ParkResult::Ready), Just(ParkResult::Busy)].prop_map(Act::ParkAck),
        4 => (1..4_000_u64).prop_map(Act::Wait),
    ]
}

/// What the outside sees, and what it checks.
#[derive(Default)]
struct World {
    now: Duration,
    next_token: u64,
    /// Granted by the leader and not ended there.
    leases: BTreeSet<FencingToken>,
    running: BTreeSet<FencingToken>,
    stopping: BTreeSet<FencingToken>,
    ever_started: BTreeSet<FencingToken>,
    /// Asked for, or there, and not told otherwise.
    preparing: BTreeSet<FencingToken>,
    prepared: BTreeSet<FencingToken>,
    hello_sent_at: Duration,
    renewals: BTreeMap<u64, Duration>,
    confirmed_at: Option<Duration>,
    connected: bool,
    known: BTreeSet<u64>,
    once: BTreeSet<FencingToken>,
    unanswered: BTreeSet<u64>,
    /// Numbers of start reports: they may be withdrawn.
    starts: BTreeSet<u64>,
    /// Results of attempts that must not run twice: not on disk yet, and on disk.
    saving: BTreeSet<u64>,
    saved: BTreeSet<u64>,
    /// In the order of sending on this connection.
    sent_here: Vec<u64>,
    /// Attempts that wait, and do nothing until they are resumed.
    asleep: BTreeSet<FencingToken>,
    /// Requests to park that were not answered.
    parks: BTreeMap<u64, FencingToken>,
    /// Attempts that heard that their jobs are parked.
    parked: BTreeSet<FencingToken>,
}

impl World {
    fn observe(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::PrepareAttempt { assignment } => {
                    assert!(self.preparing.insert(assignment.token), "a token is prepared once");
                }
                Effect::ForgetPrepared { token } => {
                    let known = self.preparing.remove(token) | self.prepared.remove(token);
                    assert!(known, "only what was asked for is forgotten");
                }
                Effect::StartAttempt { assignment, .. } => {
                    if assignment.needs_start {
                        self.once.insert(assignment.token);
                    }
                    let asked = self.preparing.contains(&assignment.token);
                    assert!(!asked, "nothing starts before what it needs is there");
                    self.prepared.remove(&assignment.token);
                    assert!(self.ever_started.insert(assignment.token), "a token runs once");
                    self.running.insert(assignment.token);
                    let alive = self.running.union(&self.stopping).filter(|token| token.0 / 2 == assignment.job.0);
                    assert_eq!(alive.count(), 1, "two attempts of one job never run at once");
                }
                Effect::StopAttempt { token, why: StopReason::Cancelled | StopReason::Abandoned, .. } => {
                    self.asleep.remove(token);
                }
                Effect::StopAttempt { token, why, .. } => {
                    assert!(*why != StopReason::Parked || self.parked.contains(token), "the leader parks, nobody else");
                    assert!(self.running.remove(token));
                    self.asleep.remove(token);
                    self.stopping.insert(*token);
                }
                Effect::SendPark { number, token, .. } => {
                    assert!(self.connected && self.asleep.contains(token), "only what waits is parked");
                    let before = self.parks.insert(*number, *token);
                    assert!(before.is_none_or(|before| before == *token), "a number is used once");
                }
                Effect::Resume { token, .. } => {
                    assert!(self.asleep.remove(token), "what does not wait is not resumed");
                    assert!(!self.parks.values().any(|asks| asks == token), "nothing goes on that may be parked");
                }
                Effect::SendHello { .. } => {
                    self.hello_sent_at = self.now;
                    self.sent_here.clear();
                }
                Effect::SendRenew { number } => {
                    self.renewals.insert(*number, self.now);
                }
                Effect::SaveReport { number, report } => {
                    assert!(self.once.contains(&report.token), "only what must not run twice is saved");
                    assert!(self.saving.insert(*number), "a report is saved once");
                }
                Effect::SavedAnswered { number, .. } => assert!(self.saved.contains(number)),
                Effect::SendReport { number, report } => {
                    // One that is saved first is overtaken by those that are not.
                    let in_order = self.sent_here.last().is_none_or(|last| last < number);
                    assert!(in_order || self.saved.contains(number), "reports go out in order");
                    assert!(!self.saving.contains(number), "a result is on disk before it is sent");
                    let ended = matches!(report.kind, ReportKind::Completed { .. });
                    let once = self.once.contains(&report.token);
                    assert!(!ended || !once || self.saved.contains(number), "what must not run twice is saved");
                    self.sent_here.push(*number);
                    if self.known.insert(*number) {
                        assert!(!self.parked.contains(&report.token), "what is parked has nothing to report");
                        self.unanswered.insert(*number);
                        if report.kind == ReportKind::Started {
                            self.starts.insert(*number);
                        }
                    }
                    match report.kind {
                        ReportKind::Started => {
                            let known = self.prepared.contains(&report.token);
                            assert!(known, "a start is told of what is prepared, and can be started");
                        }
                        ReportKind::Completed { .. } => assert!(self.ever_started.contains(&report.token)),
                        ReportKind::NotHeld => {
                            let alive = self.running.contains(&report.token) || self.stopping.contains(&report.token);
                            assert!(!alive, "a lease is given back when its process is dead");
                        }
                        ReportKind::Failed { .. } => {}
                    }
                }
                Effect::Disconnect { .. } => self.connected = false,
                _ => {}
            }
        }
        let in_time = self.confirmed_at.is_some_and(|at| self.now < at + TTL);
        assert!(self.running.is_empty() || in_time, "nothing runs once the time to live is used up");
    }

    fn input(&mut self, act: &Act) -> Option<Input> {
        let pick = |set: &BTreeSet<FencingToken>| set.first().copied();
        Some(match act {
            Act::Connect => {
                self.connected = true;
                Input::Connected
            }
            Act::Welcome { lost_grants } => {
                if !self.connected || self.now >= self.hello_sent_at + TTL {
                    return None;
                }
                for _ in 0..*lost_grants {
                    self.next_token += 1;
                    self.leases.insert(FencingToken(self.next_token));
                }
                self.confirmed_at = Some(self.hello_sent_at.max(self.confirmed_at.unwrap_or_default()));
                let lease = |token: &FencingToken| {
                    let mut lease = assignment(token.0);
                    lease.job = JobId(token.0 / 2);
                    lease
                };
                let leases = self.leases.iter().map(lease).collect();
                Input::Welcome { epoch: NodeEpoch(1), ttl: TTL, leases }
            }
            Act::Grant { again, start } => {
                if !*again || self.next_token == 0 {
                    self.next_token += 1;
                    self.leases.insert(FencingToken(self.next_token));
                }
                let mut lease = assignment(self.next_token);
                // Neighbours share a job, so that one is granted again while it is being stopped.
                lease.job = JobId(self.next_token / 2);
                lease.needs_start = *start;
                Input::Granted(Box::new(lease))
            }
            Act::RenewAck => {
                let (&number, &sent_at) = self.renewals.last_key_value()?;
                self.confirmed_at = Some(sent_at.max(self.confirmed_at.unwrap_or_default()));
                Input::RenewAcked { number }
            }
            Act::Ack { fenced } => {
                let number = *self.sent_here.iter().find(|number| self.unanswered.contains(number))?;
                self.unanswered.remove(&number);
                Input::ReportAcked {
                    number,
                    result: if *fenced { ReportResult::Fenced } else { ReportResult::Applied },
                }
            }
            Act::Save => {
                let number = self.saving.pop_first()?;
                self.saved.insert(number);
                Input::Saved { number }
            }
            Act::Prepare { fails } => {
                let token = pick(&self.preparing)?;
                self.preparing.remove(&token);
                if *fails {
                    Input::Unprepared { token, report: ReportKind::NotHeld }
                } else {
                    self.prepared.insert(token);
                    Input::Prepared { token }
                }
            }
            Act::End => {
                let token = pick(&self.stopping).or_else(|| pick(&self.running))?;
                self.stopping.remove(&token);
                self.running.remove(&token);
                self.asleep.remove(&token);
                Input::Ended { token, end: completed() }
            }
            Act::Revoke => {
                let token = pick(&self.leases)?;
                self.leases.remove(&token);
                Input::Revoked { token }
            }
            Act::Cancel => Input::Cancelled { token: pick(&self.leases)?, grace: Duration::ZERO },
            Act::HandBack { until, within } => {
                let until = ClusterTime(*until);
                Input::HandBack(within.map(|seconds| HandBack {
                    // A tenth of the drains has no deadline.
                    deadline: (seconds > 0).then_some(HandBackDeadline { until, within: Micros::from_secs(seconds) }),
                }))
            }
            Act::Abandon => Input::Abandon,
            Act::Lose => {
                self.connected = false;
                Input::Disconnected
            }
            Act::Sleep { between_steps } => {
                let token = *self.running.difference(&self.asleep).next()?;
                self.asleep.insert(token);
                let waits = if *between_steps { Vec::new() } else { vec![Wait::Message] };
                Input::Waits { token, park: park(waits), waited: Duration::ZERO }
            }
            Act::SleepOver => Input::WaitOver { token: pick(&self.asleep)? },
            Act::ParkAck(result) => {
                let (number, token) = self.parks.pop_first()?;
                let held = self.leases.contains(&token);
                if held && *result == ParkResult::Parked {
                    self.leases.remove(&token);
                    self.parked.extend(self.running.get(&token));
                }
                Input::ParkAnswered { number, result: if held { result.clone() } else { ParkResult::Fenced } }
            }
            Act::Wait(milliseconds) => {
                self.now += Duration::from_millis(*milliseconds);
                Input::Tick
            }
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_in(acts in prop::collection::vec(act(), 1..120)) {
        let mut slots = Slots::new(Options::default());
        let mut world = World::default();
        for act in &acts {
            if let Some(input) = world.input(act) {
                let effects = slots.step(input, world.now);
                world.observe(&effects);
            }
            let busy: BTreeSet<_> = slots.busy().into_iter().collect();
            let alive: BTreeSet<_> = world.running.union(&world.stopping).copied().collect();
            prop_assert_eq!(busy, alive, "a slot is busy exactly while its process may live");
        }
        // However the history went: a connection that lives brings every unanswered report again.
        let mut effects = slots.step(Input::Connected, world.now);
        world.observe(&effects);
        let leases = Vec::new();
        effects = slots.step(Input::Welcome { epoch: NodeEpoch(1), ttl: TTL, leases }, world.now);
        let sent: BTreeSet<u64> = effects.iter().filter_map(|effect| match effect {
            Effect::SendReport { number, .. } => Some(*number),
            _ => None,
        }).collect();
        let must: BTreeSet<_> = world.unanswered.difference(&world.starts).copied().collect();
        prop_assert!(must.is_subset(&sent), "no report is lost");
    }
}
