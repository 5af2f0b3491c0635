//! Runs one process of an agent to its end, in a tree of its own: it ends with the lease, with everything that it started.

use std::ffi::OsString;
use std::io::{self, PipeReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::agent::Agent;
use crate::process::{Change, Spawn, Tree};
use crate::provider::Shared;
use crate::readiness::{at_once, watch};

/// What to run.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) directory: PathBuf,
    /// The complete environment.
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) stdout: Keep,
    pub(super) stderr: Keep,
    /// Places besides its own to which it writes.
    pub(super) writable: Vec<PathBuf>,
}

/// Which bytes of a stream are kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keep {
    First(usize),
    Last(usize),
}

/// What a process left.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// A tree is looked at again after this time, even if it does not report a change.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a process. Dropping the future kills its tree.
pub(super) async fn run(shared: &Shared, agent: &Arc<Agent>, launch: Launch) -> io::Result<Ended> {
    let (supervisor, limits) = (Arc::clone(&shared.supervisor), agent.limits());
    let (agent, settings) = (Arc::clone(agent), Arc::clone(&shared.settings));
    let keep = (launch.stdout, launch.stderr);
    let start = move |stdout, stderr| {
        let writable: Vec<&Path> = launch.writable.iter().map(PathBuf::as_path).collect();
        let sandbox = settings.sandboxes.of(&agent.contract, &launch.directory, &[&agent.directory], &writable);
        supervisor.spawn(Spawn {
            program: launch.program,
            arguments: launch.arguments,
            directory: &launch.directory,
            environment: launch.environment,
            stdin: Stdio::null(),
            stdout,
            stderr,
            passed: Vec::new(),
            limits,
            sandbox: sandbox.map_err(io::Error::other)?,
            own_directory: None,
            makes_code: false,
            leased: true,
            shares_pids: false,
            after: Vec::new(),
        })
    };
    to_end(&shared.env, keep, start).await
}

/// Runs the tree that `start` starts with a standard output and a standard error. Dropping the future kills the tree.
pub(super) async fn to_end(
    env: &Env,
    keep: (Keep, Keep),
    start: impl FnOnce(Stdio, Stdio) -> io::Result<Tree> + Send + 'static,
) -> io::Result<Ended> {
    // A fork would delay other tasks of the runtime.
    let started = env.spawn_blocking("start process", move || {
        let (from_agent, stdout) = io::pipe()?;
        let (errors, stderr) = io::pipe()?;
        let tree = start(stdout.into(), stderr.into())?;
        Ok((tree, watch(from_agent, Interest::READABLE)?, watch(errors, Interest::READABLE)?))
    });
    let started: io::Result<(Tree, AsyncFd<PipeReader>, AsyncFd<PipeReader>)> =
        started.join().await.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()));
    let (mut tree, stdout, stderr) = started?;
    let ended = async {
        loop {
            if let Some(change) = tree.change() {
                // What it left running would hold the pipes open.
                tree.kill().await;
                return (change, tree.breach());
            }
            let now = env.clock.monotonic();
            match tree.look_at() {
                Some(look) if look <= now => tree.look().await,
                look => drop(tree.wait_for_change(look.map_or(PATIENCE, |look| PATIENCE.min(look - now))).await),
            }
        }
    };
    let ((change, breach), stdout, stderr) = tokio::join!(ended, read(&stdout, keep.0), read(&stderr, keep.1));
    if let Some(breach) = breach.filter(|breach| breach.is_end) {
        return Err(io::Error::other(breach.text));
    }
    match change {
        Change::NotConfined(refused) => Err(io::Error::other(refused)),
        Change::NotStarted { errno } => Err(io::Error::from_raw_os_error(errno)),
        Change::Exited(status) => Ok(Ended { status, stdout: stdout?, stderr: stderr? }),
    }
}

/// Reads a pipe to its end.
async fn read(pipe: &AsyncFd<PipeReader>, keep: Keep) -> io::Result<Vec<u8>> {
    let (mut kept, mut piece) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        match at_once(pipe, Interest::READABLE, |mut pipe| pipe.read(&mut piece)) {
            Ok(0) => break,
            Ok(count) => match keep {
                Keep::First(most) => {
                    let room = most.saturating_sub(kept.len());
                    kept.extend_from_slice(&piece[..count.min(room)]);
                }
                Keep::Last(most) => {
                    kept.extend_from_slice(&piece[..count]);
                    if kept.len() > 2 * most {
                        kept.drain(..kept.len() - most);
                    }
                }
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                pipe.readable().await?.clear_ready();
            }
            Err(error) => return Err(error),
        }
    }
    if let Keep::Last(most) = keep {
        kept.drain(..kept.len().saturating_sub(most));
    }
    Ok(kept)
}
