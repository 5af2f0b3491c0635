//! Parking, waking, and what a parked job keeps.

use expect_test::expect;

use crate::tests::check;
use crate::tests::script::Run;

const RUNNING: &str =
    "level 6; agent a spawns=true attempts=2; node n1; job j1; grant j1 n1; record j1 from=0 steps=s,m";

#[test]
fn a_parked_job_holds_nothing_and_wakes_when_its_time_has_come() {
    check(
        &format!(
            "{RUNNING} -- park j1 at=5; show n1; show j1; wake j1; grant j1 n1; clock +5; wake j1; wake j1; grant j1 n1; complete j1"
        ),
        expect![[r#"
            j1 Parked running→pending Parked
            n1: places 4 cores any memory any gpus [] warm []
            j1: pending Parked attempt 1
            ! the job is not due yet
            ! the job is Pending
            j1 Woken pending→pending Queued
            ! the job is Pending
            j1 Granted pending→running on n1 token 2 attempt 2
            j1 Ended running→completed
        "#]],
    );
}

#[test]
fn a_time_that_has_passed_leaves_the_lease() {
    check(
        &format!("{RUNNING} -- park j1 at=1; park j1 at=9,0; show j1; complete j1"),
        expect![[r#"
            = ready
            = ready
            j1: running Running attempt 1
            j1 Ended running→completed
        "#]],
    );
}

#[test]
fn a_job_with_a_bearer_waits_under_its_lease() {
    let running = RUNNING.replace("job j1", "job j1 bearer=true");
    check(
        &format!("{running} -- park j1 at=5; show j1"),
        expect![[r#"
        = ready
        j1: running Running attempt 1
    "#]],
    );
}

#[test]
fn only_the_holder_parks_and_only_after_all_recorded_steps() {
    check(
        &format!(
            "{RUNNING}; job j2; grant j2 n1 -- park j1 at=5 token=9; park j1 at=5 node=n2; park j9 at=5; park j1 at=5 length=1;
            park j1 at=5 length=3; park j2 at=5; park j1; park j1 at=5; park j1 at=5 token=1 node=n1; record j1 from=2 steps=t token=1 node=n1"
        ),
        expect![[r#"
            ! the lease is outdated
            ! the lease is outdated
            ! the lease is outdated
            ! the journal has 2 steps, so nothing can go on after 1
            ! the journal has 2 steps, so nothing can go on after 3
            ! the job has no recorded steps, so it can neither park nor ask
            ! the job cannot park without anything to wait for
            j1 Parked running→pending Parked
            ! the lease is outdated
            ! the lease is outdated
        "#]],
    );
}

#[test]
fn the_number_of_waits_is_bounded() {
    let times = |count| vec!["9"; count].join(",");
    check(
        &format!("{RUNNING} -- park j1 at={}; park j1 at={}", times(65), times(64)),
        expect![[r#"
            ! the cluster's limit of 64 for waits of a job is reached
            j1 Parked running→pending Parked
        "#]],
    );
}

#[test]
fn a_parked_job_is_cancelled_at_once_but_not_as_one_that_never_started() {
    check(
        &format!(
            "{RUNNING}; park j1 at=5 -- cancel-pending j1; fail-pending j1; cancel j1; show j1; clock +9; wake j1"
        ),
        expect![[r#"
            = nothing to cancel
            ! the job is Pending
            j1 Ended pending→cancelled
            j1: cancelled attempt 1
            ! the job is Cancelled
        "#]],
    );
    check(
        &format!("{RUNNING}; park j1 at=5; clock +9; wake j1 -- cancel-pending j1; cancel j1"),
        expect![[r#"
            = nothing to cancel
            j1 Ended pending→cancelled
        "#]],
    );
}

#[test]
fn a_job_that_is_to_stop_does_not_park() {
    check(
        &format!("{RUNNING}; cancel j1 -- park j1 at=5; show n1"),
        expect![[r#"
            j1 Ended running→cancelled
            n1: places 4 cores any memory any gpus [] warm []
        "#]],
    );
}

#[test]
fn a_park_is_no_loss() {
    check(
        &format!(
            "{RUNNING}; park j1 at=2; clock +9; wake j1; grant j1 n1; park j1 at=3; clock +9; wake j1 --
            grant j1 n1; lose j1; grant j1 n1; lose j1"
        ),
        expect![[r#"
            j1 Granted pending→running on n1 token 3 attempt 3
            j1 Lost running→pending Lost
            j1 Granted pending→running on n1 token 4 attempt 4
            j1 Ended running→failed LeaseLost: lease lost 2 times
        "#]],
    );
}

#[test]
fn the_last_loss_of_a_once_job_that_parked_leaves_it_in_doubt() {
    check(
        "level 6; agent a effects=once attempts=2 retries=1; node n1; job j1; grant j1 n1; start j1; record j1 from=0 steps=s;
        park j1 at=5; clock +9; wake j1 -- grant j1 n1; lose j1; grant j1 n1; lose j1; journal j1; resolve j1 again; grant j1 n1",
        expect![[r#"
            j1 Granted pending→running on n1 token 2 attempt 2
            j1 Lost running→pending Lost
            j1 Granted pending→running on n1 token 3 attempt 3
            j1 Lost running→pending InDoubt
            j1: folds [] steps start of 66 bytes
            j1 Resolved pending→pending Lost
            j1 Granted pending→running on n1 token 4 attempt 4
        "#]],
    );
}

#[test]
fn a_park_uses_up_execution_time() {
    let mut run = Run::new();
    let left = |run: &Run| {
        let job = run.state.job(run.job_id("j1")).expect("it is there");
        job.execution_left().map(|left| left.0 / 1_000_000)
    };
    run.prepare(RUNNING);
    assert_eq!(left(&run), Some(60));
    let due = |run: &Run| run.state.next_due().map(|due| due.0 / 1_000_000);
    let before = due(&run).expect("it runs");
    run.prepare("park j1 at=5 used=20; clock +9; wake j1; grant j1 n1");
    assert_eq!(left(&run), Some(40));
    assert_eq!(due(&run), Some(before + 9 - 20));
    run.prepare("park j1 at=6 used=70; clock +9; wake j1");
    assert_eq!(run.state.job(run.job_id("j1")).and_then(|job| job.execution_left()), Some(atlas_types::Micros(1)));
}

#[test]
fn the_end_of_a_child_or_of_its_last_retry_wakes_its_parent() {
    check(
        &format!(
            "{RUNNING}; agent b retries=1; spawn j1 c1 agent=b; spawn j1 c2 -- park j1 child=c1; show n1; grant c1 n1; fail c1; show j1; clock +1;
            wake c1'1; grant c1'1 n1; fail c1'1; show j1; grant j1 n1; show n1; park j1 child=c1; park j1 child=c1'1; park j1 child=c2; cancel c2"
        ),
        expect![[r#"
            j1 Parked running→pending Parked
            n1: places 4 cores any memory any gpus [] warm []
            c1 Granted pending→running on n1 token 2 attempt 1
            c1 Ended running→failed Agent: boom
            c1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
            j1: pending Parked attempt 1
            c1'1 Woken pending→pending Queued
            c1'1 Granted pending→running on n1 token 3 attempt 1
            c1'1 Ended running→failed Agent: boom
            j1 Woken pending→pending Queued
            j1: pending Queued attempt 1
            j1 Granted pending→running on n1 token 4 attempt 2
            n1: places 3 cores any memory any gpus [] warm []
            = ready
            = ready
            j1 Parked running→pending Parked
            c2 Ended pending→cancelled
            j1 Woken pending→pending Queued
        "#]],
    );
}

#[test]
fn a_job_waits_for_its_own_children_only() {
    check(
        &format!("{RUNNING}; job j2; grant j2 n1; spawn j2 c2 -- park j1 child=c2; park j1 child=j2; park j1 child=c7"),
        expect![[r#"
            ! no such job: c2
            ! no such job: j2
            ! no such job: ?
        "#]],
    );
}

#[test]
fn the_children_of_a_parked_job_are_cancelled_with_it() {
    check(
        &format!("{RUNNING}; spawn j1 c1; grant c1 n1; park j1 child=c1 at=9 -- cancel j1; fail c1"),
        expect![[r#"
            j1 Ended pending→cancelled
            c1 Cancelling running→running Cancelling
            c1 Ended running→cancelled
        "#]],
    );
}

#[test]
fn the_children_of_a_job_with_recorded_steps_survive_a_lost_lease() {
    check(
        "level 6; agent a spawns=true attempts=2; node n1 places=1; job j1; grant j1 n1; record j1 from=0 steps=s; spawn j1 c1; grant c1 n1 --
        lose j1; show n1; complete c1; grant j1 n1; show n1; park j1 child=c1; spawn j1 c2; lose j1",
        expect![[r#"
            j1 Lost running→pending Lost
            n1: places 0 cores any memory any gpus [] warm []
            c1 Ended running→completed
            j1 Granted pending→running on n1 token 3 attempt 2
            n1: places 0 cores any memory any gpus [] warm []
            = ready
            c2 Submitted pending→pending Queued
            j1 Ended running→failed LeaseLost: lease lost 2 times
            c2 Ended pending→cancelled
        "#]],
    );
    check(
        &format!(
            "{RUNNING}; spawn j1 c1; grant c1 n1; lose j1 -- show n1; grant j1 n1; show n1; park j1 child=c1; complete c1; show j1"
        ),
        expect![[r#"
            n1: places 3 cores any memory any gpus [] warm []
            j1 Granted pending→running on n1 token 3 attempt 2
            n1: places 3 cores any memory any gpus [] warm []
            j1 Parked running→pending Parked
            c1 Ended running→completed
            j1 Woken pending→pending Queued
            j1: pending Queued attempt 2
        "#]],
    );
}

#[test]
fn a_job_that_woke_lends_its_place_while_a_child_is_left() {
    check(
        "level 6; agent a spawns=true; node n1 places=1; job j1; grant j1 n1; record j1 from=0 steps=s; spawn j1 c1;
        park j1 child=c1 at=2; clock +2; wake j1 -- grant j1 n1; show n1; grant c1 n1; show n1; complete c1; complete j1; show n1",
        expect![[r#"
            j1 Granted pending→running on n1 token 2 attempt 2
            n1: places 0 cores any memory any gpus [] warm []
            c1 Granted pending→running on n1 token 3 attempt 1
            n1: places 0 cores any memory any gpus [] warm []
            c1 Ended running→completed
            j1 Ended running→completed
            n1: places 1 cores any memory any gpus [] warm []
        "#]],
    );
}

#[test]
fn a_parked_child_is_still_awaited() {
    check(
        &format!(
            "{RUNNING}; spawn j1 c1; grant c1 n1; record c1 from=0 steps=s; park c1 at=9; park j1 child=c1 -- clock +9; wake c1; grant c1 n1; complete c1; show j1"
        ),
        expect![[r#"
            c1 Woken pending→pending Queued
            c1 Granted pending→running on n1 token 3 attempt 2
            c1 Ended running→completed
            j1 Woken pending→pending Queued
            j1: pending Queued attempt 1
        "#]],
    );
}

/// The wall clock of scripts moves by a millisecond with each statement; that of the cluster is what `clock` says.
#[test]
fn a_time_that_came_is_over_even_if_the_wall_clock_shows_an_earlier_one() {
    check(
        &format!(
            "{RUNNING}; park j1 at=5 message=true; clock +5; wake j1; grant j1 n1 -- park j1 at=4; park j1 at=5; park j1 at=6"
        ),
        expect![[r#"
            = ready
            = ready
            j1 Parked running→pending Parked
        "#]],
    );
    check(
        &format!("{RUNNING}; park j1 at=5 message=true; send j1 a; grant j1 n1 -- park j1 at=5"),
        expect![[r#"
            j1 Parked running→pending Parked
        "#]],
    );
}
