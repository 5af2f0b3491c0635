//! The worker's side of a process tree.

mod watched;

use std::ffi::OsString;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use atlas_env::Env;
use atlas_sandbox::{Guard, Means, Sandbox};
use atlas_types::NodeId;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::geteuid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::exposure::{Exposed, Exposure};
use super::left::{self, Ended};
use super::plan::Plan;
use super::report::{Change, REPORT_BYTES, Spent};
use super::settled::Settled;
use super::supervisor::{self, ARGUMENT, KILL, TERMINATE};
use super::watchdog::Hold;
use super::{Confinement, LeaseWatchdog, pre_exec};
use crate::cgroup::{Breach, Cgroup, Enforced, Group, Groups, Limits};
use crate::folder::OwnDirectory;
use crate::readiness::{at_once, watch};
use crate::sandbox::Confined;

/// Starts process trees with a supervisor program and a way of containment.
pub(crate) struct Supervisor {
    env: Env,
    program: PathBuf,
    confinement: Confinement,
    watchdog: LeaseWatchdog,
    groups: Groups,
    /// What programs with the rights of the worker must leave as it is. None if this machine cannot keep it from them.
    guard: Option<Guard>,
    exposure: Exposure,
}

/// Why no supervisor could be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SupervisorError {
    /// This program does not call `run_if_asked`.
    #[error("this program cannot be restarted as a supervisor of agent processes")]
    NotCapable,
    /// The machine permits no way of containment, or not the requested one.
    #[error("this machine does not allow this way to contain process trees")]
    NoConfinement,
}

/// The program to start.
#[derive(Debug)]
pub(crate) struct Spawn<'a> {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: &'a Path,
    /// The complete environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
    /// Descriptors that the program inherits with the same numbers. They are closed in this process.
    pub(crate) passed: Vec<OwnedFd>,
    /// The limits of its contract.
    pub(crate) limits: Limits,
    /// Its confinement. None for a program with the rights of the worker.
    pub(crate) sandbox: Option<Confined>,
    /// Its working directory, if that goes with the tree. It is `directory` as well.
    pub(crate) own_directory: Option<OwnDirectory>,
    /// True for a program that makes what others must not change.
    pub(crate) makes_code: bool,
    /// True if it runs an attempt and must be killed when the leases end.
    pub(crate) leased: bool,
    /// True for the client of a container engine. Podman has no daemon: its clients keep the numbers of processes for each other, so all must
    /// see the same ones.
    pub(crate) shares_pids: bool,
    /// A program with its arguments that is started when the tree has ended otherwise than with success, even if the
    /// worker is dead. It has the same environment, and nothing waits for it. Empty for none.
    pub(crate) after: Vec<OsString>,
}

/// The program of supervisors. It is started also to find out what this machine offers.
#[derive(Debug, Clone)]
pub(crate) struct SupervisorProgram(PathBuf);

impl SupervisorProgram {
    /// This program, or the one that is `chosen` if this one cannot be a supervisor (tests).
    pub(crate) fn new(chosen: Option<&Path>) -> Result<Self, SupervisorError> {
        match chosen {
            Some(program) => Ok(Self(program.to_owned())),
            None if supervisor::capable() => std::env::current_exe().map(Self).map_err(|_| SupervisorError::NotCapable),
            None => Err(SupervisorError::NotCapable),
        }
    }

    /// What this machine offers for sandboxes. Blocks.
    pub(crate) fn means(&self) -> Means {
        let mut probe = Command::new(&self.0);
        probe.args([ARGUMENT, "means"]).env_clear().stdin(Stdio::null()).stderr(Stdio::null());
        let told = probe.output().ok().filter(|output| output.status.success());
        told.and_then(|output| serde_json::from_slice(&output.stdout).ok()).unwrap_or_default()
    }

    /// Sets up control groups of the worker `node` for trees with limits, as far as the machine permits. Also returns why
    /// some limits are not enforced. Blocks.
    pub(crate) fn groups(&self, choice: &Cgroup, node: &NodeId, data_dir: &Path) -> (Groups, Vec<String>) {
        let enters = |entrances: Vec<File>| {
            let numbers: Vec<String> = entrances.iter().map(|file| file.as_raw_fd().to_string()).collect();
            let mut probe = Command::new(&self.0);
            probe.args([ARGUMENT, "enter", &numbers.join(",")]).env_clear();
            probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            pre_exec::inherit(&mut probe, entrances.iter().map(AsRawFd::as_raw_fd).collect());
            probe.status().is_ok_and(|status| status.success())
        };
        Groups::open(choice, node, data_dir, enters)
    }
}

impl Supervisor {
    /// Determines the strictest way of containment, unless one is `wanted`. Blocks.
    pub(crate) fn probe(
        env: Env,
        SupervisorProgram(program): SupervisorProgram,
        wanted: Option<Confinement>,
    ) -> Result<Self, SupervisorError> {
        let works = |confinement: &Confinement| {
            let mut probe = Command::new(&program);
            probe.args([ARGUMENT, "probe", confinement.as_str()]).env_clear();
            probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            probe.status().is_ok_and(|status| status.success())
        };
        let tried =
            Confinement::ALL.into_iter().filter(|&confinement| wanted.is_none_or(|wanted| wanted == confinement));
        let confinement = tried.into_iter().find(works).ok_or(SupervisorError::NoConfinement)?;
        Ok(Self {
            env,
            program,
            confinement,
            watchdog: LeaseWatchdog::default(),
            groups: Groups::default(),
            guard: None,
            exposure: Exposure::default(),
        })
    }

    /// Keeps `code` from programs with the rights of the worker from now on, and from each the working directories of others, which are
    /// in `folders`. False if this machine cannot. Blocks.
    pub(crate) fn keep(&mut self, code: &[PathBuf], folders: &Path) -> bool {
        let places = code.iter().filter_map(|path| path.canonicalize().ok());
        let guard = Guard { code: places.collect(), folders: folders.canonicalize().ok(), own: None };
        let can = self.confinement != Confinement::Subreaper && {
            let mut probe = Command::new(&self.program);
            probe.args([ARGUMENT, "guard", self.confinement.as_str()]).arg(folders).env_clear();
            probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            probe.status().is_ok_and(|status| status.success())
        };
        self.guard = can.then_some(guard);
        can
    }

    /// Whether packages may have been changed.
    pub(crate) fn exposure(&self) -> &Exposure {
        &self.exposure
    }

    /// Limits trees by these control groups from now on.
    pub(crate) fn limit_by(&mut self, groups: Groups) {
        self.groups = groups;
    }

    /// The limits that control groups enforce, as text. None if they enforce no limit.
    pub(crate) fn groups(&self) -> Option<String> {
        self.groups.text()
    }

    /// The way of containment.
    pub(crate) fn confinement(&self) -> Confinement {
        self.confinement
    }

    /// The lease watchdog of the trees.
    pub(crate) fn watchdog(&self) -> &LeaseWatchdog {
        &self.watchdog
    }

    /// Starts a tree. Blocks for the duration of a fork. Must run in the process's async runtime.
    pub(crate) fn spawn(&self, spawn: Spawn<'_>) -> io::Result<Tree> {
        let (control, theirs) = UnixStream::pair()?;
        control.set_nonblocking(true)?;
        let hold = match spawn.leased {
            true => Some(self.watchdog.hold(Arc::new(control.try_clone()?))),
            false => None,
        };
        let (hold, until) = hold.map_or((None, 0), |(hold, until)| (Some(hold), until));
        let (group, enforced) = self.groups.create(spawn.limits);
        let entrances = group.as_ref().map(Group::entrances).transpose()?.unwrap_or_default();
        let numbers = |fds: &[RawFd]| fds.iter().map(RawFd::to_string).collect::<Vec<_>>().join(",");
        let mut environment = spawn.environment;
        if let Some(confined) = &spawn.sandbox {
            confined.environment(&mut environment);
        }
        let sandbox = spawn.sandbox.as_ref().map(|confined| confined.sandbox.clone());
        // What runs after a tree must not be in the tree's namespace, with which it would end.
        let is_apart = spawn.after.is_empty() && !spawn.shares_pids;
        let confinement = if is_apart { self.confinement } else { Confinement::Subreaper };
        let own = spawn.own_directory.as_ref();
        let has_mounts = sandbox.as_ref().is_some_and(|sandbox| sandbox.means.namespaces.is_some());
        let guard = self.guard.clone().filter(|_| is_apart && !has_mounts && !spawn.makes_code);
        let guard = guard.map(|guard| Guard { own: own.map(|own| own.path().to_owned()), ..guard });
        // Root can undo mounts. A client of a container engine runs no code of agents.
        let keeps = sandbox.as_ref().is_some_and(Sandbox::keeps_code);
        let is_exposed = is_apart && !keeps && (guard.is_none() || geteuid().is_root());
        let plan = Plan {
            sandbox,
            guard,
            package: own.and_then(OwnDirectory::package).map(Path::to_owned),
            directory: spawn.directory.to_owned(),
            after: spawn.after,
            environment,
        };
        let plan = plan.write()?;
        let passed: Vec<RawFd> = spawn.passed.iter().map(AsRawFd::as_raw_fd).collect();
        let entered: Vec<RawFd> = entrances.iter().map(AsRawFd::as_raw_fd).collect();
        let mut command = Command::new(&self.program);
        command.args([ARGUMENT, "keep", confinement.as_str()]);
        command.args([theirs.as_raw_fd().to_string(), until.to_string(), numbers(&passed), numbers(&entered)]);
        command.args([enforced.rlimit().unwrap_or(0).to_string(), plan.as_raw_fd().to_string()]);
        command.arg(spawn.program).args(spawn.arguments);
        // Neither the variables nor the directory of the agent: until it has confined itself, the supervisor has the
        // rights of the worker.
        command.current_dir("/").env_clear();
        command.stdin(spawn.stdin).stdout(spawn.stdout).stderr(spawn.stderr).process_group(0);
        let inherited = [&[theirs.as_raw_fd(), plan.as_raw_fd()][..], &passed, &entered].concat();
        pre_exec::inherit(&mut command, inherited);
        let exposed = is_exposed.then(|| self.exposure.begin());
        let supervisor = command.spawn()?;
        let control = watch(control, Interest::READABLE)?;
        Ok(Tree {
            env: self.env.clone(),
            supervisor,
            control,
            hold,
            heard: Vec::new(),
            settled: None,
            enforced,
            confined: spawn.sandbox.as_ref().map(Confined::text),
            sandbox: spawn.sandbox,
            own_directory: spawn.own_directory,
            exposed,
            group,
            kills: 0,
            kills_told: 0,
            peak: None,
            in_namespace: has_mounts || confinement != Confinement::Subreaper,
            looked_at: self.env.clock.monotonic(),
            spent: None,
            cpu_before: Duration::ZERO,
            breach: None,
            ended: false,
        })
    }
}

/// A running process tree. Dropping it kills the tree and blocks until it has ended, so async callers use
/// [`Self::kill`] first.
pub(crate) struct Tree {
    env: Env,
    supervisor: Child,
    control: AsyncFd<UnixStream>,
    /// Its registration with the lease watchdog.
    hold: Option<Hold>,
    heard: Vec<u8>,
    /// Its own processes, once it has settled.
    settled: Option<Settled>,
    enforced: Enforced,
    /// How it is confined, as text.
    confined: Option<String>,
    /// Its confinement, until the tree has ended.
    sandbox: Option<Confined>,
    /// Its working directory, if that goes with it.
    own_directory: Option<OwnDirectory>,
    /// Set while it could change packages.
    exposed: Option<Exposed>,
    /// Its control group, until the tree has ended.
    group: Option<Group>,
    /// The number of its processes killed at the memory limit, at the last count and at the last report by
    /// [`Self::breach`].
    kills: u64,
    kills_told: u64,
    /// The most memory that its group used, when the last of them was killed.
    peak: Option<u64>,
    /// True if a second supervisor is inside of the namespaces of the tree.
    in_namespace: bool,
    /// When it was last looked at.
    looked_at: Duration,
    /// What it used until its end.
    spent: Option<Spent>,
    /// The processor time of earlier attempts.
    cpu_before: Duration,
    /// The limit for which it was killed.
    breach: Option<Breach>,
    /// True once the whole tree has ended.
    ended: bool,
}

impl Tree {
    /// How long a supervisor may take to kill its tree before the supervisor itself is killed.
    const END_MAX: Duration = Duration::from_secs(2);

    /// How long a job's report waits for killed processes to disappear. A loaded machine needs some milliseconds.
    const GONE_MAX: Duration = Duration::from_millis(200);

    /// True if the tree may have changed. Otherwise the task is woken when it changes.
    pub(crate) fn poll_changed(&self, cx: &mut Context<'_>) -> bool {
        !self.heard.is_empty() || self.control.poll_read_ready(cx).is_ready()
    }

    /// True if the tree has changed.
    pub(crate) fn has_changed(&self) -> bool {
        let mut fds = [PollFd::new(self.control.get_ref().as_fd(), PollFlags::POLLIN)];
        !self.heard.is_empty() || matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1))
    }

    /// Records the current processes as the tree's own, not those of a job.
    pub(crate) fn settle(&mut self) {
        self.settled = Some(Settled::below(self.root(), self.in_namespace));
    }

    /// Kills the processes that a job left running beside the tree's own ones, and returns them. Does nothing before
    /// the tree has settled. The processes are gone when this returns, unless the system takes longer than
    /// [`Self::GONE_MAX`].
    pub(crate) async fn end_others(&self, asked: &[i32]) -> Vec<Ended> {
        let Some(settled) = &self.settled else { return Vec::new() };
        if settled.is_alone() {
            return Vec::new();
        }
        let kept = left::asked(self.root(), asked);
        let ended = left::end(self.root(), &settled.own.union(&kept).copied().collect());
        let until = self.env.clock.monotonic() + Self::GONE_MAX;
        while ended.iter().any(Ended::is_running) && self.env.clock.monotonic() < until {
            self.env.clock.sleep(Duration::from_millis(1)).await;
        }
        ended
    }

    /// The limits of its contract and how they are enforced.
    pub(crate) fn enforced(&self) -> &Enforced {
        &self.enforced
    }

    /// How it is confined. None if it has the rights of the worker.
    pub(crate) fn confined(&self) -> Option<&str> {
        self.confined.as_deref()
    }

    fn count_kills(&mut self) {
        let Some(group) = &self.group else { return };
        let kills = group.kills();
        if kills > self.kills {
            self.peak = group.peak_bytes();
        }
        self.kills = kills;
    }

    fn root(&self) -> i32 {
        i32::try_from(self.supervisor.id()).unwrap_or(0)
    }

    /// Sets whether an attempt runs in the tree. Between attempts the tree may live without a lease.
    pub(crate) fn set_busy(&self, busy: bool) {
        if let Some(hold) = &self.hold {
            hold.set_busy(busy);
        }
    }

    /// Asks the agent's process group to stop.
    pub(crate) fn terminate(&mut self) {
        // If the supervisor has ended, its tree has ended as well.
        let _ = self.control.get_ref().write_all(&[TERMINATE]);
    }

    /// The next report of the supervisor, without waiting. A supervisor that ended without a report counts as a killed
    /// agent.
    pub(crate) fn change(&mut self) -> Option<Change> {
        let mut bytes = [0; REPORT_BYTES];
        match at_once(&self.control, Interest::READABLE, |mut control| control.read(&mut bytes)) {
            Ok(0) => return Some(Change::Exited(ExitStatus::from_raw(9))),
            Ok(n) => self.heard.extend_from_slice(&bytes[..n]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => return Some(Change::Exited(ExitStatus::from_raw(9))),
        }
        let (change, spent) = self.heard.first_chunk().and_then(Change::from_bytes)?;
        self.spent = Some(spent);
        Some(change)
    }

    /// Waits for a change. False if none came in time.
    pub(crate) async fn wait_for_change(&self, patience: Duration) -> bool {
        let changed = poll_fn(|cx| if self.poll_changed(cx) { Poll::Ready(()) } else { Poll::Pending });
        tokio::select! {
            biased;
            () = changed => true,
            () = self.env.clock.sleep(patience) => false,
        }
    }

    /// Kills the whole tree and waits until it has ended.
    pub(crate) async fn kill(&mut self) {
        if self.ended {
            return;
        }
        let _ = self.control.get_ref().write_all(&[KILL]);
        let until = self.env.clock.monotonic() + Self::END_MAX;
        let mut word = [0; 16];
        // The supervisor closes its socket by exiting.
        loop {
            match at_once(&self.control, Interest::READABLE, |mut control| control.read(&mut word)) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left = until.saturating_sub(self.env.clock.monotonic());
                    if left.is_zero() || !self.wait_for_change(left).await {
                        // A namespace ends with its supervisor.
                        let _ = self.supervisor.kill();
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.reap();
    }

    /// Waits for the end of the supervisor, whose socket is closed or is about to be.
    fn reap(&mut self) {
        let timeout = PollTimeout::try_from(Self::END_MAX).unwrap_or(PollTimeout::MAX);
        let mut word = [0; 16];
        loop {
            match self.control.get_ref().read(&mut word) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut fds = [PollFd::new(self.control.get_ref().as_fd(), PollFlags::POLLIN)];
                    if matches!(poll(&mut fds, timeout), Ok(0)) {
                        let _ = self.supervisor.kill();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let _ = self.supervisor.wait();
        self.count_kills();
        self.group = None;
        self.exposed = None;
        let left = (self.sandbox.take(), self.own_directory.take());
        self.ended = true;
        // An agent may leave many files. Outside of the runtime, which is being stopped then, this thread removes them.
        let has_files = left.1.is_some() || left.0.as_ref().is_some_and(Confined::has_folder);
        if has_files && tokio::runtime::Handle::try_current().is_ok() {
            self.env.spawn_blocking("remove the files of a process tree", move || drop(left));
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.control.get_ref().write_all(&[KILL]);
            self.reap();
        }
    }
}
