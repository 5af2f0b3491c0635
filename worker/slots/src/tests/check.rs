//! `check(script, expected)`: statements separated by `;`, the effects of each on lines of their own.
//!
//! `connect` `welcome [T…]` (ttl 10 s) `grant T [job=N] [digest=N] [gpu=N] [start]` `cancel T` `revoke T` `renewed N`
//! `ack N [fenced]` `done T` `failed T` `dead T` (failed, slot gone) `died S` `lost` `drain` `abandon` `+N` (seconds, then a tick)

use std::time::Duration;

use atlas_types::{
    AgentName, Allocation, Assignment, Attempt, Digest, Failure, FailureKind, FencingToken, GpuShare, JobId, Micros,
    Namespace, NodeEpoch, Payload, ReportKind, ReportResult, Usage, Version,
};
use expect_test::{Expect, expect};

use crate::{AttemptEnd, Effect, Input, Options, SlotId, Slots};

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
    }
}

pub(super) fn completed() -> AttemptEnd {
    let output = Payload::inline(b"{}");
    AttemptEnd { report: ReportKind::Completed { output, usage: Usage::default(), metadata: None }, slot_usable: true }
}

fn failed(slot_usable: bool) -> AttemptEnd {
    let failure = Failure { kind: FailureKind::Agent, error: "kaput".into() };
    let usage = Usage::default();
    AttemptEnd {
        report: ReportKind::Failed { failure, output: None, usage, metadata: None, cancelled: false },
        slot_usable,
    }
}

fn number(word: Option<&str>) -> u64 {
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
            ("start", _) => lease.needs_start = true,
            (other, _) => panic!("unknown option {other:?}"),
        }
    }
    lease
}

fn input(statement: &str) -> Input {
    let mut words = statement.split_whitespace();
    let verb = words.next().expect("a statement has a verb");
    match verb {
        "connect" => Input::Connected,
        "welcome" => {
            let leases = words.map(|word| granted(number(Some(word)), [].into_iter())).collect();
            Input::Welcome { epoch: NodeEpoch(1), ttl: Duration::from_secs(10), leases }
        }
        "grant" => Input::Granted(granted(number(words.next()), words)),
        "cancel" => Input::Cancelled { token: FencingToken(number(words.next())), grace: Duration::from_secs(2) },
        "revoke" => Input::Revoked { token: FencingToken(number(words.next())) },
        "renewed" => Input::RenewAcked { number: number(words.next()) },
        "ack" => {
            let number = number(words.next());
            let result = if words.next() == Some("fenced") { ReportResult::Fenced } else { ReportResult::Applied };
            Input::ReportAcked { number, result }
        }
        "done" => Input::Ended { token: FencingToken(number(words.next())), end: completed() },
        "failed" => Input::Ended { token: FencingToken(number(words.next())), end: failed(true) },
        "dead" => Input::Ended { token: FencingToken(number(words.next())), end: failed(false) },
        "died" => Input::SlotDied { slot: SlotId(number(words.next())) },
        "lost" => Input::Disconnected,
        "drain" => Input::Drain,
        "abandon" => Input::Abandon,
        other => panic!("unknown statement {other:?}"),
    }
}

fn show(effect: &Effect) -> String {
    match effect {
        Effect::SendHello { held } => {
            format!("hello {:?}", held.iter().map(|lease| lease.token).collect::<Vec<_>>())
        }
        Effect::SendRenew { number } => format!("renew {number}"),
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
        Effect::Disconnect => "disconnect".to_owned(),
        Effect::StartAttempt { assignment, slot, warm } => {
            format!("start {} slot={} {}", assignment.token, slot.0, if *warm { "warm" } else { "cold" })
        }
        Effect::StopAttempt { token, why, grace } => format!("stop {token} {why:?} grace={}s", grace.as_secs()),
        Effect::EvictSlot { slot } => format!("evict {}", slot.0),
        Effect::Drained => "drained".to_owned(),
    }
}

fn check(script: &str, expected: &Expect) {
    let mut slots = Slots::new(Options::default());
    let mut now = Duration::ZERO;
    let mut shown = String::new();
    for statement in script.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        let effects = match statement.strip_prefix('+') {
            Some(seconds) => {
                now += Duration::from_secs(number(Some(seconds)));
                slots.step(Input::Tick, now)
            }
            None => slots.step(input(statement), now),
        };
        shown.push_str(&format!("{statement}\n"));
        for effect in &effects {
            shown.push_str(&format!("    {}\n", show(effect)));
        }
    }
    expected.assert_eq(&shown);
}

#[test]
fn a_job_runs_cold_then_warm() {
    check(
        "connect; welcome; grant 1; done 1; ack 1; grant 2; done 2; ack 2",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        done 1
            report 1: 1 completed idle=1
        ack 1
        grant 2
            start 2 slot=1 warm
        done 2
            report 2: 2 completed idle=1
        ack 2
    "#]],
    );
}

#[test]
fn slots_are_told_apart_by_package_and_device() {
    check(
        "connect; welcome; grant 1; done 1; grant 2 digest=2; done 2; grant 3 gpu=1; done 3; grant 4 gpu=1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        done 1
            report 1: 1 completed idle=1
        grant 2 digest=2
            start 2 slot=2 cold
        done 2
            report 2: 2 completed idle=1
        grant 3 gpu=1
            start 3 slot=3 cold
        done 3
            report 3: 3 completed idle=2
        grant 4 gpu=1
            start 4 slot=3 warm
    "#]],
    );
}

#[test]
fn only_so_many_idle_slots_are_kept() {
    check(
        "connect; welcome; grant 1; grant 2; grant 3; done 1; done 2; done 3",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        grant 2
            start 2 slot=2 cold
        grant 3
            start 3 slot=3 cold
        done 1
            report 1: 1 completed idle=1
        done 2
            report 2: 2 completed idle=2
        done 3
            evict 3
            report 3: 3 completed idle=2
    "#]],
    );
}

#[test]
fn idle_slots_grow_old() {
    check(
        "connect; welcome; grant 1; done 1; ack 1; lost; +300",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        done 1
            report 1: 1 completed idle=1
        ack 1
        lost
        +300
            evict 1
    "#]],
    );
}

#[test]
fn a_slot_that_died_is_not_handed_out() {
    check(
        "connect; welcome; grant 1; done 1; died 1; grant 2; dead 2; grant 3",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        done 1
            report 1: 1 completed idle=1
        died 1
            warm sha256:01010101 idle=0
        grant 2
            start 2 slot=2 cold
        dead 2
            report 2: 2 failed "kaput" idle=0
        grant 3
            start 3 slot=3 cold
    "#]],
    );
}

#[test]
fn a_grant_that_comes_twice_runs_once() {
    check(
        "connect; welcome; grant 1; grant 1; done 1; grant 1; ack 1; grant 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        grant 1
        done 1
            report 1: 1 completed idle=1
        grant 1
        ack 1
        grant 1
    "#]],
    );
}

#[test]
fn a_start_that_must_be_committed_is_waited_for() {
    check(
        "connect; welcome; grant 1 start; ack 1; done 1; grant 2 start; ack 3 fenced; grant 2 start",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1 start
            report 1: 1 started
        ack 1
            start 1 slot=1 cold
        done 1
            report 2: 1 completed idle=1
        grant 2 start
            report 3: 2 started
        ack 3 fenced
        grant 2 start
    "#]],
    );
}

#[test]
fn reports_are_kept_and_sent_again_in_order() {
    check(
        "connect; welcome; grant 1; grant 2; lost; done 2; done 1; connect; welcome 1 2; ack 1; lost; connect; welcome 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        grant 2
            start 2 slot=2 cold
        lost
        done 2
        done 1
        connect
            hello []
        welcome 1 2
            report 1: 2 completed idle=1
            report 2: 1 completed idle=2
        ack 1
        lost
        connect
            hello []
        welcome 1
            report 2: 1 completed idle=2
    "#]],
    );
}

#[test]
fn a_fenced_report_is_done_with() {
    check(
        "connect; welcome; grant 1; done 1; ack 1 fenced; lost; connect; welcome",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        done 1
            report 1: 1 completed idle=1
        ack 1 fenced
        lost
        connect
            hello []
        welcome
    "#]],
    );
}

#[test]
fn a_lost_grant_comes_with_the_next_welcome() {
    check(
        "connect; welcome; lost; connect; welcome 5",
        &expect![[r#"
        connect
            hello []
        welcome
        lost
        connect
            hello []
        welcome 5
            start 5 slot=1 cold
    "#]],
    );
}

#[test]
fn attempts_that_the_leader_does_not_know_are_stopped_and_dropped() {
    check(
        "connect; welcome; grant 1; grant 2; lost; connect; welcome 2; done 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        grant 2
            start 2 slot=2 cold
        lost
        connect
            hello [1, 2]
        welcome 2
            stop 1 Revoked grace=0s
        done 1
            evict 1
    "#]],
    );
}

#[test]
fn time_to_live_counts_from_the_sending_of_the_acknowledged_renewal() {
    check(
        "connect; welcome; grant 1; +3; +3; renewed 1; +4; renewed 99; +1; done 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        +3
            renew 1
        +3
            renew 2
        renewed 1
        +4
            renew 3
        renewed 99
        +1
            stop 1 SessionExpired grace=0s
            disconnect
        done 1
            evict 1
    "#]],
    );
}

#[test]
fn a_lease_that_we_gave_up_is_reported_as_not_held() {
    check(
        "connect; welcome; grant 1; lost; +8; done 1; connect; welcome 1; ack 1; grant 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        lost
        +8
            stop 1 SessionExpired grace=0s
        done 1
            evict 1
        connect
            hello []
        welcome 1
            report 1: 1 not held
        ack 1
        grant 1
    "#]],
    );
}

#[test]
fn a_lease_is_given_back_only_when_its_process_is_dead() {
    check(
        "connect; welcome; grant 1; lost; +8; connect; welcome 1; dead 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        lost
        +8
            stop 1 SessionExpired grace=0s
        connect
            hello []
        welcome 1
        dead 1
            report 1: 1 not held
    "#]],
    );
}

#[test]
fn a_hello_without_an_answer_is_given_up() {
    check(
        "connect; +9; +1; welcome; connect; welcome",
        &expect![[r#"
        connect
            hello []
        +9
        +1
            disconnect
        welcome
        connect
            hello []
        welcome
    "#]],
    );
}

#[test]
fn a_welcome_that_comes_too_late_is_not_believed() {
    check(
        "connect; +9; welcome 1; connect; welcome 1",
        &expect![[r#"
        connect
            hello []
        +9
        welcome 1
            disconnect
        connect
            hello []
        welcome 1
            start 1 slot=1 cold
    "#]],
    );
}

#[test]
fn a_cancel_ends_in_a_cancelled_report_whatever_the_agent_says() {
    check(
        "connect; welcome; grant 1; cancel 1; cancel 1; done 1; grant 2 start; cancel 2; ack 2; cancel 9",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        cancel 1
            stop 1 Cancelled grace=2s
        cancel 1
        done 1
            report 1: 1 cancelled
        grant 2 start
            report 2: 2 started
        cancel 2
            report 3: 2 cancelled
        ack 2
        cancel 9
    "#]],
    );
}

#[test]
fn a_revoked_attempt_is_stopped_and_reports_nothing() {
    check(
        "connect; welcome; grant 1; revoke 1; done 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        revoke 1
            stop 1 Revoked grace=0s
        done 1
            evict 1
    "#]],
    );
}

#[test]
fn a_newer_lease_of_a_job_stops_the_older() {
    check(
        "connect; welcome; grant 1 job=7; grant 2 job=7; dead 1; done 2",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 job=7
                start 1 slot=1 cold
            grant 2 job=7
                stop 1 Revoked grace=0s
            dead 1
                start 2 slot=2 cold
            done 2
                report 1: 2 completed idle=1
        "#]],
    );
}

#[test]
fn a_drain_lets_attempts_end_and_evicts_the_rest() {
    check(
        "connect; welcome; grant 1; grant 2; done 1; drain; done 2; ack 1; ack 2",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        grant 2
            start 2 slot=2 cold
        done 1
            report 1: 1 completed idle=1
        drain
            draining
            evict 1
            warm sha256:01010101 idle=0
        done 2
            evict 2
            report 2: 2 completed idle=0
        ack 1
        ack 2
            drained
    "#]],
    );
}

#[test]
fn a_start_that_was_given_up_is_not_reported_again() {
    check(
        "connect; welcome; grant 1 start; lost; +8; connect; welcome 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1 start
            report 1: 1 started
        lost
        +8
        connect
            hello []
        welcome 1
            report 2: 1 not held
    "#]],
    );
    check(
        "connect; welcome; grant 1 start; lost; connect; welcome; lost; connect; welcome",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 start
                report 1: 1 started
            lost
            connect
                hello [1]
            welcome
            lost
            connect
                hello []
            welcome
        "#]],
    );
}

#[test]
fn an_abandoned_drain_gives_leases_back() {
    check(
        "connect; welcome; grant 1; grant 2 start; grant 3; drain; abandon; abandon; dead 1; done 3; ack 2; ack 3; ack 4",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1
                start 1 slot=1 cold
            grant 2 start
                report 1: 2 started
            grant 3
                start 3 slot=2 cold
            drain
                draining
            abandon
                stop 1 Abandoned grace=2s
                report 2: 2 not held
                stop 3 Abandoned grace=2s
            abandon
            dead 1
                report 3: 1 not held
            done 3
                evict 2
                report 4: 3 completed idle=0
            ack 2
            ack 3
            ack 4
                drained
        "#]],
    );
}
