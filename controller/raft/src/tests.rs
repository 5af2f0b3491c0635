//! Whole members: one alone, restarted, killed, and three that replicate.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_types::{ClusterConfig, Command, ConfigureCluster, Namespace, Origin, Outcome, Rejection, Request};

use crate::error::Leadership;
use crate::handle::Handle;
use crate::log::sim::SimDisk;
use crate::options::Options;
use crate::start::{Service, start_on};

/// Longest that anything here may take on a busy machine.
const SOON: Duration = Duration::from_secs(20);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    #[expect(clippy::disallowed_methods, reason = "tests bound what they wait for")]
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
    let command = Command::ConfigureCluster(ConfigureCluster { config });
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
    let job = atlas_types::JobId(7);
    let command = Command::CancelJob(atlas_types::CancelJob { job, running: true });
    let request = Request { origin: Origin::duty(Namespace::default_namespace()), command };
    let answers = soon(handle.propose(vec![request])).await.expect("answered");
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
