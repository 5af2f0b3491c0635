//! Committed writes of one member: proposed, planned, logged, synced, applied, answered.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;
use atlas_raft::{Handle, Options, Service};
use atlas_types::{
    BootId, Command, Cordon, Door, Inventory, Namespace, NodeId, Origin, Principal, RegisterNode, Request,
};
use futures::future::try_join_all;

use crate::figures::{Row, median};

/// Writes in flight.
const CONCURRENCIES: [usize; 3] = [1, 64, 256];

const WARM_UP: Duration = Duration::from_millis(500);
const MEASURED: Duration = Duration::from_secs(3);

pub(crate) fn run(env: &Env, rows: &[Row]) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir_in(".")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let fsync = median(rows, "limit_fsync", 1);
    runtime.block_on(async {
        let (handle, service) = start(env, folder.path()).await?;
        let node = register(&handle).await?;
        let mut measured = Vec::new();
        for concurrency in CONCURRENCIES {
            let row = load(env, &handle, &node, concurrency).await?;
            measured.push(row.median_against("one bare sync", fsync));
        }
        service.shutdown().await;
        Ok(measured)
    })
}

/// Measures the smallest command that changes the state each time: a node is cordoned and uncordoned in turn.
async fn load(env: &Env, handle: &Handle, node: &NodeId, concurrency: usize) -> Result<Row> {
    let warm = env.clock.monotonic() + WARM_UP;
    let until = warm + MEASURED;
    let one = |number: usize| async move {
        let mut latencies = Vec::new();
        let mut cordoned = number.is_multiple_of(2);
        loop {
            let begun = env.clock.monotonic();
            if begun > until {
                return anyhow::Ok(latencies);
            }
            cordon(handle, node, cordoned).await?;
            cordoned = !cordoned;
            if begun >= warm {
                latencies.push(env.clock.monotonic() - begun);
            }
        }
    };
    let all = try_join_all((0..concurrency).map(one)).await?;
    Ok(Row::rate("commit", concurrency, all.concat(), MEASURED))
}

/// A single member without a history.
pub(crate) async fn start(env: &Env, folder: &Path) -> Result<(Handle, Service)> {
    let options = Options { history: false, ..Options::new(folder.to_owned()) };
    atlas_raft::start(options, env.clone()).await.context("could not start Raft")
}

/// Registers a node that can be cordoned.
pub(crate) async fn register(handle: &Handle) -> Result<NodeId> {
    let node = NodeId::new("bench")?;
    let hello = RegisterNode { node: node.clone(), boot_id: BootId(1), inventory: Inventory::default() };
    propose(handle, Command::RegisterNode(hello)).await?;
    Ok(node)
}

pub(crate) async fn cordon(handle: &Handle, node: &NodeId, cordoned: bool) -> Result<()> {
    propose(handle, Command::Cordon(Cordon { node: node.clone(), cordoned })).await
}

async fn propose(handle: &Handle, command: Command) -> Result<()> {
    let origin = Origin {
        namespace: Namespace::default_namespace(),
        principal: Principal::local(),
        door: Door::Http,
        request_id: None,
        body_hash: 0,
        trace: None,
    };
    let answers = handle.propose(vec![Request { origin, command }]).await?;
    ensure!(answers.iter().all(Result::is_ok), "a write was refused: {answers:?}");
    Ok(())
}
