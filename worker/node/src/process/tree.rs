//! The worker's side of a process tree.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::keeper::{self, ARGUMENT, KILL, TERMINATE};
use super::{Confinement, pre_exec};

/// Starts trees: which program keeps them, and how firmly.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    program: PathBuf,
    confinement: Confinement,
}

/// Why no keeper could be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeeperError {
    /// This program does not call `run_if_asked`.
    #[error("this program cannot be started again as a keeper of agent processes")]
    NotCapable,
    /// The machine permits none of the ways, or not the one that was asked for.
    #[error("this machine does not permit to hold process trees in this way")]
    NoConfinement,
}

/// What to start.
#[derive(Debug)]
pub(crate) struct Spawn<'a> {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: &'a Path,
    /// The whole environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
    /// Passed on under their numbers, and closed here.
    pub(crate) passed: Vec<OwnedFd>,
}

/// What a keeper tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The program could not be started.
    NotStarted {
        /// The system's error number.
        errno: i32,
    },
    /// The agent's process ended, and its tree with it.
    Exited(ExitStatus),
}

impl Change {
    pub(super) fn to_bytes(self) -> [u8; 5] {
        let (kind, value) = match self {
            Self::NotStarted { errno } => (b'n', errno),
            Self::Exited(status) => (b'x', status.into_raw()),
        };
        let mut bytes = [kind, 0, 0, 0, 0];
        bytes[1..].copy_from_slice(&value.to_be_bytes());
        bytes
    }

    fn from_bytes([kind, a, b, c, d]: [u8; 5]) -> Option<Self> {
        let value = i32::from_be_bytes([a, b, c, d]);
        match kind {
            b'n' => Some(Self::NotStarted { errno: value }),
            b'x' => Some(Self::Exited(ExitStatus::from_raw(value))),
            _ => None,
        }
    }
}

impl Keeper {
    /// Finds out how firmly trees can be held, if it is not `wanted` in one way. `program` stands in where this program is not one
    /// that can keep (tests).
    pub(crate) fn probe(program: Option<&Path>, wanted: Option<Confinement>) -> Result<Self, KeeperError> {
        let program = match program {
            Some(program) => program.to_owned(),
            None if keeper::capable() => std::env::current_exe().map_err(|_| KeeperError::NotCapable)?,
            None => return Err(KeeperError::NotCapable),
        };
        let works = |confinement: &Confinement| {
            let mut probe = Command::new(&program);
            probe.args([ARGUMENT, "probe", confinement.as_str()]).env_clear();
            probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            probe.status().is_ok_and(|status| status.success())
        };
        let tried =
            Confinement::ALL.into_iter().filter(|&confinement| wanted.is_none_or(|wanted| wanted == confinement));
        let confinement = tried.into_iter().find(works).ok_or(KeeperError::NoConfinement)?;
        Ok(Self { program, confinement })
    }

    /// How firmly trees are held.
    pub(crate) fn confinement(&self) -> Confinement {
        self.confinement
    }

    /// Starts a tree.
    pub(crate) fn spawn(&self, spawn: Spawn<'_>) -> io::Result<Tree> {
        let (control, theirs) = UnixStream::pair()?;
        let passed: Vec<String> = spawn.passed.iter().map(|fd| fd.as_raw_fd().to_string()).collect();
        let mut command = Command::new(&self.program);
        command.args([ARGUMENT, "keep", self.confinement.as_str()]);
        command.arg(theirs.as_raw_fd().to_string()).arg(passed.join(","));
        command.arg(spawn.program).args(spawn.arguments);
        command.current_dir(spawn.directory).env_clear().envs(spawn.environment);
        command.stdin(spawn.stdin).stdout(spawn.stdout).stderr(spawn.stderr).process_group(0);
        let mut inherited = vec![theirs.as_raw_fd()];
        inherited.extend(spawn.passed.iter().map(AsRawFd::as_raw_fd));
        pre_exec::inherit(&mut command, inherited);
        let keeper = command.spawn()?;
        control.set_nonblocking(true)?;
        Ok(Tree { keeper, control, heard: Vec::new() })
    }
}

/// A running process tree. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Tree {
    keeper: Child,
    control: UnixStream,
    heard: Vec<u8>,
}

impl Tree {
    /// How long a keeper may take to end its tree before it is killed itself.
    const END_MAX: Duration = Duration::from_secs(2);

    /// Becomes readable when the tree changes.
    pub(crate) fn changes(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Asks the agent's process group to stop.
    pub(crate) fn terminate(&mut self) {
        // A keeper that is gone has no tree any more.
        let _ = self.control.write_all(&[TERMINATE]);
    }

    /// What the keeper told since, without waiting. A keeper that ended without a word counts as a killed agent.
    pub(crate) fn change(&mut self) -> Option<Change> {
        let mut bytes = [0; 5];
        match self.control.read(&mut bytes) {
            Ok(0) => return Some(Change::Exited(ExitStatus::from_raw(9))),
            Ok(n) => self.heard.extend_from_slice(&bytes[..n]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => return Some(Change::Exited(ExitStatus::from_raw(9))),
        }
        self.heard.first_chunk().copied().and_then(Change::from_bytes)
    }

    /// Waits for a change; false if none came in time.
    pub(crate) fn wait_for_change(&self, patience: Duration) -> bool {
        let mut fds = [PollFd::new(self.control.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        !matches!(poll(&mut fds, timeout), Ok(0))
    }

    /// Ends the whole tree and waits until nothing of it is left.
    pub(crate) fn kill(&mut self) {
        let _ = self.control.write_all(&[KILL]);
        self.wait_for_end();
    }

    /// The keeper closes its socket by ending; if it does not, it is killed, and a namespace with it.
    fn wait_for_end(&mut self) {
        let timeout = PollTimeout::try_from(Self::END_MAX).unwrap_or(PollTimeout::MAX);
        let mut word = [0; 16];
        loop {
            match self.control.read(&mut word) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut fds = [PollFd::new(self.control.as_fd(), PollFlags::POLLIN)];
                    if matches!(poll(&mut fds, timeout), Ok(0)) {
                        let _ = self.keeper.kill();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let _ = self.keeper.wait();
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}
