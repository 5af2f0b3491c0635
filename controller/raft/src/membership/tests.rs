//! Tests a group that grows from one member to five and shrinks again, under load, on loopback.

mod transfer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atlas_env::{Env, Task};
use atlas_types::{
    ClusterConfig, Command, ConfigureCluster, Door, Level, MemberId, Namespace, Origin, Principal, Request, RequestId,
};
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::{ChangeError, Role};
use crate::consensus::snapshot::Snapshots;
use crate::error::Leadership;
use crate::handle::Handle;
use crate::member::Member;
use crate::options::Options;
use crate::start::{Service, start_on};
use atlas_log::sim::SimDisk;

/// The time limit for every wait in these tests, even on a busy machine.
const SOON: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("it happens soon")
}

/// A member with its peer door.
struct Running {
    handle: Handle,
    service: Service,
    disk: SimDisk,
}

impl Running {
    /// Starts a member with a free port as its address.
    async fn start(dir: &TempDir, member: u64, disk: SimDisk) -> Self {
        Self::start_knowing(dir, member, disk, Level::CURRENT).await
    }

    /// Starts a member that reports `level` as its feature level.
    async fn start_knowing(dir: &TempDir, member: u64, disk: SimDisk, level: Level) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = Member {
            name: format!("m{member}"),
            worker: format!("127.0.0.1:{member}"),
            ..Member::at(listener.local_addr().expect("bound").to_string())
        };
        let options = Options {
            member: MemberId(member),
            cluster_id: Some(7),
            history: false,
            joins: member > 1,
            level,
            own,
            ..Options::new(dir.path().join(member.to_string()))
        };
        let starting = start_on(Box::new(disk.driver()), options, Env::system());
        let (handle, service) = soon(starting).await.expect("starts");
        let incoming = futures::stream::unfold(listener, |listener| async move {
            // If the test failed, the listener is shut down together with the runtime that polls it.
            let (stream, _) = listener.accept().await.ok()?;
            Some((Ok::<_, std::io::Error>(stream), listener))
        });
        let server = tonic::transport::Server::builder().add_service(handle.peer_door().into_service());
        handle.spawn_beside("peer-door", async move {
            server.serve_with_incoming(incoming).await.expect("serves");
        });
        Self { handle, service, disk }
    }

    fn known(&self) -> Member {
        let own = self.handle.own();
        Member { name: own.name, peer: own.address, worker: own.worker, http: own.http }
    }

    async fn stop(self) {
        soon(self.service.shutdown()).await;
    }
}

/// A founding member and `more` members that joined it, all voters.
async fn group(dir: &TempDir, more: u64) -> Vec<Running> {
    let mut members = vec![Running::start(dir, 1, SimDisk::default()).await];
    for id in 2..=1 + more {
        let joining = Running::start(dir, id, SimDisk::default()).await;
        take_in(&members[0].handle, &joining).await;
        members.push(joining);
    }
    members
}

/// Makes a member a learner and then a voter.
async fn take_in(leader: &Handle, joining: &Running) {
    let member = joining.handle.member();
    soon(leader.add_learner(member, joining.known())).await.expect("a learner");
    until(|| leader.keeps_up(member)).await;
    assert_eq!(leader.members().member(member).map(|view| view.role), Some(Role::Learner));
    soon(leader.promote(&[member])).await.expect("a voter");
    assert_eq!(leader.members().member(member).map(|view| view.role), Some(Role::Voter));
}

async fn until(holds: impl Fn() -> bool) {
    let clock = Env::system().clock;
    soon(async {
        while !holds() {
            clock.sleep(PAUSE).await;
        }
    })
    .await;
}

fn leads(handle: &Handle) -> bool {
    matches!(*handle.leadership().borrow(), Leadership::Leader { .. })
}

fn set(number: u64) -> Request {
    let config = ClusterConfig { agents_max: number, ..ClusterConfig::default() };
    let origin = Origin {
        namespace: Namespace::default_namespace(),
        principal: Principal::cluster(),
        door: Door::Http,
        request_id: Some(RequestId::new(&format!("set-{number}")).expect("a name")),
        body_hash: number,
        trace: None,
    };
    Request { origin, command: Command::ConfigureCluster(ConfigureCluster { config }) }
}

/// Writes numbers from 1 through `handle` until told to stop, each of which must be acknowledged. Returns the last.
fn load(handle: Handle) -> (Arc<AtomicBool>, Task<u64>) {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let writing = Env::system().spawn("load", async move {
        let mut number = 0;
        while !stopped.load(Ordering::Relaxed) {
            number += 1;
            soon(handle.propose(vec![set(number)])).await.expect("acknowledged");
        }
        number
    });
    (stop, writing)
}

async fn all_have(members: &[Running], wanted: u64) {
    for member in members {
        until(|| member.handle.applied().config().agents_max == wanted).await;
    }
    // The leader may write an entry of its own meanwhile, so states are compared once they are of one entry.
    until(|| {
        let states: Vec<_> = members.iter().map(|member| member.handle.applied()).collect();
        let same = states.iter().all(|state| state.seq() == states[0].seq());
        assert!(!same || states.iter().all(|state| state.chain() == states[0].chain()), "replicas agree");
        same
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_member_becomes_five_and_three_again_while_it_works() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let first = Running::start(&dir, 1, SimDisk::default()).await;
    until(|| leads(&first.handle)).await;
    let (stop, writing) = load(first.handle.clone());
    let mut members = vec![first];
    for id in 2..=5 {
        let joining = Running::start(&dir, id, SimDisk::default()).await;
        take_in(&members[0].handle, &joining).await;
        members.push(joining);
    }
    let leader = members[0].handle.clone();
    for id in [5, 4] {
        soon(leader.remove(MemberId(id))).await.expect("removed");
        let mut gone = members.pop().expect("five members");
        let reason = soon(gone.service.failed()).await;
        assert!(reason.contains("removed"), "{reason}");
        gone.stop().await;
    }
    assert_eq!(leader.members().voters, [[1, 2, 3].map(MemberId).into()]);
    stop.store(true, Ordering::Relaxed);
    let last = writing.join().await.expect("every write was acknowledged");
    all_have(&members, last).await;
    for member in members {
        member.stop().await;
    }
}

/// Changes one byte in the middle of a member's snapshot, like a disk error.
fn damage_snapshot(dir: &TempDir, member: u64) {
    let env = Env::system();
    let paths = env.files.list(&dir.path().join(member.to_string()).join("raft/snapshots")).expect("listable");
    let [path] = paths.as_slice() else { panic!("one snapshot: {paths:?}") };
    let mut bytes = std::fs::read(path).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).expect("writable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_snapshot_is_damaged_sends_another_and_no_member_stops() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let first = Running::start(&dir, 1, SimDisk::default()).await;
    until(|| leads(&first.handle)).await;
    for number in 1..=20 {
        soon(first.handle.propose(vec![set(number)])).await.expect("acknowledged");
    }
    crate::tests::snapshot_and_purge(&first.handle).await;
    damage_snapshot(&dir, 1);
    let mut second = Running::start(&dir, 2, SimDisk::default()).await;
    let (known, taken_in) = (second.known(), second.handle.clone());
    let catching_up = async {
        soon(first.handle.add_learner(MemberId(2), known)).await.expect("a learner");
        until(|| taken_in.applied().config().agents_max == 20).await;
    };
    tokio::select! {
        reason = second.service.failed() => panic!("the healthy member stopped: {reason}"),
        () = catching_up => {}
    }
    let members = [first, second];
    all_have(&members, 20).await;
    for member in members {
        member.stop().await;
    }
    let env = Env::system();
    let snapshots = Snapshots::open(env.files.clone(), dir.path().join("1/raft/snapshots")).expect("whole again");
    assert!(snapshots.current().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_stays_at_the_level_of_the_member_that_knows_least() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let first = Running::start_knowing(&dir, 1, SimDisk::default(), Level(2)).await;
    until(|| leads(&first.handle)).await;
    let level = |member: &Running| member.handle.applied().level();
    until(|| level(&first) == Level(2)).await;
    let second = Running::start(&dir, 2, SimDisk::default()).await;
    take_in(&first.handle, &second).await;
    for member in [&first, &second] {
        until(|| member.handle.level_of_all() == Some(Level(2))).await;
    }
    soon(first.handle.propose(vec![set(1)])).await.expect("acknowledged");
    assert_eq!(level(&first), Level(2));
    // The member may return with another program, so the level it reported before it stopped must expire.
    second.stop().await;
    until(|| first.handle.level_of_all().is_none()).await;
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_is_handed_over_while_it_works() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let members = group(&dir, 2).await;
    let (stop, writing) = load(members[0].handle.clone());
    for to in [2, 3, 1] {
        let leader = members.iter().find(|member| leads(&member.handle)).expect("a leader").handle.clone();
        let (now, term) = soon(leader.transfer_leader(Some(MemberId(to)))).await.expect("handed over");
        assert_eq!(now, MemberId(to));
        let next = &members[usize::try_from(to).expect("small") - 1].handle;
        until(|| leads(next)).await;
        assert_eq!(next.members().term, term, "one election, and it was won");
    }
    stop.store(true, Ordering::Relaxed);
    let last = writing.join().await.expect("every write was acknowledged");
    all_have(&members, last).await;
    let unknown = members[0].handle.transfer_leader(Some(MemberId(9))).await;
    assert_eq!(unknown, Err(ChangeError::UnknownMember { member: MemberId(9) }));
    for member in members {
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_of_a_moment_removes_the_one_before_it() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let members = group(&dir, 2).await;
    let (before, next) = (members[0].handle.clone(), members[1].handle.clone());
    let handing = before.transfer_leader(Some(MemberId(2)));
    let removing = async {
        loop {
            match next.remove(MemberId(1)).await {
                Err(ChangeError::NotLeader { .. } | ChangeError::Leads { .. }) => tokio::task::yield_now().await,
                removed => return removed,
            }
        }
    };
    let (_, removed) = soon(futures::future::join(handing, removing)).await;
    assert_eq!(removed, Ok(()), "the two that are left answer, as soon as they are asked");
    assert_eq!(next.members().voters, [[2, 3].map(MemberId).into()]);
    for member in members {
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_would_leave_no_quorum_is_refused() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut members = group(&dir, 2).await;
    let leader = members[0].handle.clone();
    assert_eq!(
        soon(leader.remove(MemberId(1))).await,
        Err(ChangeError::Leads { member: MemberId(1) }),
        "it hands over first"
    );
    members.pop().expect("three members").stop().await;
    until(|| leader.members().reachable(&[MemberId(3)]) == 0).await;
    assert_eq!(
        soon(leader.remove(MemberId(2))).await,
        Err(ChangeError::NoQuorum { voters: 2, reachable: 1 }),
        "the third does not answer"
    );
    soon(leader.remove(MemberId(3))).await.expect("two of two answer");
    soon(leader.propose(vec![set(1)])).await.expect("they are a quorum");
    soon(leader.remove(MemberId(2))).await.expect("one of one answers");
    assert_eq!(
        soon(leader.remove(MemberId(1))).await,
        Err(ChangeError::LastVoter { member: MemberId(1) }),
        "somebody must lead"
    );
    soon(leader.propose(vec![set(2)])).await.expect("it is alone again");
    for member in members {
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_was_removed_while_it_was_away_stops_when_it_is_back() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut members = group(&dir, 2).await;
    let away = members.pop().expect("three members");
    let disk = away.disk.clone();
    away.stop().await;
    let leader = members[0].handle.clone();
    soon(leader.remove(MemberId(3))).await.expect("two of two answer");
    let term = leader.members().term;
    let mut back = Running::start(&dir, 3, disk).await;
    let reason = soon(back.service.failed()).await;
    assert!(reason.contains("removed"), "{reason}");
    assert!(back.handle.read().await.is_err(), "it answers no read");
    back.stop().await;
    assert_eq!(leader.members().term, term, "it could not depose the leader");
    let replacement = Running::start(&dir, 4, SimDisk::default()).await;
    take_in(&leader, &replacement).await;
    members.push(replacement);
    soon(leader.propose(vec![set(1)])).await.expect("applied");
    all_have(&members, 1).await;
    for member in members {
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_leaves_one_alone_is_told() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut members = group(&dir, 1).await;
    let mut other = members.pop().expect("two members");
    soon(members[0].handle.remove(MemberId(2))).await.expect("both answer");
    let reason = soon(other.service.failed()).await;
    assert!(reason.contains("removed"), "{reason}");
    other.stop().await;
    for member in members {
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_moved_is_found_and_the_group_knows_its_new_address() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut members = group(&dir, 2).await;
    let moving = members.pop().expect("three members");
    let disk = moving.disk.clone();
    moving.stop().await;
    let leader = members[0].handle.clone();
    soon(leader.propose(vec![set(1)])).await.expect("two of three");
    let moved = Running::start(&dir, 3, disk).await;
    let address = moved.handle.own().address;
    members.push(moved);
    all_have(&members, 1).await;
    for member in &members {
        until(|| member.handle.members().member(MemberId(3)).is_some_and(|view| view.peer.address == address)).await;
    }
    for member in members {
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_know_how_the_others_are() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let members = group(&dir, 1).await;
    for member in &members {
        until(|| member.handle.level_of_all() == Some(Level::CURRENT)).await;
        let view = member.handle.members();
        let names: BTreeMap<_, _> = view.members.iter().map(|view| (view.peer.member.0, &*view.peer.name)).collect();
        assert_eq!(names, BTreeMap::from([(1, "m1"), (2, "m2")]));
        assert_eq!(view.leader, Some(MemberId(1)));
    }
    for member in members {
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_how_the_members_are_holds_nobody_up() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let members = group(&dir, 1).await;
    let (stop, writing) = load(members[0].handle.clone());
    let asking = (0..2).map(|_| {
        let (handle, stop) = (members[0].handle.clone(), Arc::clone(&stop));
        let ask = move || {
            let mut asked = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(handle.members().members.len(), 2);
                asked += 1;
                std::thread::yield_now();
            }
            asked
        };
        Env::system().spawn_blocking("ask", ask)
    });
    let asking: Vec<_> = asking.collect();
    // Each write changes the metrics that the answers borrow.
    let before = members[0].handle.applied().seq().0;
    until(|| members[0].handle.applied().seq().0 >= before + 100).await;
    stop.store(true, Ordering::Relaxed);
    for asking in asking {
        assert!(asking.join().await.expect("answered") > 0);
    }
    let last = writing.join().await.expect("every write was acknowledged");
    all_have(&members, last).await;
    for member in members {
        member.stop().await;
    }
}
