//! Tests whole members: a single one, restarted, killed, and three that replicate.

mod clocks;
mod damage;
mod faults;
mod sessions;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_kit::request;
use atlas_types::{
    BootId, CancelJob, ClusterConfig, Command, CompleteJob, ConfigureCluster, Inventory, JobId, JobStatus, Level,
    MemberId, NodeId, Outcome, Payload, RegisterNode, Rejection, Request, Usage,
};
use futures::StreamExt as _;
use tokio::net::TcpListener;

use crate::error::{Leadership, ReadError};
use crate::handle::Handle;
use crate::member::Member;
use crate::options::Options;
use crate::start::{Service, start_on};
use atlas_log::sim::SimDisk;
use atlas_log::{Driver, Limits, Log};

/// The time limit for every wait in these tests, even on a busy machine.
const SOON: Duration = Duration::from_secs(20);

pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("it happens soon")
}

fn options(dir: &Path) -> Options {
    Options { history: false, session_ttl: Duration::from_secs(1), ..Options::new(dir.to_owned()) }
}

/// A single member on a simulated disk.
async fn member(dir: &Path, disk: &SimDisk) -> (Handle, Service) {
    let (handle, service) = soon(start_on(Box::new(disk.driver()), options(dir), Env::system())).await.expect("starts");
    leads(&handle).await;
    // The leader of a new group first raises the level with an entry of its own.
    let mut applied = handle.forward.applied.clone();
    soon(applied.wait_for(|state| state.level() == Level::CURRENT)).await.expect("lives");
    (handle, service)
}

async fn leads(handle: &Handle) {
    let mut leadership = handle.leadership();
    soon(leadership.wait_for(|leadership| matches!(leadership, Leadership::Leader { .. }))).await.expect("lives");
}

/// A command that stores a number in the state.
pub(crate) fn set(number: u64) -> Request {
    let config = ClusterConfig { agents_max: number, ..ClusterConfig::default() };
    request(Command::ConfigureCluster(ConfigureCluster { config }))
}

pub(crate) fn number(handle: &Handle) -> u64 {
    handle.applied().config().agents_max
}

#[tokio::test]
async fn a_member_alone_commits_and_reads_its_writes() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let (handle, service) = member(dir.path(), &disk).await;
    let mut batches = handle.subscribe();
    let answers = soon(handle.propose(vec![set(1), set(2)])).await.expect("applied");
    assert_eq!(answers, [Ok(Outcome::Done), Ok(Outcome::Done)]);
    assert_eq!(number(&handle), 2);
    let state = soon(handle.read()).await.expect("leads");
    let mut batch = soon(batches.recv()).await.expect("sent");
    // The entry that raises the level may arrive only now. It has no events.
    while batch.events.is_empty() {
        batch = soon(batches.recv()).await.expect("sent");
    }
    assert_eq!((batch.state.seq(), batch.state.chain()), (state.seq(), state.chain()));
    assert_eq!(batch.events.len(), 2);
    soon(service.shutdown()).await;
}

#[tokio::test]
async fn refusals_are_answered_and_write_nothing() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let (handle, service) = member(dir.path(), &disk).await;
    let syncs = disk.syncs();
    let job = JobId(7);
    let cancel = request(Command::CancelJob(CancelJob { job, running: true }));
    let answers = soon(handle.propose(vec![cancel])).await.expect("answered");
    assert_eq!(answers, [Err(Rejection::UnknownJob { job })]);
    assert_eq!(disk.syncs(), syncs);
    soon(service.shutdown()).await;
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_crash_and_a_restart() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    for round in 0..5_u64 {
        let (handle, service) = member(dir.path(), &disk).await;
        if round > 0 {
            assert_eq!(number(&handle), round * 10 + 9 - 10, "round {round}");
        }
        for step in 0..10 {
            soon(handle.propose(vec![set(round * 10 + step)])).await.expect("applied");
        }
        if round % 2 == 0 {
            disk.crash(round);
            drop(service);
        } else {
            soon(service.shutdown()).await;
        }
    }
}

#[tokio::test]
async fn a_failed_sync_stops_the_member_and_loses_nothing_acknowledged() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let (handle, mut service) = member(dir.path(), &disk).await;
    soon(handle.propose(vec![set(1)])).await.expect("applied");
    disk.fail_sync(0);
    assert!(soon(handle.propose(vec![set(2)])).await.is_err());
    let reason = soon(service.failed()).await;
    assert!(reason.contains("sync failed as told"), "{reason}");
    assert!(soon(handle.propose(vec![set(3)])).await.is_err());
    disk.crash(1);
    let (handle, service) = member(dir.path(), &disk).await;
    assert!(number(&handle) <= 2 && number(&handle) >= 1);
    soon(service.shutdown()).await;
}

#[tokio::test]
async fn a_member_killed_at_any_sync_keeps_what_it_acknowledged() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let (mut acknowledged, mut tried) = (0, 0);
    for seed in 0..25_u64 {
        let (handle, service) = member(dir.path(), &disk).await;
        if tried > 0 {
            let found = number(&handle);
            assert!((acknowledged..=tried).contains(&found), "seed {seed}: {found} of {acknowledged} to {tried}");
        }
        disk.fail_sync(seed * 7 % 11);
        loop {
            tried += 1;
            if soon(handle.propose(vec![set(tried)])).await.is_err() {
                break;
            }
            acknowledged = tried;
        }
        disk.crash(seed);
        soon(service.shutdown()).await;
    }
}

#[tokio::test]
async fn replayed_batches_wait_for_the_history() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let with_history = || Options { history: true, ..options(dir.path()) };
    let start = |options| soon(start_on(Box::new(disk.driver()), options, Env::system()));
    let (handle, service) = start(with_history()).await.expect("starts");
    for number in 1..=3 {
        soon(handle.propose(vec![set(number)])).await.expect("applied");
    }
    let (early, mut later) = handle.subscribe_from_start();
    assert_eq!(early.len(), 3);
    handle.history_synced(early[1].events[0].seq);
    soon(handle.propose(vec![set(4)])).await.expect("applied");
    let synced = early[1].events[0].seq;
    assert!(soon(later.recv()).await.expect("sent").events.iter().all(|event| event.seq > early[2].events[0].seq));
    disk.crash(1);
    drop(service);
    let (handle, service) = start(Options { history_from: synced, ..with_history() }).await.expect("starts");
    let (early, _) = handle.subscribe_from_start();
    let events: Vec<_> = early.iter().flat_map(|batch| batch.events.iter().map(|event| event.seq)).collect();
    assert_eq!(events[0], synced.next(), "what the history lacks, and nothing before");
    soon(service.shutdown()).await;
}

#[tokio::test]
async fn a_replayed_log_shows_its_newest_state() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let (handle, service) = member(dir.path(), &disk).await;
    for number in 1..=100 {
        soon(handle.propose(vec![set(number)])).await.expect("applied");
    }
    soon(service.shutdown()).await;
    let (handle, service) = member(dir.path(), &disk).await;
    assert_eq!(number(&handle), 100);
    let mut batches = handle.subscribe();
    assert!(batches.try_recv().is_err(), "nothing from before the subscription");
    soon(handle.propose(vec![set(101)])).await.expect("applied");
    let batch = soon(batches.recv()).await.expect("sent");
    assert_eq!(batch.seq, handle.applied_seq());
    soon(service.shutdown()).await;
}

#[tokio::test]
async fn one_job_alone_takes_two_entries() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let (handle, service) = member(dir.path(), &disk).await;
    let job = JobId(0x0102_0304_0506_0708);
    let node = NodeId::new("n1").expect("a name");
    let inventory = Inventory { places: 1, ..Inventory::default() };
    let register = RegisterNode { node: node.clone(), boot_id: BootId(1), inventory };
    soon(handle.propose(vec![request(Command::RegisterNode(register)), agent()])).await.expect("applied");
    let mut batches = handle.subscribe();
    soon(handle.propose(vec![submit(job)])).await.expect("applied");
    let lease = Arc::clone(handle.applied().lease(job).expect("granted by the entry that submitted it"));
    let complete = CompleteJob {
        job,
        node,
        token: lease.token,
        output: Payload::inline(b"{}"),
        usage: Usage::default(),
        metadata: None,
        stream: None,
    };
    let answers = soon(handle.propose(vec![request(Command::CompleteJob(complete))])).await.expect("applied");
    assert_eq!(answers, [Ok(Outcome::Ended { status: JobStatus::Completed, retry: None })]);
    soon(service.shutdown()).await;
    let mut entries = 0;
    while let Ok(batch) = batches.try_recv() {
        assert!(!batch.events.is_empty());
        entries += 1;
    }
    assert_eq!(entries, 2);
    // The log also contains no other entry that names the job.
    let log = Log::open(Box::new(disk.driver()), Limits::default(), None, &Env::system()).expect("opens");
    let entries = log.read(0, u64::MAX, usize::MAX).expect("readable").into_iter();
    let decoded = entries.filter_map(|(_, body)| atlas_format::decode_entry(body.split_last()?.1).ok());
    let naming = decoded.filter(|entry| format!("{entry:?}").contains(&job.to_string()));
    assert_eq!(naming.count(), 2);
}

pub(crate) fn agent() -> Request {
    request(atlas_kit::agent("echo").registered())
}

pub(crate) fn submit(id: JobId) -> Request {
    request(atlas_kit::job(id.0).submitted())
}

#[tokio::test]
async fn many_callers_share_entries() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let (handle, service) = member(dir.path(), &disk).await;
    let handle = Arc::new(handle);
    let before = handle.applied().seq();
    let callers = (0..200).map(|n| {
        let handle = Arc::clone(&handle);
        async move { handle.propose(vec![set(n)]).await.expect("applied") }
    });
    soon(futures::future::join_all(callers)).await;
    let entries = handle.applied().seq().0 - before.0;
    assert!(entries < 50, "{entries} entries for 200 proposals");
    soon(service.shutdown()).await;
}

/// One of three members, with its peer door on loopback. The peer door and its connections end with the member.
struct Third {
    handle: Handle,
    service: Service,
    members: BTreeMap<MemberId, Member>,
}

async fn three(dir: &Path, disks: &[SimDisk; 3]) -> Vec<Third> {
    three_on(dir, disks, |disk| Box::new(disk.driver())).await
}

async fn three_on(dir: &Path, disks: &[SimDisk; 3], driver: impl Fn(&SimDisk) -> Box<dyn Driver>) -> Vec<Third> {
    let mut listeners = Vec::new();
    for _ in disks {
        listeners.push(TcpListener::bind("127.0.0.1:0").await.expect("a free port"));
    }
    let address = |listener: &TcpListener| listener.local_addr().expect("bound").to_string();
    let members: BTreeMap<_, _> =
        listeners.iter().zip(1..).map(|(listener, id)| (MemberId(id), Member::at(address(listener)))).collect();
    let mut thirds = Vec::new();
    for ((listener, disk), id) in listeners.into_iter().zip(disks).zip(1..) {
        thirds.push(third(dir, driver(disk), MemberId(id), &members, listener).await);
    }
    thirds
}

/// Starts one of three. All three form the same group.
async fn third(
    dir: &Path,
    driver: Box<dyn Driver>,
    member: MemberId,
    members: &BTreeMap<MemberId, Member>,
    listener: TcpListener,
) -> Third {
    let options = options(&dir.join(member.to_string()));
    let options = Options { member, cluster_id: Some(7), members: members.clone(), digest_every: 8, ..options };
    let (handle, service) = soon(start_on(driver, options, Env::system())).await.expect("starts");
    let listener = listener.into_std().expect("a listener");
    let incoming = async move { TcpListener::from_std(listener).expect("a listener") };
    let incoming = futures::stream::once(incoming).flat_map(|listener| {
        futures::stream::unfold(listener, |listener| async move {
            // If the test failed, the listener is shut down together with the runtime that polls it.
            let (stream, _) = listener.accept().await.ok()?;
            Some((Ok::<_, std::io::Error>(stream), listener))
        })
    });
    let server = tonic::transport::Server::builder().add_service(handle.peer_door().into_service());
    handle.spawn_beside("peer-door", server.serve_with_incoming(incoming));
    Third { handle, service, members: members.clone() }
}

impl Third {
    async fn stop(self) {
        soon(self.service.shutdown()).await;
    }
}

/// Takes a snapshot of all applied entries and purges the log up to it.
pub(crate) async fn snapshot_and_purge(handle: &Handle) {
    let raft = handle.peer_door().raft;
    // The metrics are updated after the state.
    let told = soon(raft.wait(None).metrics(|metrics| metrics.last_applied.is_some(), "something applied")).await;
    let applied = told.expect("lives").last_applied.expect("something is applied");
    raft.trigger().snapshot().await.expect("lives");
    soon(raft.wait(None).metrics(|metrics| metrics.snapshot >= Some(applied), "the snapshot")).await.expect("lives");
    raft.trigger().purge_log(applied.index).await.expect("lives");
    soon(raft.wait(None).metrics(|metrics| metrics.purged >= Some(applied), "the purge")).await.expect("lives");
}

#[tokio::test]
async fn a_member_restarts_from_its_snapshot_and_the_log_behind_it() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let (handle, service) = member(dir.path(), &disk).await;
    for number in 1..=30 {
        soon(handle.propose(vec![set(number)])).await.expect("applied");
    }
    snapshot_and_purge(&handle).await;
    soon(handle.propose(vec![set(31)])).await.expect("applied");
    let (seq, chain) = (handle.applied().seq(), handle.applied().chain());
    disk.crash(1);
    drop(service);
    let (handle, service) = member(dir.path(), &disk).await;
    assert_eq!((number(&handle), handle.applied().seq(), handle.applied().chain()), (31, seq, chain));
    soon(service.shutdown()).await;
}

/// Waits until all members have applied equally many entries. Their chains are then equal.
async fn agree(thirds: &[Third]) {
    loop {
        let states: Vec<_> = thirds.iter().map(|third| third.handle.applied()).collect();
        if states.iter().all(|state| state.seq() == states[0].seq()) {
            return assert!(states.iter().all(|state| state.chain() == states[0].chain()), "replicas agree");
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_was_away_too_long_is_sent_a_snapshot() {
    let (dir, disks) = (tempfile::tempdir().expect("temporary directory"), [(); 3].map(|()| SimDisk::default()));
    let mut thirds = three(dir.path(), &disks).await;
    propose_somewhere(&thirds, 1).await;
    all_have(&thirds, 1).await;
    let away = thirds.remove((leader_of(&thirds).await + 1) % 3);
    let (member, members) = (away.handle.member(), away.members.clone());
    away.stop().await;
    for number in 2..=30 {
        propose_somewhere(&thirds, number).await;
    }
    all_have(&thirds, 30).await;
    // openraft keeps entries that a leader may still send, so the member that purges becomes leader only afterwards.
    let leader = leader_of(&thirds).await;
    let next = &thirds[1 - leader].handle;
    snapshot_and_purge(next).await;
    let transfer = thirds[leader].handle.peer_door().raft;
    transfer.trigger().transfer_leader(next.member().0).await.expect("lives");
    leads(next).await;
    let listener = TcpListener::bind(&members[&member].peer).await.expect("its old address");
    let disk = &disks[usize::try_from(member.0).expect("small") - 1];
    thirds.push(third(dir.path(), Box::new(disk.driver()), member, &members, listener).await);
    all_have(&thirds, 30).await;
    soon(agree(&thirds)).await;
    for third in thirds {
        third.stop().await;
    }
}

/// The index of the leader.
async fn leader_of(thirds: &[Third]) -> usize {
    let led = thirds.iter().map(|third| {
        let mut leadership = third.handle.leadership();
        Box::pin(async move {
            let leads = leadership.wait_for(|leadership| matches!(leadership, Leadership::Leader { .. })).await;
            leads.map(|_| ()).expect("lives");
        })
    });
    soon(futures::future::select_all(led)).await.1
}

/// Proposes at the current leader until the command is applied. Leadership may change at any time.
async fn propose_somewhere(thirds: &[Third], number: u64) {
    soon(async {
        loop {
            let leader = leader_of(thirds).await;
            if thirds[leader].handle.propose(vec![set(number)]).await.is_ok() {
                return;
            }
        }
    })
    .await;
}

async fn all_have(thirds: &[Third], wanted: u64) {
    for third in thirds {
        let mut applied = third.handle.forward.applied.clone();
        soon(applied.wait_for(|state| state.config().agents_max == wanted)).await.expect("lives");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_members_replicate_and_survive_the_loss_of_their_leader() {
    let (dir, disks) = (tempfile::tempdir().expect("temporary directory"), [(); 3].map(|()| SimDisk::default()));
    let mut thirds = three(dir.path(), &disks).await;
    for number in 1..=20 {
        propose_somewhere(&thirds, number).await;
    }
    all_have(&thirds, 20).await;
    soon(agree(&thirds)).await;

    let gone = thirds.remove(leader_of(&thirds).await);
    gone.stop().await;
    for number in 21..=40 {
        propose_somewhere(&thirds, number).await;
    }
    all_have(&thirds, 40).await;
    let leader = leader_of(&thirds).await;
    let state = soon(thirds[leader].handle.read()).await.expect("a quorum confirms");
    assert_eq!(state.config().agents_max, 40);

    let last = thirds.swap_remove(leader);
    for third in thirds {
        third.stop().await;
    }
    let refused = soon(last.handle.read()).await;
    assert!(matches!(refused, Err(ReadError::NotLeader { .. })), "one of three confirms nothing: {refused:?}");
    last.stop().await;
}
