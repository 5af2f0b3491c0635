//! Drains, with and without a deadline.

use expect_test::expect;

use super::check::check;

#[test]
fn a_drain_lets_attempts_end_and_evicts_the_rest() {
    check(
        "connect; welcome; grant 1; grant 2; done 1; drain; back slowly; done 2; ack 1; ack 2; lost",
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
            back slowly
            done 2
                evict 2
                report 2: 2 completed idle=0
            ack 1
            ack 2
                leaving
            lost
                drained
        "#]],
    );
}

#[test]
fn an_abandoned_drain_gives_leases_back() {
    check(
        "connect; welcome; grant 1; grant 2 start; ready 2; grant 3; drain; abandon; abandon; dead 1; done 3; ack 2; ack 3; ack 4; back slowly; lost",
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
            back slowly
                leaving
            lost
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

#[test]
fn a_process_leaves_when_its_leader_grants_it_nothing_more() {
    check(
        "connect; welcome; drain; grant 1; done 1; ack 1; back slowly; lost",
        &expect![[r#"
            connect
                hello []
            welcome
            drain
                draining
            grant 1
                start 1 slot=1 cold
            done 1
                evict 1
                report 1: 1 completed idle=0
            ack 1
            back slowly
                leaving
            lost
                drained
        "#]],
    );
}

#[test]
fn a_process_that_the_leader_does_not_let_go_ends_all_the_same() {
    check(
        "connect; welcome; drain; +9; +1",
        &expect![[r#"
            connect
                hello []
            welcome
            drain
                draining
            +9
                disconnect TimeUsedUp
                drained
            +1
                drained
        "#]],
    );
    check(
        "connect; welcome; drain; back slowly; +9; +1",
        &expect![[r#"
            connect
                hello []
            welcome
            drain
                draining
            back slowly
                leaving
            +9
                disconnect TimeUsedUp
                drained
            +1
                drained
        "#]],
    );
    check(
        "connect; drain; +9; lost",
        &expect![[r#"
            connect
                hello []
            drain
            +9
            lost
                drained
        "#]],
    );
}

#[test]
fn a_process_without_a_session_returns_to_say_that_it_leaves() {
    check(
        "connect; welcome; lost; drain; connect; back; welcome; back slowly; lost",
        &expect![[r#"
        connect
            hello []
        welcome
        lost
        drain
        connect
            hello []
        back
        welcome
            draining
        back slowly
            leaving
        lost
            drained
    "#]],
    );
    check(
        "connect; welcome; drain; lost; connect; back slowly; welcome; lost",
        &expect![[r#"
        connect
            hello []
        welcome
        drain
            draining
        lost
        connect
            hello []
        back slowly
        welcome
            draining
            leaving
        lost
            drained
    "#]],
    );
    check(
        "connect; drain; back; welcome; back slowly; lost",
        &expect![[r#"
        connect
            hello []
        drain
        back
        welcome
            draining
        back slowly
            leaving
        lost
            drained
    "#]],
    );
    check(
        "connect; welcome; lost; drain; +2",
        &expect![[r#"
        connect
            hello []
        welcome
        lost
        drain
        +2
            drained
    "#]],
    );
}

#[test]
fn a_process_that_never_had_a_session_ends_at_once() {
    check(
        "drain",
        &expect![[r#"
        drain
            drained
    "#]],
    );
}

#[test]
fn a_drain_that_somebody_ends_is_asked_for_again() {
    check(
        "connect; welcome; grant 1; drain; back slowly; back; back slowly; done 1; ack 1; lost",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        drain
            draining
        back slowly
        back
            draining
        back slowly
        done 1
            evict 1
            report 1: 1 completed idle=0
        ack 1
            leaving
        lost
            drained
    "#]],
    );
}
