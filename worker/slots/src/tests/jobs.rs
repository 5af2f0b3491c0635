//! Attempts and the slots that they run in.

use expect_test::expect;

use super::check::check;

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
fn only_so_many_idle_slots_are_kept_for_long() {
    check(
        "connect; welcome; grant 1; grant 2; grant 3; done 1; done 2; done 3; grant 4; done 4; ack 1; ack 2; ack 3; ack 4; lost; +1",
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
                report 3: 3 completed idle=3
            grant 4
                start 4 slot=3 warm
            done 4
                report 4: 4 completed idle=3
            ack 1
            ack 2
            ack 3
            ack 4
            lost
            +1
                evict 3
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
        "connect; welcome; grant 1 start; ready 1; ready 1; ack 1; done 1; grant 2 start; ready 2; ack 3 fenced; grant 2 start",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 start
                prepare 1
            ready 1
                report 1: 1 started
            ready 1
            ack 1
                start 1 slot=1 cold
            done 1
                save 2: 1
            grant 2 start
                prepare 2
            ready 2
                report 3: 2 started
            ack 3 fenced
                forget 2
            grant 2 start
        "#]],
    );
}

#[test]
fn what_could_not_be_prepared_never_started() {
    check(
        "connect; welcome; grant 1 start; missing 1; ready 1; grant 2 start; lost; +8; ready 2; connect; welcome 2",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 start
                prepare 1
            missing 1
                report 1: 1 not held
            ready 1
            grant 2 start
                prepare 2
            lost
            +8
                forget 2
            ready 2
            connect
                hello []
            welcome 2
                report 1: 1 not held
                report 2: 2 not held
        "#]],
    );
    check(
        "connect; welcome; grant 1 start; revoke 1; ready 1; grant 2 start; cancel 2; missing 2; grant 3 start; abandon",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 start
                prepare 1
            revoke 1
                forget 1
            ready 1
            grant 2 start
                prepare 2
            cancel 2
                forget 2
                report 1: 2 cancelled
            missing 2
            grant 3 start
                prepare 3
            abandon
                draining
                forget 3
                report 2: 3 not held
        "#]],
    );
}
