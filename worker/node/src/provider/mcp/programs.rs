//! Starts the programs of MCP servers. Each is a process tree of its own, which is killed with its connection and with the worker.

use std::ffi::OsString;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use atlas_env::Env;
use atlas_mcp::{Launcher, Program, RunningProgram};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::cgroup::Limits;
use crate::folder::OwnDirectory;
use crate::process::{Change, Spawn, Supervisor, Tree};
use crate::provider::Settings;
use crate::sandbox::Sandboxes;

/// How much of a program's standard error is kept, and how much of it is told.
const ERRORS_BYTES_MAX: usize = 4 << 10;
const COMPLAINT_CHARS_MAX: usize = 300;

/// Starts programs on this machine.
pub(crate) struct Programs {
    env: Env,
    supervisor: Arc<Supervisor>,
    settings: Arc<Settings>,
    /// Where the directories of programs are whose definition names none.
    directory: PathBuf,
}

impl Programs {
    pub(crate) fn new(env: Env, supervisor: Arc<Supervisor>, settings: Arc<Settings>, data_dir: &Path) -> Self {
        Self { env, supervisor, settings, directory: data_dir.join("mcp") }
    }
}

/// What is started: everything by value, for the thread that forks.
struct Start {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
    /// True if the program runs in a new directory in there, which goes with it.
    is_own: bool,
    /// The name of the server, and the rights of the agents that use it if these are restricted.
    server: String,
    rights: Option<String>,
}

#[async_trait]
impl Launcher for Programs {
    async fn launch(&self, program: Program<'_>) -> Result<RunningProgram, String> {
        let mut environment = self.settings.environment.clone();
        environment
            .extend(program.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value.expose()))));
        let start = Start {
            program: program.command.into(),
            arguments: program.args.iter().map(|argument| OsString::from(argument.expose())).collect(),
            environment,
            directory: program.directory.map_or_else(|| self.directory.clone(), PathBuf::from),
            is_own: program.directory.is_none(),
            server: program.server.to_owned(),
            rights: program.rights.map(str::to_owned),
        };
        let (supervisor, settings) = (Arc::clone(&self.supervisor), Arc::clone(&self.settings));
        // A fork would delay other tasks of the runtime.
        let started =
            self.env.spawn_blocking("start mcp server", move || begin(start, &supervisor, &settings.sandboxes));
        let started = started.join().await.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()));
        let (tree, stdin, stdout, stderr) = started.map_err(|error| error.to_string())?;
        let running =
            Arc::new(Running { env: self.env.clone(), tree: Mutex::new(Some(tree)), errors: Mutex::default(), stderr });
        let reader = Arc::clone(&running);
        self.env.spawn("mcp-stderr", async move { while reader.stderr.readable().await.is_ok() && reader.read() {} });
        let asked = Arc::clone(&running);
        Ok(RunningProgram {
            stdout: Box::new(stdout),
            stdin: Box::new(stdin),
            keeper: Box::new(Keeper(running)),
            complaint: Box::new(move || asked.complaint()),
        })
    }
}

type Begun = (Tree, Sender, Receiver, Receiver);

fn begin(start: Start, supervisor: &Supervisor, sandboxes: &Sandboxes) -> io::Result<Begun> {
    // What one program leaves there must not be what another one starts with.
    let own_directory = start.is_own.then(|| OwnDirectory::empty(&start.directory)).transpose()?;
    let directory = own_directory.as_ref().map_or(start.directory.as_path(), OwnDirectory::path).to_owned();
    let confined = |rights: &str| {
        let access = serde_json::from_str(rights).map_err(io::Error::other)?;
        sandboxes.with(access, &directory, &format!("the MCP server {}", start.server)).map_err(io::Error::other)
    };
    let sandbox = start.rights.as_deref().map(confined).transpose()?;
    let (stdin, to_program) = io::pipe()?;
    let (from_program, stdout) = io::pipe()?;
    let (errors, stderr) = io::pipe()?;
    let tree = supervisor.spawn(Spawn {
        program: start.program,
        arguments: start.arguments,
        directory: &directory,
        environment: start.environment,
        stdin: stdin.into(),
        stdout: stdout.into(),
        stderr: stderr.into(),
        passed: Vec::new(),
        limits: Limits::default(),
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
struct Keeper(Arc<Running>);

impl Drop for Keeper {
    fn drop(&mut self) {
        let tree = self.0.tree.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Its end takes some milliseconds. Outside of the runtime, which is being stopped then, this thread waits for it.
        if tokio::runtime::Handle::try_current().is_ok() {
            self.0.env.spawn_blocking("end mcp server", move || drop(tree));
        }
    }
}
