//! The language of the tests: statements become inputs, effects become lines.
//!
//! `connect` `welcome [T…]` (ttl 10 s) `grant T [job=N] [digest=N] [gpu=N] [vram=N] [memory=N] [start]` `cancel T` `revoke T` `renewed N`
//! `ack N [fenced]` `saved N` `ready T` (prepared) `missing T` (cannot be prepared) `done T` `failed T` `dead T` (failed, slot gone) `once T` (done, slot gone) `died S` `gone S`
//! `waits T` (for a message) `steps T` (between two steps) `over T` `park N parked|ready|fenced|busy|refused`
//! `lost` `drain` `abandon` `back [D N]` (by deadline D, N seconds from now) `+N` (seconds, then a tick)
//! `busy N` (seconds in which nothing is looked at)

use std::time::Duration;

use atlas_types::{
    AgentName, Allocation, Assignment, Attempt, ClusterTime, Digest, Failure, FailureKind, FencingToken, GpuShare,
    HandBack, HandBackDeadline, JobId, Micros, Namespace, NodeEpoch, Park, ParkResult, Payload, ReportKind,
    ReportResult, Usage, Version, Wait,
};

use crate::{AttemptEnd, Effect, Input, SlotId};

pub(super) fn assignment(token: u64) -> Assignment {
    Assignment {
        namespace: Namespace::default_namespace(),
        job: JobId(token),
        token: FencingToken(token),
        attempt: Attempt(1),
        agent: AgentName::new("a").expect("valid name"),
        version: Version { major: 1, minor: 0, patch: 0 },
        digest: Digest([1; 32]),
        package_bytes: 1,
        input: Payload::inline(b"{}"),
        metadata: b"{}"[..].into(),
        allocation: Allocation::default(),
        startup_timeout: Micros::from_secs(30),
        execution_timeout: Micros::from_secs(60),
        needs_start: false,
        retry_count: 0,
        trace: None,
        spawn: None,
        lacks: None,
        budget_nanodollars: None,
        context: None,
        fork_steps: None,
        submitted_timeout: None,
        attachments: Default::default(),
        journal: None,
    }
}

pub(super) fn completed() -> AttemptEnd {
    done(true)
}

fn done(slot_usable: bool) -> AttemptEnd {
    let output = Payload::inline(b"{}");
    AttemptEnd { report: ReportKind::Completed { output, usage: Usage::default(), metadata: None }, slot_usable }
}

fn failed(slot_usable: bool) -> AttemptEnd {
    let failure = Failure { kind: FailureKind::Agent, error: "kaput".into() };
    let usage = Usage::default();
    AttemptEnd {
        report: ReportKind::Failed { failure, output: None, usage, metadata: None, cancelled: false },
        slot_usable,
    }
}

/// A park of an attempt that has run for a second.
pub(super) fn park(waits: Vec<Wait>) -> Park {
    Park { journal_length: 1, waits, used: Micros::from_secs(1), read: 0 }
}

pub(super) fn number(word: Option<&str>) -> u64 {
    word.and_then(|word| word.parse().ok()).expect("the statement needs a number")
}

fn granted<'a>(token: u64, options: impl Iterator<Item = &'a str>) -> Assignment {
    let mut lease = assignment(token);
    for option in options {
        match option.split_once('=').unwrap_or((option, "")) {
            ("job", n) => lease.job = JobId(number(Some(n))),
            ("digest", n) => lease.digest = Digest([number(Some(n)) as u8; 32]),
            ("gpu", n) => {
                lease.allocation.gpus = vec![GpuShare { index: number(Some(n)) as u32, vram_bytes: 1 }];
            }
            ("vram", n) => {
                lease.allocation.gpus = vec![GpuShare { index: 0, vram_bytes: number(Some(n)) }];
            }
            ("memory", n) => lease.allocation.memory_bytes = number(Some(n)),
            ("start", _) => lease.needs_start = true,
            (other, _) => panic!("unknown option {other:?}"),
        }
    }
    lease
}

/// The input of a statement.
pub(super) fn input(statement: &str) -> Input {
    let mut words = statement.split_whitespace();
    let verb = words.next().expect("a statement has a verb");
    match verb {
        "connect" => Input::Connected,
        "welcome" => {
            let leases = words.map(|word| granted(number(Some(word)), [].into_iter())).collect();
            Input::Welcome { epoch: NodeEpoch(1), ttl: Duration::from_secs(10), leases }
        }
        "grant" => Input::Granted(Box::new(granted(number(words.next()), words))),
        "cancel" => Input::Cancelled { token: FencingToken(number(words.next())), grace: Duration::from_secs(2) },
        "revoke" => Input::Revoked { token: FencingToken(number(words.next())) },
        "renewed" => Input::RenewAcked { number: number(words.next()) },
        "ack" => {
            let number = number(words.next());
            let result = if words.next() == Some("fenced") { ReportResult::Fenced } else { ReportResult::Applied };
            Input::ReportAcked { number, result }
        }
        "saved" => Input::Saved { number: number(words.next()) },
        "ready" => Input::Prepared { token: FencingToken(number(words.next())) },
        "missing" => Input::Unprepared { token: FencingToken(number(words.next())), report: ReportKind::NotHeld },
        "done" => Input::Ended { token: FencingToken(number(words.next())), end: completed() },
        "once" => Input::Ended { token: FencingToken(number(words.next())), end: done(false) },
        "failed" => Input::Ended { token: FencingToken(number(words.next())), end: failed(true) },
        "dead" => Input::Ended { token: FencingToken(number(words.next())), end: failed(false) },
        "died" => Input::SlotDied { slot: SlotId(number(words.next())) },
        "gone" => Input::SlotGone { slot: SlotId(number(words.next())) },
        "waits" => {
            let (token, park) = (FencingToken(number(words.next())), park(vec![Wait::Message]));
            let waited = words.next().map_or(Duration::ZERO, |seconds| Duration::from_secs(number(Some(seconds))));
            Input::Waits { token, park, waited }
        }
        "steps" => {
            let (token, park) = (FencingToken(number(words.next())), park(Vec::new()));
            Input::Waits { token, park, waited: Duration::ZERO }
        }
        "over" => Input::WaitOver { token: FencingToken(number(words.next())) },
        "park" => Input::ParkAnswered {
            number: number(words.next()),
            result: match words.next() {
                Some("parked") => ParkResult::Parked,
                Some("ready") => ParkResult::Ready,
                Some("fenced") => ParkResult::Fenced,
                Some("busy") => ParkResult::Busy,
                _ => ParkResult::Refused { why: "no".to_owned() },
            },
        },
        "lost" => Input::Disconnected,
        "back" => Input::HandBack(words.next().map(|until| HandBack {
            deadline: (until != "slowly").then(|| HandBackDeadline {
                until: ClusterTime(number(Some(until))),
                within: Micros::from_secs(number(words.next())),
            }),
        })),
        "drain" => Input::Drain,
        "abandon" => Input::Abandon,
        other => panic!("unknown statement {other:?}"),
    }
}

/// An effect in words.
pub(super) fn show(effect: &Effect) -> String {
    match effect {
        Effect::SendHello { held } => {
            format!("hello {:?}", held.iter().map(|lease| lease.token).collect::<Vec<_>>())
        }
        Effect::SendRenew { number } => format!("renew {number}"),
        Effect::SaveReport { number, report } => format!("save {number}: {}", report.token),
        Effect::SavedAnswered { number, result } => format!("answered {number} {result:?}"),
        Effect::BeginEpoch => "begin epoch".to_owned(),
        Effect::SendReport { number, report } => {
            let kind = match &report.kind {
                ReportKind::Started => "started".to_owned(),
                ReportKind::Completed { usage, .. } => format!("completed idle={}", usage.idle),
                ReportKind::Failed { cancelled: true, .. } => "cancelled".to_owned(),
                ReportKind::Failed { failure, usage, .. } => format!("failed {:?} idle={}", failure.error, usage.idle),
                ReportKind::NotHeld => "not held".to_owned(),
            };
            format!("report {number}: {} {kind}", report.token)
        }
        Effect::SendWarmChanged { digest, idle } => format!("warm {digest:?} idle={idle}"),
        Effect::SendDraining => "draining".to_owned(),
        Effect::Disconnect { why } => format!("disconnect {why:?}"),
        Effect::PrepareAttempt { assignment } => format!("prepare {}", assignment.token),
        Effect::ForgetPrepared { token } => format!("forget {token}"),
        Effect::StartAttempt { assignment, slot, warm } => {
            format!("start {} slot={} {}", assignment.token, slot.0, if *warm { "warm" } else { "cold" })
        }
        Effect::StopAttempt { token, why, grace } => format!("stop {token} {why:?} grace={}s", grace.as_secs()),
        Effect::SendPark { number, token, park, .. } => {
            format!("park {number}: {token} waits={} used={}s", park.waits.len(), park.used.0 / 1_000_000)
        }
        Effect::Resume { token, refused: None } => format!("resume {token}"),
        Effect::Resume { token, refused: Some(why) } => format!("resume {token} refused {why:?}"),
        Effect::EvictSlot { slot } => format!("evict {}", slot.0),
        Effect::SendLeaving => "leaving".to_owned(),
        Effect::Drained => "drained".to_owned(),
    }
}
