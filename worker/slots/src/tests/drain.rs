//! Drains, with and without a deadline.

use expect_test::expect;

use super::check::check;

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
fn an_abandoned_drain_gives_leases_back() {
    check(
        "connect; welcome; grant 1; grant 2 start; ready 2; grant 3; drain; abandon; abandon; dead 1; done 3; ack 2; ack 3; ack 4",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1
                start 1 slot=1 cold
            grant 2 start
                prepare 2
            ready 2
                report 1: 2 started
            grant 3
                start 3 slot=3 cold
            drain
                draining
            abandon
                stop 1 Abandoned grace=2s
                forget 2
                report 2: 2 not held
                stop 3 Abandoned grace=2s
            abandon
            dead 1
                report 3: 1 not held
            done 3
                evict 3
                report 4: 3 completed idle=0
            ack 2
            ack 3
            ack 4
                drained
        "#]],
    );
}

#[test]
fn what_a_drained_node_still_runs_at_its_deadline_is_given_back() {
    check(
        "connect; welcome; grant 1; grant 2 start; back 50 3; renewed 1; +2; renewed 2; +1; dead 1; ack 1; ack 2; grant 3",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1
                start 1 slot=1 cold
            grant 2 start
                prepare 2
            back 50 3
            renewed 1
            +2
            renewed 2
            +1
                stop 1 Abandoned grace=2s
                forget 2
                report 1: 2 not held
                renew 1
            dead 1
                report 2: 1 not held
            ack 1
            ack 2
            grant 3
                start 3 slot=2 cold
                stop 3 Abandoned grace=2s
        "#]],
    );
}

#[test]
fn a_deadline_that_is_told_again_can_only_come_sooner() {
    check(
        "connect; welcome; grant 1; back 50 9; back 60 3; +2; back 60 3; +1",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1
                start 1 slot=1 cold
            back 50 9
            back 60 3
            +2
            back 60 3
            +1
                stop 1 Abandoned grace=2s
                renew 1
        "#]],
    );
}

#[test]
fn a_drain_that_is_over_has_no_deadline() {
    check(
        "connect; welcome; grant 1; back 50 1; back; +2; back 50 0",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1
                start 1 slot=1 cold
            back 50 1
            back
            +2
            back 50 0
                stop 1 Abandoned grace=2s
        "#]],
    );
}
