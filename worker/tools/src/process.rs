//! One process with its limits, and who starts it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

use crate::limits::CallLimits;

/// A process to run, without input.
#[derive(Debug, Clone)]
pub struct Process {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub directory: PathBuf,
    /// The complete environment.
    pub environment: BTreeMap<OsString, OsString>,
    /// Bytes that are kept of each of its streams: the last ones.
    pub stream_bytes: usize,
}

/// What a process left.
#[derive(Debug, Clone)]
pub struct ProcessEnd {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// A process that is started.
pub type ProcessStart<'l> = Pin<Box<dyn Future<Output = io::Result<ProcessEnd>> + Send + 'l>>;

/// Starts processes. Dropping the future kills the process with everything that it started.
pub trait Launch: Send + Sync {
    /// Runs a process to its end.
    fn launch(&self, process: Process) -> ProcessStart<'_>;
}

/// Starts processes as children of this one.
#[derive(Debug, Clone, Copy)]
pub struct Children;

impl Launch for Children {
    fn launch(&self, process: Process) -> ProcessStart<'_> {
        Box::pin(child(process))
    }
}

/// A process that ended.
pub(crate) struct Ended {
    /// None if its time was over.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Kills a group of processes, also when the call is given up.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // An error means that nobody of the group is left.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

/// Runs a process until it ends or its time is over. Everything that it started ends with it.
pub(crate) async fn run(launch: &dyn Launch, process: Process, limits: &CallLimits) -> io::Result<Ended> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    match timeout(limits.time, launch.launch(process)).await {
        Ok(left) => {
            let ProcessEnd { status, stdout, stderr } = left?;
            Ok(Ended { status: Some(status), stdout: text(stdout), stderr: text(stderr) })
        }
        Err(_) => Ok(Ended { status: None, stdout: String::new(), stderr: String::new() }),
    }
}

/// Runs a process in a group of its own.
async fn child(process: Process) -> io::Result<ProcessEnd> {
    let mut command = Command::new(&process.program);
    command.args(process.arguments).current_dir(process.directory).env_clear().envs(process.environment);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let mut child = command.spawn()?;
    let mut group = Group(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let most = process.stream_bytes;
    let wait = async {
        let status = child.wait().await;
        // Whoever still holds the streams would keep their readers waiting.
        drop(Group(group.0.take()));
        status
    };
    let (status, stdout, stderr) = tokio::join!(wait, last(stdout, most), last(stderr, most));
    Ok(ProcessEnd { status: status?, stdout, stderr })
}

/// The end of what is written to a stream.
async fn last(stream: Option<impl AsyncRead + Unpin>, most: usize) -> Vec<u8> {
    let Some(mut stream) = stream else { return Vec::new() };
    let (mut kept, mut piece) = (Vec::new(), vec![0; 8 << 10]);
    while let Ok(count @ 1..) = stream.read(&mut piece).await {
        kept.extend_from_slice(&piece[..count]);
        if kept.len() > 2 * most {
            kept.drain(..kept.len() - most);
        }
    }
    kept.drain(..kept.len().saturating_sub(most));
    kept
}
