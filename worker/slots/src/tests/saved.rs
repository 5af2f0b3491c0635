//! Results of attempts that must not run twice: on disk before they are sent, delivered by the next process.

use atlas_types::{FencingToken, JobId, Report};
use expect_test::expect;

use super::check::{check, check_from};
use super::language::completed;
use crate::{Options, Slots};

#[test]
fn a_result_of_what_must_not_run_twice_is_saved_before_it_is_sent() {
    check(
        "connect; welcome; grant 1 start; ready 1; ack 1; grant 2; done 1; done 2; lost; connect; welcome; saved 2; ack 2; ack 3",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 start
                prepare 1
            ready 1
                report 1: 1 started
            ack 1
                start 1 slot=1 cold
            grant 2
                start 2 slot=2 cold
            done 1
                save 2: 1
            done 2
                report 3: 2 completed idle=2
            lost
            connect
                hello []
            welcome
                report 3: 2 completed idle=2
            saved 2
                report 2: 1 completed idle=1
            ack 2
                answered 2 Some(Applied)
            ack 3
        "#]],
    );
}

fn earlier(tokens: &[u64]) -> Slots {
    let report = |&token: &u64| Report { job: JobId(token), token: FencingToken(token), kind: completed().report };
    Slots::deliver(Options::default(), (1..).zip(tokens.iter().map(report)))
}

#[test]
fn what_an_earlier_process_saved_is_delivered_before_anything_runs() {
    let script = "connect; welcome 1 7; grant 8; lost; connect; welcome 1 7; ack 1; ack 2 fenced; connect; welcome 9";
    check_from(
        earlier(&[1, 2]),
        script,
        &expect![[r#"
        connect
            hello []
        welcome 1 7
            report 1: 1 completed idle=0
            report 2: 2 completed idle=0
        grant 8
        lost
        connect
            hello []
        welcome 1 7
            report 1: 1 completed idle=0
            report 2: 2 completed idle=0
        ack 1
            answered 1 Some(Applied)
        ack 2 fenced
            answered 2 Some(Fenced)
            begin epoch
        connect
            hello []
        welcome 9
            start 9 slot=1 cold
    "#]],
    );
}

#[test]
fn a_leader_that_never_answers_does_not_hold_a_node_up() {
    check_from(
        earlier(&[1]),
        "connect; welcome; renewed 1; +7; renewed 2; +23; connect; welcome",
        &expect![[r#"
        connect
            hello []
        welcome
            report 1: 1 completed idle=0
        renewed 1
        +7
            renew 1
        renewed 2
        +23
            disconnect TimeUsedUp
            answered 1 None
            begin epoch
        connect
            hello []
        welcome
    "#]],
    );
}

#[test]
fn nothing_saved_is_nothing_to_deliver() {
    check_from(
        earlier(&[]),
        "connect; welcome; grant 1; done 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        done 1
            report 1: 1 completed idle=1
    "#]],
    );
}
