//! One process with its limits.

use std::io;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

use crate::limits::Limits;

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

/// Runs a command in a group of its own, until it ends or its time is over. Everything that it started ends with it.
pub(crate) async fn run(mut command: Command, limits: &Limits) -> io::Result<Ended> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let mut child = command.spawn()?;
    let mut group = Group(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let most = limits.stream_bytes;
    let wait = async {
        let status = timeout(limits.time, child.wait()).await;
        // Whoever still holds the streams would keep their readers waiting.
        drop(Group(group.0.take()));
        status
    };
    let (status, stdout, stderr) = tokio::join!(wait, last(stdout, most), last(stderr, most));
    Ok(Ended { status: status.ok().transpose()?, stdout, stderr })
}

/// The end of what is written to a stream.
async fn last(stream: Option<impl AsyncRead + Unpin>, most: usize) -> String {
    let Some(mut stream) = stream else { return String::new() };
    let (mut kept, mut piece) = (Vec::new(), vec![0; 8 << 10]);
    while let Ok(count @ 1..) = stream.read(&mut piece).await {
        kept.extend_from_slice(&piece[..count]);
        if kept.len() > 2 * most {
            kept.drain(..kept.len() - most);
        }
    }
    let from = kept.len().saturating_sub(most);
    String::from_utf8_lossy(&kept[from..]).into_owned()
}
