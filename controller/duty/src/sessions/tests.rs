use atlas_types::{BootId, ClusterTime, Command, Inventory, LoseNode, Namespace, RegisterNode, RemoveNode, Timestamp};

use super::*;
use crate::request;

const EPOCH: NodeEpoch = NodeEpoch(1);
const STREAM: StreamId = StreamId(1);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn node(name: &str) -> NodeId {
    name.parse().expect("a node name")
}

fn table() -> (Sessions, NodeId) {
    let mut sessions = Sessions::new(secs(8));
    sessions.take_over([], secs(0));
    sessions.hello(&node("n1"), EPOCH, STREAM, secs(0));
    (sessions, node("n1"))
}

/// Ticks once a second from the one second to the other.
fn tick(sessions: &mut Sessions, seconds: std::ops::RangeInclusive<u64>) {
    seconds.for_each(|second| sessions.tick(secs(second)));
}

fn ended(sessions: &Sessions) -> Vec<String> {
    sessions.ended().map(|(node, epoch)| format!("{node}@{epoch}")).collect()
}

#[test]
fn a_session_ends_one_ttl_after_its_last_renewal() {
    let (mut sessions, n1) = table();
    tick(&mut sessions, 1..=5);
    sessions.renew(&n1, EPOCH, 1, secs(5)).expect("it lives");
    tick(&mut sessions, 6..=12);
    assert!(ended(&sessions).is_empty());
    tick(&mut sessions, 13..=13);
    assert_eq!(ended(&sessions), ["n1@1"]);
    assert_eq!(sessions.renew(&n1, EPOCH, 2, secs(13)), Err(NoSession));
    sessions.forget(&n1);
    assert!(ended(&sessions).is_empty());
}

#[test]
fn a_renewal_is_acknowledged_by_a_round_that_began_after_it() {
    let (mut sessions, n1) = table();
    sessions.renew(&n1, EPOCH, 1, secs(1)).expect("it lives");
    let first = sessions.begin_round().expect("one has arrived");
    sessions.renew(&n1, EPOCH, 2, secs(2)).expect("it lives");
    let numbers = |renewed: Vec<Renewal>| renewed.into_iter().map(|renewed| renewed.number).collect::<Vec<_>>();
    assert_eq!(numbers(sessions.confirmed(first)), [1], "the second arrived after the round began");
    assert_eq!(numbers(sessions.confirmed(first)), [0_u64; 0], "once");
    let second = sessions.begin_round().expect("one has arrived");
    assert_eq!(sessions.begin_round(), None);
    assert_eq!(numbers(sessions.confirmed(second)), [2]);
}

#[test]
fn a_later_round_stands_for_the_earlier_ones() {
    let (mut sessions, n1) = table();
    sessions.renew(&n1, EPOCH, 1, secs(1)).expect("it lives");
    let _lost = sessions.begin_round();
    sessions.renew(&n1, EPOCH, 2, secs(2)).expect("it lives");
    let second = sessions.begin_round().expect("one has arrived");
    assert_eq!(sessions.confirmed(second).len(), 2);
}

#[test]
fn a_round_of_an_earlier_leadership_acknowledges_nothing() {
    let (mut sessions, n1) = table();
    sessions.renew(&n1, EPOCH, 1, secs(1)).expect("it lives");
    let round = sessions.begin_round().expect("one has arrived");
    sessions.take_over([(n1, EPOCH)], secs(2));
    assert_eq!(sessions.confirmed(round), []);
}

#[test]
fn taking_over_gives_every_session_a_full_ttl() {
    let (mut sessions, n1) = table();
    tick(&mut sessions, 1..=7);
    sessions.take_over([(n1, EPOCH), (node("n2"), NodeEpoch(4))], secs(7));
    tick(&mut sessions, 8..=14);
    assert!(ended(&sessions).is_empty());
    tick(&mut sessions, 15..=15);
    assert_eq!(ended(&sessions), ["n1@1", "n2@4"]);
}

#[test]
fn a_loop_that_stood_still_gives_every_session_a_full_ttl() {
    let (mut sessions, _) = table();
    tick(&mut sessions, 1..=4);
    tick(&mut sessions, 9..=9);
    tick(&mut sessions, 10..=16);
    assert!(ended(&sessions).is_empty());
    tick(&mut sessions, 17..=17);
    assert_eq!(ended(&sessions), ["n1@1"]);
}

#[test]
fn an_older_incarnation_has_no_session() {
    let (mut sessions, n1) = table();
    sessions.hello(&n1, NodeEpoch(2), STREAM, secs(1));
    sessions.hello(&n1, EPOCH, STREAM, secs(1));
    assert_eq!(sessions.renew(&n1, EPOCH, 1, secs(1)), Err(NoSession));
    assert_eq!(sessions.renew(&n1, NodeEpoch(2), 1, secs(1)), Ok(()));
}

/// Applies a command, and has the table follow it.
fn apply(state: &mut State, sessions: &mut Sessions, command: Command, second: u64) {
    let (at, clock) = (Timestamp(1), ClusterTime(secs(second).as_micros() as u64));
    state.begin_entry(at, clock);
    let (outcome, events) = state.apply(&request(&Namespace::default_namespace(), command), at, clock);
    state.end_entry();
    outcome.expect("accepted");
    sessions.applied(events.iter().map(|record| &record.event), state, secs(second));
    assert_eq!(sessions.mismatch(state), None);
}

fn register(boot: u128) -> Command {
    let inventory = Inventory { places: 1, ..Inventory::default() };
    Command::RegisterNode(RegisterNode { node: node("n1"), boot_id: BootId(boot), inventory })
}

#[test]
fn a_node_that_registered_and_never_said_hello_has_a_session_that_ends() {
    let (mut state, mut sessions) = (State::new(1), Sessions::new(secs(8)));
    sessions.take_over([], secs(0));
    apply(&mut state, &mut sessions, register(1), 1);
    tick(&mut sessions, 1..=9);
    assert_eq!(ended(&sessions), ["n1@1"]);
    let lose = Command::LoseNode(LoseNode { node: node("n1"), epoch: EPOCH });
    apply(&mut state, &mut sessions, lose, 9);
    assert!(ended(&sessions).is_empty());
    assert_eq!(sessions.renew(&node("n1"), EPOCH, 1, secs(9)), Err(NoSession));
    // The same process again, and then another one, which leaves it nothing.
    apply(&mut state, &mut sessions, register(1), 10);
    assert_eq!(sessions.renew(&node("n1"), EPOCH, 2, secs(10)), Ok(()));
    apply(&mut state, &mut sessions, register(2), 11);
    assert_eq!(sessions.renew(&node("n1"), EPOCH, 3, secs(11)), Err(NoSession));
    assert_eq!(sessions.renew(&node("n1"), NodeEpoch(2), 1, secs(11)), Ok(()));
}

#[test]
fn a_name_that_was_removed_begins_again_with_its_first_epoch() {
    let (mut state, mut sessions) = (State::new(1), Sessions::new(secs(8)));
    sessions.take_over([], secs(0));
    apply(&mut state, &mut sessions, register(1), 1);
    apply(&mut state, &mut sessions, register(2), 1);
    apply(&mut state, &mut sessions, Command::RemoveNode(RemoveNode { node: node("n1") }), 2);
    assert_eq!(sessions.renew(&node("n1"), NodeEpoch(2), 1, secs(2)), Err(NoSession));
    apply(&mut state, &mut sessions, register(3), 3);
    assert_eq!(sessions.renew(&node("n1"), EPOCH, 1, secs(3)), Ok(()));
}

#[test]
fn a_worker_that_leaves_has_no_session_any_more() {
    let (mut sessions, n1) = table();
    sessions.leave(&n1, NodeEpoch(2));
    assert!(ended(&sessions).is_empty(), "another incarnation");
    sessions.leave(&n1, EPOCH);
    assert_eq!(ended(&sessions), ["n1@1"]);
    tick(&mut sessions, 1..=1);
    assert_eq!(ended(&sessions), ["n1@1"], "a tick changes nothing");
    assert_eq!(sessions.renew(&n1, EPOCH, 1, secs(1)), Err(NoSession));
}

#[test]
fn a_worker_whose_stream_broke_has_a_short_time_to_return() {
    let (mut sessions, n1) = table();
    let left = |sessions: &Sessions| sessions.left().map(|(node, _)| node.to_string()).collect::<Vec<_>>();
    sessions.broke(&n1, EPOCH, StreamId(7), secs(1));
    assert!(sessions.away().is_empty(), "another stream");
    sessions.broke(&n1, EPOCH, STREAM, secs(1));
    assert!(sessions.away().contains(&n1));
    tick(&mut sessions, 1..=2);
    assert!(left(&sessions).is_empty());
    tick(&mut sessions, 3..=3);
    assert_eq!((left(&sessions), ended(&sessions)), (vec!["n1".to_owned()], Vec::new()));
    sessions.hello(&n1, EPOCH, StreamId(2), secs(3));
    sessions.broke(&n1, EPOCH, STREAM, secs(3));
    assert!(left(&sessions).is_empty() && sessions.away().is_empty(), "it has returned");
    sessions.broke(&n1, EPOCH, StreamId(2), secs(4));
    // Its leases live for as long as they would have otherwise.
    tick(&mut sessions, 4..=10);
    assert!(ended(&sessions).is_empty());
    tick(&mut sessions, 11..=11);
    assert_eq!(ended(&sessions), ["n1@1"]);
}

#[test]
fn nobody_takes_a_name_from_a_worker_that_renews() {
    let (mut sessions, n1) = table();
    let takes =
        |sessions: &Sessions, second| [true, false].map(|same| sessions.may_take(&n1, EPOCH, same, secs(second)));
    assert_eq!(takes(&sessions, 1), [false; 2]);
    sessions.renew(&n1, EPOCH, 1, secs(3)).expect("it lives");
    assert_eq!(
        (takes(&sessions, 7), takes(&sessions, 8)),
        ([false; 2], [true; 2]),
        "it has been silent for half a session"
    );
    sessions.renew(&n1, EPOCH, 2, secs(8)).expect("it lives");
    assert_eq!(takes(&sessions, 8), [false; 2]);
    sessions.broke(&n1, EPOCH, STREAM, secs(8));
    assert_eq!(takes(&sessions, 8), [true; 2], "it is away");
    sessions.hello(&n1, EPOCH, StreamId(2), secs(8));
    sessions.leave(&n1, EPOCH);
    assert_eq!(takes(&sessions, 8), [true; 2], "it has left");
    assert!(
        sessions.may_take(&n1, NodeEpoch(2), false, secs(8)) && sessions.may_take(&node("n2"), EPOCH, false, secs(8))
    );
}

#[test]
fn a_new_leader_keeps_a_name_for_the_worker_that_had_it_or_its_successor() {
    let mut sessions = Sessions::new(secs(8));
    let n1 = node("n1");
    sessions.take_over([(n1.clone(), EPOCH)], secs(0));
    assert!(sessions.may_take(&n1, EPOCH, true, secs(1)));
    assert!(!sessions.may_take(&n1, EPOCH, false, secs(1)));
    tick(&mut sessions, 1..=8);
    assert!(sessions.may_take(&n1, EPOCH, false, secs(8)), "its session has ended");
}
