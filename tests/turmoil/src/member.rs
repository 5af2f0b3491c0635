//! A member's program: starts with the content of the disk, serves peers and clients, and ends when the member cannot
//! continue.

use std::io;
use std::time::Duration;

use atlas_env::Env;
use atlas_raft::{ChangeError, Handle, Leadership};
use atlas_sim::workload;
use atlas_types::MemberId;

use crate::cluster::{Cluster, PEER_PORT, Replacement, at};
use crate::machine::Accepted;
use crate::seen::Seen;
use crate::{wire, worker_door};

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The number of checks whether a new member keeps up, before the replacement starts again.
const LOOKS_MAX: usize = 100;
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// Runs until the member fails. A crash drops it.
pub(crate) async fn run(cluster: Cluster, member: usize) -> turmoil::Result {
    let (env, driver, options) = cluster.boot(member);
    let (handle, mut service) = match atlas_raft::start_here(driver, options, env.clone()).await {
        Ok(started) => started,
        Err(error) => {
            cluster.see(Seen::NoStart { member, error: atlas_env::chain(&error) });
            return Ok(());
        }
    };
    cluster.up(member, &handle);
    env.spawn("peer-door", serve_peers(handle.clone(), env.clone()));
    env.spawn("client-door", wire::serve(cluster.clone(), handle.clone(), env.clone()));
    env.spawn("worker-door", worker_door::serve(cluster.clone(), handle.clone(), env.clone()));
    env.spawn("operator", operate(cluster.clone(), member, handle, env.clone()));
    let reason = service.failed().await;
    cluster.see(Seen::Stopped { member, reason });
    Ok(())
}

/// Performs the requests of operators at this member.
async fn operate(cluster: Cluster, member: usize, handle: Handle, env: Env) {
    loop {
        env.clock.sleep(LOOK_EVERY).await;
        if let Some(to) = cluster.take_transfer(member) {
            transfer_to_nobody(&cluster, &handle).await;
            // The transfer may fail. The outcome is up to openraft.
            let _ = handle.transfer_leader(Some(to)).await;
        }
        if !matches!(*handle.leadership().borrow(), Leadership::Leader { .. }) {
            continue;
        }
        if let Some(command) = cluster.take_command() {
            // A member that has lost the leadership drops the command.
            let _ = handle.propose(vec![workload::request(command)]).await;
        }
        if let Some(replacement) = cluster.replacement()
            && replace(&handle, replacement, &env).await.is_ok()
        {
            cluster.count("members replaced");
            cluster.replaced();
        }
    }
}

/// Requests transfers that must change nothing: to the leader itself, and to a member that does not exist. If the
/// leader could not write afterwards, clients would get no answers.
async fn transfer_to_nobody(cluster: &Cluster, handle: &Handle) {
    let Leadership::Leader { term } = *handle.leadership().borrow() else { return };
    let answer = handle.transfer_leader(Some(handle.member())).await;
    if answer == Ok((handle.member(), term)) {
        cluster.count("transfers to the leader");
    }
    let unknown = handle.transfer_leader(Some(MemberId(u64::MAX))).await;
    assert!(unknown.is_err(), "a member that does not exist leads: {unknown:?}");
}

/// Removes the old member and adds the new one, continuing where an earlier leader stopped.
async fn replace(handle: &Handle, Replacement { old, new, member }: Replacement, env: &Env) -> Result<(), ChangeError> {
    handle.settle().await?;
    if handle.members().member(old).is_some() {
        handle.remove(old).await?;
    }
    handle.add_learner(new, at(member, new)).await?;
    for _ in 0..LOOKS_MAX {
        if handle.keeps_up(new) {
            return handle.promote(&[new]).await;
        }
        env.clock.sleep(LOOK_EVERY).await;
    }
    Err(ChangeError::Late)
}

async fn serve_peers(handle: Handle, env: Env) -> io::Result<()> {
    let any = (std::net::Ipv4Addr::UNSPECIFIED, PEER_PORT).into();
    let listener = env.net.listen(any).await?;
    let served = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .add_service(handle.peer_door().into_service())
        .serve_with_incoming(Accepted::all(listener));
    served.await.map_err(io::Error::other)
}
