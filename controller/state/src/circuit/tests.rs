//! Circuits open, are probed and close; scripts show it from commands to events.

use atlas_types::{Circuit, NodeId};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::State;
use crate::tests::script::Run;

fn check(script: &str, expected: Expect) {
    crate::tests::check(&format!("level 6; {script}"), expected);
}

#[test]
fn a_version_that_keeps_failing_starts_one_job_after_each_pause() {
    check(
        "agent a failures=2; node n1 places=9; job j1; job j2; job j3; job j4; job j5; grant j1 n1; grant j2 n1; grant j3 n1 --
        fail j1; fail j2; grant j4 n1; fail j3; clock 10; grant j4 n1; grant j5 n1; fail j4; clock 10; grant j5 n1; clock 10; grant j5 n1;
        complete j5; job j6; job j7; grant j6 n1; grant j7 n1",
        expect![[r#"
            j1 Ended running→failed Agent: boom
            agent a 1.0.0 circuit open after 2 failures
            j2 Ended running→failed Agent: boom
            ! the job is not due yet
            j3 Ended running→failed Agent: boom
            j4 Granted pending→running on n1 token 4 attempt 1
            ! the job is not due yet
            j4 Ended running→failed Agent: boom
            ! the job is not due yet
            j5 Granted pending→running on n1 token 5 attempt 1
            agent a 1.0.0
            j5 Ended running→completed
            j6 Submitted pending→pending Queued
            j7 Submitted pending→pending Queued
            j6 Granted pending→running on n1 token 6 attempt 1
            j7 Granted pending→running on n1 token 7 attempt 1
        "#]],
    );
}

#[test]
fn a_success_in_between_keeps_it_closed() {
    check(
        "agent a failures=2; node n1; job j1; job j2; job j3; job j4; grant j1 n1; grant j2 n1; grant j3 n1; grant j4 n1 --
        fail j1; complete j2; fail j3; fail j4",
        expect![[r#"
            j1 Ended running→failed Agent: boom
            j2 Ended running→completed
            j3 Ended running→failed Agent: boom
            agent a 1.0.0 circuit open after 2 failures
            j4 Ended running→failed Agent: boom
        "#]],
    );
}

#[test]
fn what_the_agent_did_not_cause_counts_for_nothing() {
    let starts = "job j1; job j2; job j3 timeout=1; job j4; job j5; job j7; grant j1 n1; grant j2 n1; grant j3 n1; grant j4 n1; grant j5 n1";
    check(
        &format!(
            "agent a failures=1 attempts=1; node n1 places=9; {starts}; cancel j1 --
            fail j1; fail j2 kind=dependency; fail j3 kind=timeout; lose j4; fail j5 kind=internal; grant j7 n1; fail j7 kind=timeout"
        ),
        expect![[r#"
            j1 Ended running→cancelled
            j2 Ended running→failed Dependency: boom
            j3 Ended running→failed Timeout: boom
            j4 Ended running→failed LeaseLost: lease lost 1 times
            j5 Ended running→failed Internal: boom
            j7 Granted pending→running on n1 token 6 attempt 1
            agent a 1.0.0 circuit open after 1 failures
            j7 Ended running→failed Timeout: boom
        "#]],
    );
    check(
        r#"agent a failures=1; node n1; job j1; job j2; grant j1 n1; grant j2 n1 -- fail j1 note={"_error_code":"E3203"};
        fail j2 note={"_error_code":"E3201"}"#,
        expect![[r#"
            j1 Ended running→failed Agent: boom
            agent a 1.0.0 circuit open after 1 failures
            j2 Ended running→failed Agent: boom
        "#]],
    );
}

#[test]
fn a_version_without_a_bound_fails_as_often_as_it_likes() {
    let mut run = Run::new();
    run.prepare("level 6; config active=200; agent a; node n1");
    for number in 1..=120 {
        run.prepare(&format!("job j{number}; grant j{number} n1; fail j{number}"));
    }
    assert_eq!(run.state.circuits_open(), (0, 0));
}

#[test]
fn a_probe_whose_end_says_nothing_is_repeated_after_the_pause() {
    check(
        "agent a failures=1; node n1; job j1; job j2; job j3; grant j1 n1; fail j1; clock 10; grant j2 n1 --
        grant j3 n1; cancel j2; fail j2; grant j3 n1; clock 10; grant j3 n1; lose j3; grant j3 n1; clock 10; grant j3 n1; complete j3",
        expect![[r#"
            ! the job is not due yet
            j2 Cancelling running→running Cancelling
            j2 Ended running→cancelled
            ! the job is not due yet
            j3 Granted pending→running on n1 token 3 attempt 1
            j3 Lost running→pending Lost
            ! the job is not due yet
            j3 Granted pending→running on n1 token 4 attempt 2
            agent a 1.0.0
            j3 Ended running→completed
        "#]],
    );
}

#[test]
fn a_node_opens_after_failures_of_its_own_of_more_than_one_version() {
    check(
        "config node-failures=3; agent a; agent b digest=2; node n1 places=9; node n2; job j1; job j2; job j3; job j4 agent=b digest=2; job j5; job j6;
        grant j1 n1; grant j2 n1; grant j3 n1; grant j4 n1 --
        fail j1 kind=internal; fail j2 kind=internal; fail j3 kind=internal; fail j4 kind=internal; show n1; grant j5 n1; grant j5 n2; clock 10;
        grant j6 n1; job j7; grant j7 n1; complete j6; grant j7 n1",
        expect![[r#"
            j1 Ended running→failed Internal: boom
            j2 Ended running→failed Internal: boom
            j3 Ended running→failed Internal: boom
            node n1 epoch 1 Ready circuit open after 4 failures
            j4 Ended running→failed Internal: boom
            n1: places 9 cores any memory any gpus [] warm []
            ! the node cannot accept this
            j5 Granted pending→running on n2 token 5 attempt 1
            j6 Granted pending→running on n1 token 6 attempt 1
            j7 Submitted pending→pending Queued
            ! the node cannot accept this
            node n1 epoch 1 Ready
            j6 Ended running→completed
            j7 Granted pending→running on n1 token 7 attempt 1
        "#]],
    );
}

#[test]
fn errors_of_agents_show_that_a_node_works() {
    check(
        "config node-failures=2; agent a; agent b digest=2; agent l llm=true digest=3; node n1 places=9 llm=4; job j1; job j2 agent=b digest=2; job j3;
        job j4 agent=l digest=3; job j5 agent=l digest=3; grant j1 n1; grant j2 n1; grant j3 n1; grant j4 n1; grant j5 n1 --
        fail j1 kind=internal; fail j2; fail j3 kind=startup; fail j4 kind=internal; fail j5 kind=internal",
        expect![[r#"
            j1 Ended running→failed Internal: boom
            j2 Ended running→failed Agent: boom
            j3 Ended running→failed Startup: boom
            j4 Ended running→failed Internal: boom
            j5 Ended running→failed Internal: boom
        "#]],
    );
}

#[test]
fn a_probe_that_waits_for_a_child_leaves_the_next_probe_to_it() {
    check(
        "config node-failures=2; agent a spawns=true; agent b digest=2; node n1 places=9; job j1; job j2 agent=b digest=2; grant j1 n1; grant j2 n1;
        fail j1 kind=internal; fail j2 kind=internal; clock 10; job j3; grant j3 n1 -- spawn j3 c1; grant c1 n1; clock 20; grant c1 n1; complete c1",
        expect![[r#"
            c1 Submitted pending→pending Queued
            ! the node cannot accept this
            c1 Granted pending→running on n1 token 4 attempt 1
            node n1 epoch 1 Ready
            c1 Ended running→completed
        "#]],
    );
}

#[test]
fn a_new_process_of_the_worker_begins_anew_and_zero_never_opens() {
    let script = "agent a; agent b digest=2; node n1; job j1; job j2 agent=b digest=2; job j3; grant j1 n1; grant j2 n1; fail j1 kind=internal";
    check(
        &format!("config node-failures=2; {script} -- fail j2 kind=internal; node n1 boot=2; grant j3 n1 epoch=2"),
        expect![[r#"
            node n1 epoch 1 Ready circuit open after 2 failures
            j2 Ended running→failed Internal: boom
            node n1 epoch 2 Ready
            = epoch 2
            j3 Granted pending→running on n1 token 3 attempt 1
        "#]],
    );
    check(
        &format!("config node-failures=0; {script} -- fail j2 kind=internal"),
        expect![[r#"
        j2 Ended running→failed Internal: boom
    "#]],
    );
}

#[test]
fn below_its_level_nothing_is_counted() {
    crate::tests::check(
        "level 5; agent a failures=1; node n1; job j1; grant j1 n1 -- fail j1",
        expect![[r#"
        j1 Ended running→failed Agent: boom
    "#]],
    );
}

#[test]
fn a_package_published_again_keeps_the_circuit_and_another_one_does_not() {
    check(
        "agent a failures=1; node n1; job j1; grant j1 n1; fail j1; job j2 -- retire a; agent a failures=1; grant j2 n1; agent a failures=1 digest=2;
        job j3 digest=2; grant j3 n1; grant j2 n1",
        expect![[r#"
            agent a 1.0.0 retired circuit open after 1 failures
            agent a 1.0.0 circuit open after 1 failures
            ! the job is not due yet
            agent a 1.0.0
            j3 Submitted pending→pending Queued
            j3 Granted pending→running on n1 token 2 attempt 1
            j2 Granted pending→running on n1 token 3 attempt 1
        "#]],
    );
}

#[test]
fn an_open_circuit_is_in_the_snapshot() {
    let mut run = Run::new();
    run.prepare("level 6; config node-failures=1; agent a failures=1; node n1; job j1; job j2; grant j1 n1; fail j1; clock 10; grant j2 n1");
    let state = State::from_image(run.state.to_image()).expect("it loads");
    assert_eq!(state.circuits_open(), (1, 0));
    assert_eq!(state.to_image(), run.state.to_image());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// The script checks all invariants after each statement. What starts is admitted by both circuits, and is the probe of one that is open.
    #[test]
    fn what_starts_while_a_circuit_is_open_is_its_probe(steps in prop::collection::vec((0..9u8, 0..12usize), 1..80)) {
        let mut run = Run::new();
        run.prepare("level 6; config node-failures=2; agent a failures=2; agent b digest=2 failures=3; node n1 places=99; node n2 places=99");
        let mut live: Vec<String> = Vec::new();
        let kinds = ["startup", "internal", "agent", "timeout", "dependency"];
        for (number, (step, pick)) in steps.into_iter().enumerate() {
            let picked = (!live.is_empty()).then(|| pick % live.len());
            match (step, picked) {
                (0..=3, _) => {
                    let (agent, node) = (["a", "b digest=2"][pick % 2], ["n1", "n2"][pick / 2 % 2]);
                    let name = format!("j{}", number + 1);
                    run.prepare(&format!("job {name} agent={agent}"));
                    let before = circuits(&run, &name, node);
                    if run.play(&format!("grant {name} {node}")).starts_with('!') {
                        prop_assert!(before.iter().any(|circuit| !circuit.admits()));
                        run.prepare(&format!("cancel {name}"));
                        continue;
                    }
                    let token = run.state.lease(run.job_id(&name)).expect("a lease").token;
                    for (before, after) in before.into_iter().zip(circuits(&run, &name, node)) {
                        prop_assert!(before.admits());
                        prop_assert_eq!(before.open.is_some(), after.is_probed_by(token));
                    }
                    live.push(name);
                }
                (4, Some(picked)) => run.prepare(&format!("complete {}", live.remove(picked))),
                (5 | 6, Some(picked)) => run.prepare(&format!("fail {} kind={}", live.remove(picked), kinds[pick % 5])),
                (7, Some(picked)) => {
                    let name = live.remove(picked);
                    run.prepare(&format!("lose {name}; cancel {name}"));
                }
                (8, _) => run.prepare(&format!("clock {}", 3 * pick)),
                _ => {}
            }
        }
        prop_assert_eq!(State::from_image(run.state.to_image()).expect("it loads").to_image(), run.state.to_image());
    }
}

/// The circuits of a job's version and of a node, once an entry has begun at this time.
fn circuits(run: &Run, job: &str, node: &str) -> Vec<Circuit> {
    let mut state = run.state.clone();
    state.begin_entry(state.at(), state.clock());
    let job = state.job(run.job_id(job)).expect("a job");
    let version = *state.circuit_of(job).expect("it has a bound");
    vec![version, state.node(&NodeId::new(node).expect("a name")).expect("a node").node.circuit]
}
