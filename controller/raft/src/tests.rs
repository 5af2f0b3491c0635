//! Whole members: one alone, restarted, killed, and three that replicate.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_types::{
    CancelJob, ClusterConfig, Command, ConfigureCluster, JobId, MemberId, Namespace, Origin, Outcome, Rejection, Request,
};

use crate::error::Leadership;
use crate::handle::Handle;
use crate::log::sim::SimDisk;
use crate::options::Options;
use crate::start::{Service, start_on};

/// Longest that anything here may take on a busy machine.
const SOON: Duration = Duration::from_secs(20);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("it happens soon")
}

fn options(dir: &Path) -> Options {
    Options { history: false, ..Options::new(dir.to_owned()) }
}

/// A member alone on a simulated disk.
async fn member(dir: &Path, disk: &SimDisk) -> (Handle, Service) {
    let (handle, service) = soon(start_on(Box::new(disk.driver()), options(dir), Env::system())).await.expect("starts");
    leads(&handle).await;
    (handle, service)
}

async fn leads(handle: &Handle) {
    let mut leadership = handle.leadership();
    soon(leadership.wait_for(|leadership| matches!(leadership, Leadership::Leader { .. }))).await.expect("lives");
}

/// A command that leaves a number in the state.
fn set(number: u64) -> Request {
    let config = ClusterConfig { agents_max: number, ..ClusterConfig::default() };
    request(Command::ConfigureCluster(ConfigureCluster { config }))
}

fn request(command: Command) -> Request {
    Request { origin: Origin::duty(Namespace::default_namespace()), command }
}

fn number(handle: &Handle) -> u64 {
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
    let batch = soon(batches.recv()).await.expect("sent");
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

/// A member of three, with its peer door on loopback.
struct Third {
    handle: Handle,
    service: Service,
    door: atlas_env::Task<()>,
}

async fn three(dir: &Path, disks: &[SimDisk; 3]) -> Vec<Third> {
    let mut listeners = Vec::new();
    for _ in disks {
        listeners.push(tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port"));
    }
    let address = |listener: &tokio::net::TcpListener| listener.local_addr().expect("bound").to_string();
    let members: BTreeMap<_, _> =
        listeners.iter().zip(1..).map(|(listener, id)| (MemberId(id), address(listener))).collect();
    let mut thirds = Vec::new();
    for ((listener, disk), id) in listeners.into_iter().zip(disks).zip(1..) {
        let options = Options {
            member: MemberId(id),
            cluster_id: Some(7),
            // All three form the same group.
            members: members.clone(),
            ..options(&dir.join(id.to_string()))
        };
        let (handle, service) = soon(start_on(Box::new(disk.driver()), options, Env::system())).await.expect("starts");
        let incoming = futures::stream::unfold(listener, |listener| async move {
            Some((listener.accept().await.map(|(stream, _)| stream), listener))
        });
        let server = tonic::transport::Server::builder().add_service(handle.peer_door().into_service());
        let door = Env::system().spawn("peer-door", async move {
            server.serve_with_incoming(incoming).await.expect("serves");
        });
        thirds.push(Third { handle, service, door });
    }
    thirds
}

/// The place of the one that leads.
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

/// Proposes until it is applied, wherever that is: leadership may change at any time.
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
        let mut applied = third.handle.applied.clone();
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
    let chains: Vec<_> = thirds.iter().map(|third| third.handle.applied().chain()).collect();
    assert!(chains.iter().all(|chain| *chain == chains[0]), "replicas agree");

    let gone = thirds.remove(leader_of(&thirds).await);
    gone.door.abort();
    soon(gone.service.shutdown()).await;
    for number in 21..=40 {
        propose_somewhere(&thirds, number).await;
    }
    all_have(&thirds, 40).await;
    let leader = leader_of(&thirds).await;
    let state = soon(thirds[leader].handle.read()).await.expect("a quorum confirms");
    assert_eq!(state.config().agents_max, 40);
    for third in thirds {
        third.door.abort();
        soon(third.service.shutdown()).await;
    }
}
