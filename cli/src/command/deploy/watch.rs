//! `atlasctl deploy --watch`: deploys agents again after a change in their folders.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_env::Env;

use super::{Known, Options, deploy, find, label};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::stillness::{LOOK_INTERVAL, Stillness, fingerprint};

/// The pause after the cluster did not answer.
const AWAY: Duration = Duration::from_secs(5);

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    tokio::select! {
        failure = watch(context, options) => Err(failure),
        // Uploaded agents stay deployed; an agent that is being tested is not deployed.
        _ = tokio::signal::ctrl_c() => Ok(Exit::Done),
    }
}

/// Returns only if the first attempt cannot reach the cluster.
async fn watch(context: &Context, options: &Options) -> Failure {
    let env = Env::system();
    let mut stillness = Stillness::default();
    let mut known = BTreeMap::new();
    let mut first = true;
    loop {
        let paths = options.paths.clone();
        let look = env.spawn_blocking("look at agents", move || fingerprint(&paths)).join().await;
        // If reading the folders failed, the next round tries again.
        let Some(print) = look.ok().filter(|print| stillness.is_due(*print)) else {
            env.clock.sleep(LOOK_INTERVAL).await;
            continue;
        };
        let pause = match again(context, options, &mut known).await {
            Err(failure) if failure.exit == Exit::Unreachable => {
                if first {
                    return failure;
                }
                context.report(&failure);
                AWAY
            }
            result => {
                if let Err(failure) = result {
                    context.report(&failure);
                }
                stillness.read(print);
                context.next("watching; press Ctrl-C to stop");
                LOOK_INTERVAL
            }
        };
        first = false;
        env.clock.sleep(pause).await;
    }
}

/// Deploys the agents whose current package is not `known`.
async fn again(context: &Context, options: &Options, known: &mut BTreeMap<String, Known>) -> Result<(), Failure> {
    let found = find(&options.paths, known)?;
    if !found.iter().any(|found| found.news) {
        return Ok(());
    }
    let uploaded = deploy(context, options, &found).await?;
    for found in found {
        let (label, digest) = (label(&found.package), found.package.digest);
        // What was there already belongs to whoever deployed it.
        let ours = uploaded.contains(&label) || (!found.news && found.ours.is_some());
        known.insert(label, Known { digest, ours });
    }
    Ok(())
}
