//! A job that an attempt spawns. Each has one future, which returns the answer to the parent.

use std::time::Duration;

use atlas_env::Env;
use atlas_service::{Error, Service, Spawning};
use atlas_types::{ErrorKind, NodeId, Spawn, SpawnEnd};
use tokio::sync::watch;

/// The pause between two tries while there is no leader or the log is overloaded.
const PAUSE: Duration = Duration::from_millis(200);

/// Submits the child and waits for its family, at most as long as the parent would. The session drops this future when
/// it ends. The worker then repeats the request in its next session and gets the same child. None if the parent's lease
/// ends first: `alive` closes then.
pub(super) async fn run(
    service: Service,
    env: Env,
    (node, mut alive): (NodeId, watch::Receiver<()>),
    number: u64,
    spawn: Spawn,
) -> Option<(u64, SpawnEnd)> {
    tokio::select! {
        biased;
        _ = alive.changed() => None,
        end = end(service, env, node, number, spawn) => Some(end),
    }
}

async fn end(service: Service, env: Env, node: NodeId, number: u64, mut spawn: Spawn) -> (u64, SpawnEnd) {
    let until = env.clock.monotonic() + spawn.timeout.as_duration();
    let mut child = None;
    loop {
        let end = match child.clone() {
            None => match service.spawn_child(number, &spawn).await {
                Ok(Spawning::Child(found)) => {
                    child = Some(found);
                    continue;
                }
                Ok(Spawning::End(end)) => Ok(end),
                Err(error) => Err(error),
            },
            Some(child) => {
                let left = until.saturating_sub(env.clock.monotonic());
                service.await_child(&node, spawn.spawner, child, left).await
            }
        };
        match end {
            Ok(end) => return (number, end),
            Err(error) if passes(&error) => {
                // The child may have been submitted although the call failed.
                spawn.again = true;
                env.clock.sleep(PAUSE).await;
            }
            Err(error) => return (number, SpawnEnd::Refused(error.to_string())),
        }
    }
}

fn passes(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Busy)
}
