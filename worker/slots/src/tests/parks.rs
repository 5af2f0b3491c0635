//! Attempts that wait, and whose jobs are parked.

use expect_test::expect;

use super::check::check;

const RUNNING: &str = "connect; welcome; grant 1; renewed 1; ";

fn check_running(script: &str, expected: &expect_test::Expect) {
    check(&format!("{RUNNING}{script}"), expected);
}

#[test]
fn a_wait_parks_its_job_after_a_while_and_nothing_is_reported() {
    check_running(
        "waits 1; +4; +1; park 1 parked; dead 1; gone 1; welcome",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        renewed 1
        waits 1
        +4
            renew 1
        +1
            park 1: 1 waits=1 used=6s
        park 1 parked
            stop 1 Parked grace=0s
        dead 1
        gone 1
        welcome
    "#]],
    );
}

#[test]
fn a_wait_that_has_lasted_parks_its_job_sooner() {
    check_running(
        "waits 1 4; +1; park 1 parked; dead 1; gone 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        renewed 1
        waits 1 4
        +1
            park 1: 1 waits=1 used=2s
        park 1 parked
            stop 1 Parked grace=0s
        dead 1
        gone 1
    "#]],
    );
}

#[test]
fn a_short_wait_asks_nobody() {
    check_running(
        "waits 1; +3; over 1; over 1; +9",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        renewed 1
        waits 1
        +3
            renew 1
        over 1
            resume 1
        over 1
        +9
            stop 1 SessionExpired grace=0s
            disconnect TimeUsedUp
    "#]],
    );
}

#[test]
fn a_wait_that_ends_while_the_leader_is_asked_continues_only_after_the_answer() {
    check_running(
        "waits 1; +5; renewed 1; over 1; park 1 ready; waits 1; +5; over 1; park 1 ready; park 2 busy",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1
                start 1 slot=1 cold
            renewed 1
            waits 1
            +5
                renew 1
                park 1: 1 waits=1 used=6s
            renewed 1
            over 1
            park 1 ready
                resume 1
            waits 1
            +5
                renew 2
                park 2: 1 waits=1 used=6s
            over 1
            park 1 ready
            park 2 busy
                resume 1
        "#]],
    );
    check_running(
        "waits 1; +5; over 1; park 1 parked",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        renewed 1
        waits 1
        +5
            renew 1
            park 1: 1 waits=1 used=6s
        over 1
        park 1 parked
            stop 1 Parked grace=0s
    "#]],
    );
}

#[test]
fn a_busy_leader_is_asked_again_and_a_refusal_is_passed_on() {
    check_running(
        "waits 1; +5; renewed 1; park 1 busy; +4; renewed 2; +1; park 2 refused",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        renewed 1
        waits 1
        +5
            renew 1
            park 1: 1 waits=1 used=6s
        renewed 1
        park 1 busy
        +4
            renew 2
        renewed 2
        +1
            park 2: 1 waits=1 used=11s
        park 2 refused
            resume 1 refused "no"
    "#]],
    );
}

#[test]
fn a_request_is_sent_again_on_the_next_stream_while_the_lease_is_held() {
    check_running(
        "waits 1; +5; lost; connect; welcome 1; park 1 ready",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        renewed 1
        waits 1
        +5
            renew 1
            park 1: 1 waits=1 used=6s
        lost
        connect
            hello [1]
        welcome 1
            park 1: 1 waits=1 used=6s
        park 1 ready
            resume 1
    "#]],
    );
    check_running(
        "waits 1; +5; lost; connect; welcome; park 1 ready; dead 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        renewed 1
        waits 1
        +5
            renew 1
            park 1: 1 waits=1 used=6s
        lost
        connect
            hello [1]
        welcome
            stop 1 Revoked grace=0s
        park 1 ready
        dead 1
    "#]],
    );
    check_running(
        "waits 1; lost; +5; connect; welcome 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        renewed 1
        waits 1
        lost
        +5
        connect
            hello [1]
        welcome 1
            park 1: 1 waits=1 used=6s
    "#]],
    );
}

#[test]
fn between_two_steps_a_job_leaves_a_draining_node_only() {
    check_running(
        "steps 1; drain; steps 1; park 1 busy; steps 1; park 2 parked; dead 1; back slowly; lost",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1
                start 1 slot=1 cold
            renewed 1
            steps 1
                resume 1
            drain
                draining
            steps 1
                park 1: 1 waits=0 used=1s
            park 1 busy
                resume 1
            steps 1
                park 2: 1 waits=0 used=1s
            park 2 parked
                stop 1 Parked grace=0s
            dead 1
            back slowly
                leaving
            lost
                drained
        "#]],
    );
    check_running(
        "back 9 60; steps 1; park 1 ready; back; steps 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        renewed 1
        back 9 60
        steps 1
            park 1: 1 waits=0 used=1s
        park 1 ready
            resume 1
        back
        steps 1
            resume 1
    "#]],
    );
}

#[test]
fn a_drain_parks_what_waits_soon() {
    check_running(
        "waits 1; drain; +1; park 1 fenced; dead 1; back slowly; lost",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1
                start 1 slot=1 cold
            renewed 1
            waits 1
            drain
                draining
            +1
                park 1: 1 waits=1 used=2s
            park 1 fenced
                stop 1 Revoked grace=0s
            dead 1
            back slowly
                leaving
            lost
                drained
        "#]],
    );
}

#[test]
fn an_attempt_that_is_stopped_is_not_parked() {
    check_running(
        "waits 1; cancel 1; +5; dead 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        renewed 1
        waits 1
        cancel 1
            stop 1 Cancelled grace=2s
        +5
            renew 1
        dead 1
            report 1: 1 cancelled
    "#]],
    );
    check_running(
        "waits 1; +5; cancel 1; park 1 parked; dead 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        renewed 1
        waits 1
        +5
            renew 1
            park 1: 1 waits=1 used=6s
        cancel 1
            stop 1 Cancelled grace=2s
        park 1 parked
            stop 1 Parked grace=0s
        dead 1
    "#]],
    );
    check_running(
        "waits 1; +5; revoke 1; park 1 parked; waits 1; over 1; dead 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        renewed 1
        waits 1
        +5
            renew 1
            park 1: 1 waits=1 used=6s
        revoke 1
            stop 1 Revoked grace=0s
        park 1 parked
        waits 1
        over 1
        dead 1
    "#]],
    );
}

#[test]
fn a_process_that_has_left_its_parked_job_serves_the_next_one() {
    check_running(
        "waits 1; +4; +1; park 1 parked; failed 1; grant 2",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        renewed 1
        waits 1
        +4
            renew 1
        +1
            park 1: 1 waits=1 used=6s
        park 1 parked
            stop 1 Parked grace=0s
        failed 1
        grant 2
            start 2 slot=1 warm
    "#]],
    );
}
