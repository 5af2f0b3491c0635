//! Programs of the worker that it talks to over their standard streams. Each is a process tree of its own, which is killed with its connection
//! and with the worker.

use std::ffi::OsString;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use atlas_env::Env;
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::cgroup::Limits;
use crate::folder::OwnDirectory;
use crate::process::{Change, Spawn, Supervisor, Tree};
use crate::sandbox::{Confined, Unconfined};

/// How much of a program's standard error is kept, and how much of it is told.
const ERRORS_BYTES_MAX: usize = 4 << 10;
const COMPLAINT_CHARS_MAX: usize = 300;

/// Finds the confinement of a program in its directory. None has the rights of the worker. Blocks.
type Confine = Box<dyn FnOnce(&Path) -> Result<Option<Confined>, Unconfined> + Send>;

/// What is started: everything by value, for the thread that forks.
pub(crate) struct Start {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// The complete environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: PathBuf,
    /// True if the program runs in a new directory in there, which goes with it.
    pub(crate) is_own: bool,
    /// True if its home directory is its directory.
    pub(crate) is_home: bool,
    pub(crate) limits: Limits,
    pub(crate) confine: Confine,
}

/// A program that runs, with the ends of its streams. It is killed when the keeper is dropped.
pub(crate) struct Piped {
    pub(crate) stdin: Sender,
    pub(crate) stdout: Receiver,
    pub(crate) keeper: Keeper,
}

/// Starts a program. `name` is that of the thread.
pub(crate) async fn start(
    env: &Env,
    supervisor: &Arc<Supervisor>,
    name: &'static str,
    start: Start,
) -> io::Result<Piped> {
    let supervisor = Arc::clone(supervisor);
    // A fork would delay other tasks of the runtime.
    let started = env.spawn_blocking(name, move || begin(start, &supervisor));
    let started = started.join().await.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()));
    let (tree, stdin, stdout, stderr) = started?;
    let running =
        Arc::new(Running { env: env.clone(), tree: Mutex::new(Some(tree)), errors: Mutex::default(), stderr });
    let reader = Arc::clone(&running);
    env.spawn("stderr of a program", async move { while reader.stderr.readable().await.is_ok() && reader.read() {} });
    Ok(Piped { stdin, stdout, keeper: Keeper(running) })
}

type Begun = (Tree, Sender, Receiver, Receiver);

fn begin(start: Start, supervisor: &Supervisor) -> io::Result<Begun> {
    // What one program leaves there must not be what another one starts with.
    let own_directory = start.is_own.then(|| OwnDirectory::empty(&start.directory)).transpose()?;
    let directory = own_directory.as_ref().map_or(start.directory.as_path(), OwnDirectory::path).to_owned();
    let sandbox = (start.confine)(&directory).map_err(io::Error::other)?;
    let mut environment = start.environment;
    if start.is_home {
        environment.push(("HOME".into(), directory.clone().into()));
    }
    let (stdin, to_program) = io::pipe()?;
    let (from_program, stdout) = io::pipe()?;
    let (errors, stderr) = io::pipe()?;
    let tree = supervisor.spawn(Spawn {
        program: start.program,
        arguments: start.arguments,
        directory: &directory,
        environment,
        stdin: stdin.into(),
        stdout: stdout.into(),
        stderr: stderr.into(),
        passed: Vec::new(),
        limits: start.limits,
        sandbox,
        own_directory,
        makes_code: false,
        // It belongs to the worker and not to one lease.
        leased: false,
        shares_pids: false,
        after: Vec::new(),
    })?;
    let receiver = |pipe: PipeReader| Receiver::from_owned_fd(OwnedFd::from(pipe));
    Ok((tree, Sender::from_owned_fd(OwnedFd::from(to_program))?, receiver(from_program)?, receiver(errors)?))
}

/// A program, and what it said on its standard error.
struct Running {
    env: Env,
    tree: Mutex<Option<Tree>>,
    errors: Mutex<Vec<u8>>,
    stderr: Receiver,
}

impl Running {
    /// Reads what is there. False once the program has closed its end.
    fn read(&self) -> bool {
        let mut piece = [0; 4 << 10];
        loop {
            match self.stderr.try_read(&mut piece) {
                Ok(0) => return false,
                Ok(count) => {
                    let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
                    errors.extend_from_slice(&piece[..count]);
                    let over = errors.len().saturating_sub(ERRORS_BYTES_MAX);
                    errors.drain(..over);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }

    fn complaint(&self) -> Option<String> {
        let change = self.tree.lock().unwrap_or_else(PoisonError::into_inner).as_mut().and_then(Tree::change);
        if let Some(Change::NotStarted { errno }) = change {
            return Some(io::Error::from_raw_os_error(errno).to_string());
        }
        self.read();
        if let Some(Change::NotConfined(refused)) = change {
            return Some(refused.to_string());
        }
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&errors);
        let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(last.chars().take(COMPLAINT_CHARS_MAX).collect())
    }
}

/// Kills the program when it is dropped.
pub(crate) struct Keeper(Arc<Running>);

impl Keeper {
    /// Why the program did not start, or the last line of its standard error.
    pub(crate) fn complaint(&self) -> Option<String> {
        self.0.complaint()
    }

    /// The same, for those who ask later.
    pub(crate) fn complaints(&self) -> impl Fn() -> Option<String> + Send + Sync + use<> {
        let running = Arc::clone(&self.0);
        move || running.complaint()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let tree = self.0.tree.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Its end takes some milliseconds. Outside of the runtime, which is being stopped then, this thread waits for it.
        if tokio::runtime::Handle::try_current().is_ok() {
            self.0.env.spawn_blocking("end a program", move || drop(tree));
        }
    }
}
