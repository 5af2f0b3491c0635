//! Reports, leases and sessions that come and go.

use expect_test::expect;

use super::check::check;

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
        "connect; welcome; grant 1; +3; +2; renewed 1; +3; renewed 99; +2; +1; done 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        +3
            renew 1
        +2
        renewed 1
        +3
            renew 2
        renewed 99
        +2
        +1
            stop 1 SessionExpired grace=0s
            disconnect TimeUsedUp
        done 1
            evict 1
    "#]],
    );
}

#[test]
fn a_leader_that_leaves_renewals_unanswered_is_left_and_what_runs_goes_on() {
    check(
        "connect; welcome; grant 1; +3; +3; lost; connect; welcome 1; +3; renewed 2; +3; done 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        +3
            renew 1
        +3
            disconnect Unanswered
        lost
        connect
            hello [1]
        welcome 1
        +3
            renew 2
        renewed 2
        +3
            renew 3
        done 1
            report 1: 1 completed idle=1
    "#]],
    );
}

#[test]
fn a_leader_is_not_left_whose_answer_was_only_not_looked_at() {
    check(
        "connect; welcome; grant 1; +3; busy 4; renewed 1; done 1",
        &expect![[r#"
        connect
            hello []
        welcome
        grant 1
            start 1 slot=1 cold
        +3
            renew 1
        busy 4
        renewed 1
            renew 2
        done 1
            report 1: 1 completed idle=1
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
            disconnect NoWelcome
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
            disconnect TimeUsedUp
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
        "connect; welcome; grant 1; cancel 1; cancel 1; done 1; grant 2 start; ready 2; cancel 2; ack 2; cancel 9",
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
                prepare 2
            ready 2
                report 2: 2 started
            cancel 2
                forget 2
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
fn a_start_that_was_given_up_is_not_reported_again() {
    check(
        "connect; welcome; grant 1 start; ready 1; lost; +8; connect; welcome 1",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 start
                prepare 1
            ready 1
                report 1: 1 started
            lost
            +8
                forget 1
            connect
                hello []
            welcome 1
                report 2: 1 not held
        "#]],
    );
    check(
        "connect; welcome; grant 1 start; ready 1; lost; connect; welcome; lost; connect; welcome",
        &expect![[r#"
            connect
                hello []
            welcome
            grant 1 start
                prepare 1
            ready 1
                report 1: 1 started
            lost
            connect
                hello [1]
            welcome
                forget 1
            lost
            connect
                hello []
            welcome
        "#]],
    );
}
