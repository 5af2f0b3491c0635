//! Tests proposals and reads on members that do not lead, during leadership changes, and without a network.

mod trio;

use std::time::Duration;

use atlas_env::Env;
use atlas_state::State;
use atlas_types::{
    AgentName, Command, DeprecateAgent, JobId, Level, MemberId, Origin, Outcome, Rejection, Request, RequestId,
};
use atlas_wire::proto::peer::v1::peer_service_server::PeerService;
use atlas_wire::proto::peer::v1::{ProposeRequest, ReadIndexRequest, VoteRequest};
use tonic::Code;

use self::trio::{One, Trio};
use super::LeaderLink;
use crate::error::{Leadership, ProposeError, ReadError};
use crate::handle::Handle;
use crate::tests::{agent, number, set, soon, submit};

/// A request that carries a name.
fn named(name: &str, request: Request) -> Request {
    let origin = Origin { request_id: Some(RequestId::new(name).expect("a name")), ..request.origin };
    Request { origin, ..request }
}

/// Repeats a request with a name until it is acknowledged; a repeat gets the first answer. A leader may lose an election at any time on a
/// busy machine.
async fn acknowledged(handle: &Handle, request: Request) -> Vec<Result<Outcome, Rejection>> {
    loop {
        if let Ok(answers) = handle.propose(vec![request.clone()]).await {
            return answers;
        }
    }
}

/// Repeats a request that may be applied twice until it is acknowledged. The first leader of a new group may lose an
/// election, and the outcome is then unknown.
async fn applied(handle: &Handle, request: Request) {
    while handle.propose(vec![request.clone()]).await.is_err() {}
}

/// Reads until the read succeeds.
async fn until_read(handle: &Handle) -> State {
    loop {
        if let Ok(state) = handle.read().await {
            return state;
        }
    }
}

/// Cuts off the leader and lets the others write a 2. Returns the deposed leader, which still believes that it leads.
async fn depose(trio: &Trio) -> &One {
    soon(applied(&trio.members[0].handle, set(1))).await;
    let old = trio.leader().await;
    let (deposed, other) = (&trio.members[old], &trio.members[(old + 1) % 3]);
    deposed.pull_cable();
    soon(other.handle.propose(vec![named("two", set(2))])).await.expect("the others elect a leader");
    deposed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_member_takes_proposals_and_reads_what_any_acknowledged() {
    let trio = Trio::start().await;
    soon(applied(&trio.members[0].handle, set(0))).await;
    for round in 1..=30_u64 {
        let at = |offset: u64| &trio.members[usize::try_from((round + offset) % 3).expect("small")].handle;
        let request = named(&format!("round-{round}"), set(round));
        let answers = soon(acknowledged(at(0), request)).await;
        assert_eq!(answers, [Ok(Outcome::Done)]);
        assert_eq!(number(at(0)), round, "whoever answered has applied it");
        for offset in 1..=2 {
            let state = soon(at(offset).read()).await.expect("a quorum confirms");
            assert_eq!(state.config().agents_max, round);
        }
    }
    trio.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_a_follower_share_questions() {
    let trio = Trio::start().await;
    let [follower, _] = trio.followers().await;
    let handle = &trio.members[follower].handle;
    let reads = (0..500).map(|_| handle.read());
    let states = soon(futures::future::try_join_all(reads)).await.expect("a quorum confirms");
    assert_eq!(states.len(), 500);
    trio.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loss_of_the_leader_costs_writers_time_and_nothing_else() {
    let mut trio = Trio::start().await;
    soon(applied(&trio.members[0].handle, agent())).await;
    let leader = trio.leader().await;
    let gone = trio.members.remove(leader);
    let writers = trio.members.iter().zip([0_u64, 1_000]).map(|(one, from)| {
        let handle = one.handle.clone();
        Env::system().spawn("writer", async move {
            for job in from..from + 200 {
                let request = named(&format!("submission {job}"), submit(JobId(job)));
                let answers = handle.propose(vec![request]).await.unwrap_or_else(|error| panic!("{job}: {error}"));
                assert!(matches!(answers[..], [Ok(Outcome::Submitted { job: found, .. })] if found == JobId(job)));
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut applied = gone.handle.forward.applied.clone();
    soon(applied.wait_for(|state| state.pending() >= 50)).await.expect("lives");
    gone.stop().await;
    for writer in writers {
        soon(writer.join()).await.expect("every submission got its answer");
    }
    for one in &trio.members {
        let state = soon(one.handle.read()).await.expect("a quorum confirms");
        assert_eq!(state.pending(), 400, "each submission is there once");
    }
    trio.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_behind_a_pulled_cable_reads_nothing_stale() {
    let trio = Trio::start().await;
    soon(applied(&trio.members[0].handle, set(1))).await;
    let [follower, other] = trio.followers().await;
    let alone = &trio.members[follower];
    soon(alone.handle.read()).await.expect("a quorum confirms");
    alone.pull_cable();
    soon(trio.members[other].handle.propose(vec![set(2)])).await.expect("two of three are a quorum");
    let (read, proposed) = soon(async { tokio::join!(alone.handle.read(), alone.handle.propose(vec![set(3)])) }).await;
    assert!(matches!(read, Err(ReadError::NotLeader { .. })), "{read:?}");
    assert!(matches!(proposed, Err(ProposeError::NotLeader { .. } | ProposeError::Unknown)), "{proposed:?}");
    assert_eq!(number(&alone.handle), 1, "a stale read says so by its name");
    alone.plug_in();
    let state = soon(until_read(&alone.handle)).await;
    assert_eq!(state.config().agents_max, 2, "what could not be proposed was not proposed later either");
    trio.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_behind_a_pulled_cable_confirms_nothing_and_follows_again() {
    let trio = Trio::start().await;
    let deposed = depose(&trio).await;
    let read = soon(deposed.handle.read()).await;
    assert!(matches!(read, Err(ReadError::NotLeader { .. })), "{read:?}");
    deposed.plug_in();
    let state = soon(until_read(&deposed.handle)).await;
    assert_eq!(state.config().agents_max, 2);
    soon(deposed.handle.propose(vec![set(3)])).await.expect("applied by its successor");
    trio.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_proposed_here_alone_never_comes_behind_what_the_next_leader_took() {
    let trio = Trio::start().await;
    let deposed = depose(&trio).await;
    deposed.plug_in();
    let late = async {
        deposed.handle.leadership().wait_for(|now| !matches!(now, Leadership::Leader { .. })).await.expect("lives");
        deposed.handle.propose_here(vec![set(3)]).await
    };
    let late = soon(late).await;
    assert!(matches!(late, Err(ProposeError::NotLeader { .. })), "{late:?}");
    let state = soon(until_read(&deposed.handle)).await;
    assert_eq!(state.config().agents_max, 2);
    trio.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proposal_waits_for_a_leader_before_it_is_refused() {
    let mut trio = Trio::start().await;
    let [first, second] = trio.followers().await;
    let leader = 3 - first - second;
    for place in [first, second] {
        trio.members[place].pull_cable();
    }
    let waiting = trio.members[first].handle.clone();
    let proposing = Env::system().spawn("proposal", async move { waiting.propose(vec![set(5)]).await });
    let gone = trio.members.remove(leader);
    gone.stop().await;
    for one in &trio.members {
        one.plug_in();
    }
    assert_eq!(soon(proposing.join()).await.expect("no panic"), Ok(vec![Ok(Outcome::Done)]));
    trio.stop().await;
}

/// A command that programs before level 3 do not know.
fn deprecation() -> Request {
    let mut request = agent();
    request.command = Command::DeprecateAgent(DeprecateAgent {
        name: AgentName::new("echo").expect("a name"),
        version: "1.0.0".parse().expect("a version"),
        why: Some("use another one".into()),
    });
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_sends_an_older_leader_nothing_that_it_would_not_understand() {
    let trio = Trio::start_knowing(Level(2)).await;
    soon(applied(&trio.members[0].handle, set(1))).await;
    let [follower, _] = trio.followers().await;
    let handle = &trio.members[follower].handle;
    let refused = || Err(Rejection::LevelTooLow { needed: Level(3) });
    let answers = soon(handle.propose(vec![set(2), deprecation(), set(3)])).await;
    assert_eq!(answers, Ok(vec![Ok(Outcome::Done), refused(), Ok(Outcome::Done)]));
    // A leader of another cluster refuses the proposal without decoding it, as an older program does.
    let mut forward = handle.forward.clone();
    forward.link = LeaderLink::new(8, MemberId(9), Env::system());
    let unread = soon(forward.propose(vec![set(4)])).await;
    assert_eq!(unread, Err(ProposeError::Unknown));
    let answers = soon(forward.propose(vec![deprecation()])).await;
    assert_eq!(answers, Ok(vec![refused()]));
    trio.stop().await;
}

#[tokio::test]
async fn frames_of_strangers_are_refused() {
    let trio = Trio::start().await;
    let door = trio.members[0].handle.peer_door();
    let own: bytes::Bytes = 7_u128.to_be_bytes().to_vec().into();
    let stranger: bytes::Bytes = 8_u128.to_be_bytes().to_vec().into();
    let propose = async |cluster_id: &bytes::Bytes, requests: &'static [u8]| {
        let request = ProposeRequest { cluster_id: cluster_id.clone(), requests: requests.into(), from: 0 };
        door.propose(tonic::Request::new(request)).await.expect_err("refused").code()
    };
    assert_eq!(propose(&stranger, b"").await, Code::FailedPrecondition);
    assert_eq!(propose(&own, b"\xff\xff\xff").await, Code::InvalidArgument);
    assert_eq!(propose(&own, b"\x0a\x00").await, Code::InvalidArgument);
    let read = ReadIndexRequest { cluster_id: bytes::Bytes::new(), from: 0 };
    let refused = door.read_index(tonic::Request::new(read)).await.expect_err("refused");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    // A member that took over the address of a lost member must not answer in its place.
    let vote = VoteRequest { cluster_id: own.clone(), body: bytes::Bytes::new(), to: 9 };
    let refused = door.vote(tonic::Request::new(vote)).await.expect_err("another member is meant");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    trio.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_members_that_follow_each_other_send_nothing_in_circles() {
    let trio = Trio::start().await;
    let [follower, other] = trio.followers().await;
    let door = trio.members[other].handle.peer_door();
    let (handle, started) = (&trio.members[follower].handle, tokio::time::Instant::now());
    let leadership = handle.leadership().borrow().clone();
    assert!(matches!(leadership, Leadership::Follower { .. }));
    let own: bytes::Bytes = 7_u128.to_be_bytes().to_vec().into();
    let requests = atlas_format::encode_requests(&[set(9)]);
    let request = ProposeRequest { cluster_id: own, requests: requests.into(), from: 0 };
    let answer = soon(door.propose(tonic::Request::new(request))).await.expect("answered").into_inner();
    assert_eq!(answer.result(), atlas_wire::proto::peer::v1::ForwardResult::NotLeader);
    assert!(started.elapsed() < Duration::from_secs(4), "it answers at once rather than ask a third");
    trio.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_leader_is_noticed_by_its_connections() {
    let mut trio = Trio::start().await;
    soon(applied(&trio.members[0].handle, set(0))).await;
    let leader = trio.leader().await;
    for one in &trio.members {
        // From here on no election timeout elects anybody.
        one.handle.peer_door().raft.runtime_config().elect(false);
    }
    trio.members.remove(leader).stop().await;
    trio.leader().await;
    let answers = soon(acknowledged(&trio.members[0].handle, named("after", set(1)))).await;
    assert_eq!(answers, [Ok(Outcome::Done)]);
    trio.stop().await;
}
