//! Tests that applying an entry gives the planned result.

use std::time::Duration;

use atlas_duty::{Sessions, Strategy, follow};
use atlas_state::State;
use atlas_types::{
    CancelJob, ClusterConfig, ClusterTime, Command, ConfigureCluster, Door, Event, JobId, JobStatus, Level, Origin,
    Outcome, Payload, Principal, Rejection, ReportDigest, Request, RequestId, Timestamp,
};

use atlas_kit::request;

use crate::{Halt, Head, PlannedEntry, Replica};

/// Metadata that make a submission panic while it is planned, to simulate a defective command.
const PANIC: &[u8] = br#"{"panic":true}"#;

pub(crate) fn panic_if_asked(request: &Request) {
    if let Command::SubmitJob(command) = &request.command {
        assert!(*command.metadata != *PANIC, "asked to panic");
    }
}

fn submit(id: u64, input: &[u8]) -> Request {
    request(atlas_kit::job(id).with_input(Payload::inline(input)).submitted())
}

fn panicking(id: u64) -> Request {
    request(atlas_kit::job(id).with_metadata(PANIC).submitted())
}

fn agent() -> Request {
    request(atlas_kit::agent("echo").registered())
}

fn node(places: u32) -> Request {
    request(atlas_kit::node("n1").with_places(places).registered())
}

fn limits() -> Request {
    let config = ClusterConfig { jobs_active_max: 10_000, ..ClusterConfig::default() };
    request(Command::ConfigureCluster(ConfigureCluster { config }))
}

fn duties(state: &State, budget: usize) -> Vec<Request> {
    follow(state, &Sessions::new(Duration::from_secs(10)), state.clock(), Strategy::BinPack, budget)
}

/// A head, the leader's replica, which adopts results, and a follower, which executes entries.
struct Group {
    head: Head,
    leader: Replica,
    follower: Replica,
    now: u64,
}

impl Group {
    fn new(places: u32) -> Self {
        let state = State::new(7);
        let replica = Replica::new(state.clone());
        let mut group = Self { head: Head::new(state), leader: replica.clone(), follower: replica, now: 0 };
        group.commit(vec![limits(), agent(), node(places)]);
        group
    }

    fn plan(&mut self, gathered: Vec<Request>) -> PlannedEntry {
        self.now += 1_000;
        self.head.plan(gathered, Timestamp(self.now as i64), ClusterTime(self.now), &mut duties)
    }

    fn commit(&mut self, gathered: Vec<Request>) -> PlannedEntry {
        let planned = self.plan(gathered);
        if !planned.is_empty() {
            let adopted = self.leader.adopt(&planned).expect("the head is right");
            let executed = self.follower.apply(&planned.entry_bytes).expect("the entry is whole");
            assert_eq!(adopted, executed);
        }
        for state in [self.leader.state(), self.follower.state()] {
            assert_eq!((state.seq(), state.chain()), (self.head.state().seq(), self.head.state().chain()));
            state.check_invariants().expect("the invariants hold");
        }
        planned
    }
}

#[test]
fn a_submission_and_its_grant_are_one_entry() {
    let mut group = Group::new(2);
    let planned = group.commit(vec![submit(1, b"{}"), submit(2, b"{}"), submit(3, b"{}")]);
    assert_eq!(planned.outcomes.len(), 3);
    let statuses: Vec<_> = (1..=3).map(|id| group.leader.state().job(JobId(id)).expect("a job").status).collect();
    assert_eq!(statuses, [JobStatus::Running, JobStatus::Running, JobStatus::Pending]);
    assert_eq!(planned.events.len(), 5);
}

#[test]
fn nothing_to_do_is_no_entry() {
    let mut group = Group::new(1);
    let before = group.head.state().seq();
    let planned = group.commit(vec![request(Command::CancelJob(CancelJob { job: JobId(9), running: true }))]);
    assert!(planned.is_empty());
    assert_eq!(planned.outcomes, [Err(Rejection::UnknownJob { job: JobId(9) })]);
    assert_eq!(group.head.state().seq(), before);
}

#[test]
fn refused_and_repeated_requests_are_answered_and_not_proposed() {
    let mut group = Group::new(1);
    let mut first = submit(1, b"{}");
    first.origin = Origin {
        principal: Principal::local(),
        door: Door::Http,
        request_id: Some(RequestId::new("r1").expect("a request id")),
        body_hash: 5,
        ..first.origin
    };
    let again = Request { command: submit(2, b"{}").command, ..first.clone() };
    let planned = group.commit(vec![first, again, submit(1, b"{}")]);
    let submitted = |repeated| Ok(Outcome::Submitted { job: JobId(1), repeated });
    assert_eq!(planned.outcomes[..2], [submitted(false), submitted(true)]);
    assert_eq!(planned.outcomes[2], Err(Rejection::DuplicateJob { job: JobId(1) }));
    let entry = atlas_format::decode_entry(&planned.entry_bytes).expect("an entry");
    assert_eq!(entry.requests.len(), 2, "the first submission and its grant");
}

#[test]
fn an_entry_keeps_to_its_budget_and_leaves_room_for_duties() {
    let mut group = Group::new(10_000);
    let planned = group.commit((1..=1_000).map(|id| submit(id, b"{}")).collect());
    let entry = atlas_format::decode_entry(&planned.entry_bytes).expect("an entry");
    assert_eq!(entry.requests.len(), 512);
    assert_eq!(planned.outcomes.len(), 341);
    assert_eq!(planned.leftover.len(), 659);
    let input = vec![b' '; 60_000];
    let planned = group.commit((2_001..=2_100).map(|id| submit(id, &input)).collect());
    assert!(planned.entry_bytes.len() <= 1 << 20);
    assert_eq!(planned.outcomes.len(), 15);
}

#[test]
fn a_request_too_large_for_any_entry_is_refused() {
    let mut group = Group::new(1);
    let planned = group.commit(vec![submit(1, &vec![b' '; 2 << 20]), submit(2, b"{}")]);
    assert!(matches!(planned.outcomes[..], [Err(Rejection::PayloadTooLarge { .. }), Ok(_)]));
}

#[test]
fn a_command_that_panics_is_refused_and_the_rest_is_planned() {
    let mut group = Group::new(9);
    let planned = group.commit(vec![submit(1, b"{}"), panicking(2), submit(3, b"{}"), panicking(4), submit(5, b"{}")]);
    assert_eq!(planned.panics, 2);
    let refused: Vec<_> = planned.outcomes.iter().map(|outcome| *outcome == Err(Rejection::Internal)).collect();
    assert_eq!(refused, [false, true, false, true, false]);
    assert_eq!(group.leader.state().jobs_total(), 3);
    assert!(group.leader.state().job(JobId(2)).is_none());
}

#[test]
fn a_batch_of_nothing_but_panics_is_no_entry() {
    let mut group = Group::new(9);
    let planned = group.commit(vec![panicking(1)]);
    assert!(planned.is_empty());
    assert_eq!(planned.outcomes, [Err(Rejection::Internal)]);
}

#[test]
fn a_duty_or_its_command_that_panics_does_not_hold_the_requests() {
    let mut group = Group::new(9);
    let (at, clock) = (Timestamp(5_000), ClusterTime(5_000));
    let mut head = group.head.clone();
    let planned = head.plan(vec![submit(1, b"{}")], at, clock, &mut |_, _| panic!("a duty panics"));
    assert_eq!((planned.panics, planned.outcomes.len(), planned.events.len()), (1, 1, 1));

    let mut duties = |state: &State, budget| {
        let mut commands = duties(state, budget);
        commands.insert(0, panicking(7));
        commands
    };
    let planned = group.head.plan(vec![submit(1, b"{}")], at, clock, &mut duties);
    assert_eq!(planned.panics, 1);
    assert_eq!(planned.events.len(), 2, "the submission and its grant");
    group.follower.apply(&planned.entry_bytes).expect("the entry is whole");
}

#[test]
fn an_entry_planned_on_another_state_changes_nothing_anywhere() {
    let mut group = Group::new(1);
    let mut other = group.head.clone();
    let (at, clock) = (Timestamp(9_000), ClusterTime(9_000));
    let lost = other.plan(vec![submit(1, b"{}")], at, clock, &mut duties);
    group.commit(vec![submit(2, b"{}")]);
    let before = group.follower.state().chain();
    for replica in [&mut group.leader, &mut group.follower] {
        let applied = replica.apply(&lost.entry_bytes).expect("stale is no fault");
        assert!(applied.stale && applied.events.is_empty());
        assert!(replica.adopt(&lost).expect("stale is no fault").stale);
        assert_eq!(replica.state().chain(), before);
        assert!(replica.state().job(JobId(1)).is_none());
    }
}

#[test]
fn a_replica_that_differs_stops() {
    let mut group = Group::new(1);
    let mut other = Group::new(2);
    let planned = other.plan(vec![submit(1, b"{}")]);
    assert!(matches!(group.follower.apply(&planned.entry_bytes), Err(Halt::Refused { .. })));
    assert!(matches!(group.follower.apply(b"garbage"), Err(Halt::Unreadable { .. })));
}

#[test]
fn clocks_never_go_back() {
    let mut group = Group::new(1);
    group.now = 50_000;
    group.commit(vec![submit(1, b"{}")]);
    let planned = group.head.plan(vec![submit(2, b"{}")], Timestamp(3), ClusterTime(4), &mut duties);
    let entry = atlas_format::decode_entry(&planned.entry_bytes).expect("an entry");
    assert_eq!((entry.at, entry.clock), (Timestamp(51_000), ClusterTime(51_000)));
    let at = planned.events.iter().map(|record| record.at).max();
    assert_eq!(at, Some(Timestamp(51_000)));
    assert!(planned.events.iter().all(|record| matches!(record.event, Event::Job { .. })));
}

#[test]
fn a_command_of_a_higher_level_waits_until_that_is_active() {
    let digest = request(Command::ReportDigest(ReportDigest {
        member: atlas_types::MemberId(2),
        seq: atlas_types::Seq(0),
        digest: [7; 32],
    }));
    let mut head = Head::new(State::new(1));
    let early = head.plan(vec![digest.clone()], Timestamp(1), ClusterTime(0), &mut |_, _| Vec::new());
    assert_eq!(early.outcomes, [Err(Rejection::LevelTooLow { needed: Level(2) })]);
    assert!(early.is_empty());

    head.raise(Level::CURRENT);
    let mut replica = Replica::new(State::new(1));
    let raised = head.plan(Vec::new(), Timestamp(1), ClusterTime(0), &mut |_, _| Vec::new());
    assert!(!raised.is_empty(), "the level is raised by an entry of its own if need be");
    replica.apply(&raised.entry_bytes).expect("applies");
    assert_eq!(replica.state().level(), Level::CURRENT);

    let planned = head.plan(vec![digest], Timestamp(1), ClusterTime(0), &mut |_, _| Vec::new());
    assert_eq!(planned.outcomes, [Ok(Outcome::Done)]);
    let applied = replica.apply(&planned.entry_bytes).expect("applies");
    assert_eq!(applied.digests, planned.digests);
    assert_eq!(applied.digests.len(), 1);
    assert!(head.plan(Vec::new(), Timestamp(1), ClusterTime(0), &mut |_, _| Vec::new()).is_empty());
}

#[test]
fn the_level_is_not_raised_beyond_this_program() {
    let mut head = Head::new(State::new(1));
    head.raise(Level(99));
    head.plan(Vec::new(), Timestamp(1), ClusterTime(0), &mut |_, _| Vec::new());
    assert_eq!(head.state().level(), Level::CURRENT);
}
