//! Rules of an entry's header and of remembered requests.

use atlas_types::{
    ClusterTime, Door, Entry, Level, Namespace, Origin, Outcome, Parent, Principal, Rejection, RequestId, RequestImage,
    StateImage, Timestamp,
};
use expect_test::expect;

use super::check;
use super::script::Run;
use crate::{Applied, Halt, State};

fn entry(state: &State) -> Entry {
    Entry {
        cluster_id: state.cluster_id(),
        level: Level::CURRENT,
        min_reader_level: Level::CURRENT,
        parent: Parent { seq: state.seq(), chain: state.chain() },
        at: Timestamp(10),
        clock: ClusterTime(10),
        requests: Vec::new(),
    }
}

#[test]
fn an_entry_planned_on_another_state_changes_nothing() {
    let mut state = State::new(1);
    let stale = entry(&state);
    assert!(matches!(state.apply_entry(&stale), Ok(Applied::Done { .. })));
    let before = state.to_image();
    assert_eq!(state.apply_entry(&stale), Ok(Applied::Stale));
    assert_eq!(state.to_image(), before);
}

#[test]
fn a_replica_that_lacks_an_entry_stops() {
    let mut state = State::new(1);
    let mut ahead = entry(&state);
    ahead.parent.seq = state.seq().next();
    let before = state.to_image();
    assert_eq!(state.apply_entry(&ahead), Err(Halt::Behind { expected: state.seq().next(), seq: state.seq() }));
    assert_eq!(state.to_image(), before);
}

#[test]
fn a_replica_that_differs_stops() {
    let mut state = State::new(1);
    let mut other = entry(&state);
    other.parent.chain = [9; 32];
    assert_eq!(state.apply_entry(&other), Err(Halt::Diverged { seq: state.seq() }));
}

#[test]
fn an_entry_of_another_cluster_stops_the_replica() {
    let mut state = State::new(1);
    let other = Entry { cluster_id: 2, ..entry(&state) };
    assert_eq!(state.apply_entry(&other), Err(Halt::OtherCluster { expected: 1, found: 2 }));
}

#[test]
fn an_entry_that_needs_a_newer_program_stops_even_if_it_is_stale() {
    let mut state = State::new(1);
    let mut newer = entry(&state);
    newer.min_reader_level = Level(Level::CURRENT.0 + 1);
    newer.parent.seq = state.seq().next();
    assert!(matches!(state.apply_entry(&newer), Err(Halt::LevelUnknown { .. })));
}

#[test]
fn the_level_never_goes_back() {
    let mut state = State::new(1);
    let higher = Entry { level: Level(5), ..entry(&state) };
    assert!(state.apply_entry(&higher).is_ok());
    assert_eq!(state.level(), Level(5));
    let lower = Entry { level: Level(4), ..entry(&state) };
    assert_eq!(state.apply_entry(&lower), Err(Halt::LevelBack { found: Level(4), active: Level(5) }));
}

#[test]
fn neither_clock_goes_back() {
    let mut state = State::new(1);
    state.begin_entry(Timestamp(10), ClusterTime(10));
    state.begin_entry(Timestamp(5), ClusterTime(5));
    assert_eq!((state.at(), state.clock()), (Timestamp(10), ClusterTime(10)));
}

#[test]
fn a_repeated_request_gets_the_first_answer() {
    check(
        "agent a; job j1 key=k body=1 -- job j2 key=k body=1; job j2 key=k body=2; job j2 key=k body=1 ns=other",
        expect![[r#"
            = j1 again
            ! this request id was used before with another body
            ! the agent version is no longer registered with this package
        "#]],
    );
}

#[test]
fn a_refused_request_is_not_remembered() {
    check(
        "agent a; node n1; config active=1; job j1 -- job j2 key=k; cancel j1; job j2 key=k",
        expect![[r#"
        ! Queue is full (1 jobs). Wait for jobs to complete or increase max_size.
        j1 Ended pending→cancelled
        j2 Submitted pending→pending Queued
    "#]],
    );
}

#[test]
fn requests_are_forgotten_by_age() {
    check(
        "agent a; config retention=10; job j1 key=k -- clock +10; job j2 key=k; clock +1; job j3 key=x; job j2 key=k",
        expect![[r#"
            = j1 again
            j3 Submitted pending→pending Queued
            j2 Submitted pending→pending Queued
        "#]],
    );
}

#[test]
fn names_that_controllers_give_push_no_name_of_a_client_out() {
    check(
        "level 3; agent a; config requests=1; job j1 key=k; job j2 key=~1; job j3 key=~2 -- \
         job j4 key=k; job j4 key=~1; clock +60; job j4 key=~2; clock +1; job j4 key=x; job j5 key=~2; job j6 key=x",
        expect![[r#"
            = j1 again
            = j2 again
            = j3 again
            j4 Submitted pending→pending Queued
            j5 Submitted pending→pending Queued
            = j4 again
        "#]],
    );
    // Below the level of the classes all make room for each other.
    check(
        "agent a; config requests=1; job j1 key=k; job j2 key=~1 -- job j3 key=k",
        expect![[r#"
        j3 Submitted pending→pending Queued
    "#]],
    );
}

/// More generated names than their class may have, as a cluster below the level of the classes can hold them.
fn many_generated_names(level: Level) -> State {
    let mut image = StateImage { level, ..State::new(1).to_image() };
    image.requests = (0..100_100)
        .map(|number| RequestImage {
            namespace: Namespace::default_namespace(),
            principal: Principal::local(),
            request_id: RequestId::generated(number),
            body_hash: 0,
            at: ClusterTime(10),
            outcome: Outcome::Done,
        })
        .collect();
    State::from_image(image).expect("a state")
}

#[test]
fn the_level_rises_over_more_generated_names_than_their_class_may_have() {
    for (from, to, left) in [(2, 3, 100_100), (2, 4, 100_100), (2, 5, 100_000), (4, 5, 100_000)] {
        let mut state = many_generated_names(Level(from));
        let raising = Entry { level: Level(to), ..entry(&state) };
        assert!(matches!(state.apply_entry(&raising), Ok(Applied::Done { .. })));
        assert_eq!(state.check_invariants(), Ok(()), "from {from} to {to}");
        assert_eq!(state.requests_remembered(), left, "from {from} to {to}");
        assert!(State::from_image(state.to_image()).is_ok());
    }
}

#[test]
fn the_oldest_requests_make_room() {
    check(
        "agent a; config requests=1; job j1 key=k; job j2 key=l -- job j3 key=l; job j3 key=k",
        expect![[r#"
        = j2 again
        j3 Submitted pending→pending Queued
    "#]],
    );
    check(
        "agent a; job j1 key=k; config requests=0 -- job j2 key=k; job j3 key=k",
        expect![[r#"
        j2 Submitted pending→pending Queued
        j3 Submitted pending→pending Queued
    "#]],
    );
}

#[test]
fn a_repeat_is_recognised_before_it_is_judged() {
    let mut run = Run::new();
    run.prepare("agent a; job j1 key=k body=1; retire a");
    let origin = |body_hash| Origin {
        namespace: Namespace::default_namespace(),
        principal: Principal::local(),
        door: Door::Http,
        request_id: RequestId::new("k").ok(),
        body_hash,
        trace: None,
    };
    let job = run.job_id("j1");
    assert_eq!(run.state.remembered(&origin(1)), Some(Ok(Outcome::Submitted { job, repeated: true })));
    assert_eq!(run.state.remembered(&origin(2)), Some(Err(Rejection::RequestConflict)));
    assert_eq!(run.state.remembered(&Origin { request_id: None, ..origin(1) }), None);
}
