//! The supervisor's side: a small single-threaded process between the worker and one agent's process tree.
//!
//! On the control socket the worker writes [`TERMINATE`], [`KILL`] and [`UNTIL`]; the supervisor writes one [`super::Change`] and exits.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atlas_sandbox::{ConfinementStep, FailedStep, Guard, Means, Sandbox};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::resource::{Resource, UsageWho, getrusage, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getgid, getpid, getuid};

use super::plan::Plan;
use super::report::{Change, Spent};
use super::watchdog::UNTIL;
use super::{Confinement, pre_exec};

/// The hidden first argument that makes this program a supervisor.
pub(super) const ARGUMENT: &str = "__atlas-keeper";

/// A request to stop the agent's process group.
pub(super) const TERMINATE: u8 = b't';

/// A request to kill the whole tree at once.
pub(super) const KILL: u8 = b'k';

static CAPABLE: AtomicBool = AtomicBool::new(false);

/// True if this program's `main` calls [`run_if_asked`], so that it can be started again as a supervisor.
pub(super) fn capable() -> bool {
    CAPABLE.load(Ordering::Relaxed)
}

/// Runs as a supervisor and exits, if this process was started as one. Every program that embeds a worker must call
/// this first in `main`, before it starts a thread.
pub fn run_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != ARGUMENT) {
        CAPABLE.store(true, Ordering::Relaxed);
        return;
    }
    atlas_env::huge_pages_as_the_system_does();
    let ended = Orders::parse(arguments).map(|orders| match orders {
        Orders::Probe(confinement) => probe(confinement).is_ok(),
        Orders::Guard(confinement, folder) => probe_guard(confinement, &folder).is_ok(),
        Orders::Means => tell_means().is_ok(),
        Orders::Enter(groups) => groups.iter().all(|group| nix::unistd::write(group, b"0").is_ok()),
        Orders::Keep(keep) => keep.run().is_ok(),
    });
    std::process::exit(if ended == Some(true) { 0 } else { 1 });
}

enum Orders {
    Probe(Confinement),
    /// Tries to keep a folder as it is.
    Guard(Confinement, PathBuf),
    /// Says on standard output what this machine offers for sandboxes.
    Means,
    /// Tries to enter control groups.
    Enter(Vec<OwnedFd>),
    Keep(Box<Keep>),
}

struct Keep {
    confinement: Confinement,
    control: OwnedFd,
    /// The latest time at which the tree is killed, as in [`UNTIL`].
    until: u64,
    /// Descriptors that only the agent inherits.
    passed: Vec<RawFd>,
    /// The process files of the control groups that the agent enters.
    groups: Vec<OwnedFd>,
    /// The memory rlimit of each process; 0 for no limit.
    memory_max: u64,
    plan: Plan,
    program: OsString,
    arguments: Vec<OsString>,
}

impl Orders {
    /// `probe MODE`, `guard MODE FOLDER`, `means`, `enter FD,FD…`, or `keep MODE CONTROL UNTIL FD,FD… FD,FD… MEMORY PLAN PROGRAM ARGUMENT…`.
    fn parse(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut word = || arguments.next()?.into_string().ok();
        let verb = word()?;
        if verb == "enter" {
            return Some(Self::Enter(adopt_all(&word()?)?));
        }
        if verb == "means" {
            return Some(Self::Means);
        }
        let confinement = Confinement::parse(&word()?)?;
        if verb == "probe" {
            return Some(Self::Probe(confinement));
        }
        if verb == "guard" {
            return Some(Self::Guard(confinement, arguments.next()?.into()));
        }
        let control = pre_exec::adopt(word()?.parse().ok()?).ok()?;
        let until = word()?.parse().ok()?;
        let passed = numbers(&word()?)?;
        let groups = adopt_all(&word()?)?;
        let memory_max = word()?.parse().ok()?;
        let plan = Plan::read(pre_exec::adopt(word()?.parse().ok()?).ok()?)?;
        let program = arguments.next()?;
        Some(Self::Keep(Box::new(Keep {
            confinement,
            control,
            until,
            passed,
            groups,
            memory_max,
            plan,
            program,
            arguments: arguments.collect(),
        })))
    }
}

/// Parses descriptor numbers, such as `5,6`.
fn numbers(list: &str) -> Option<Vec<RawFd>> {
    list.split(',').filter(|fd| !fd.is_empty()).map(|fd| fd.parse().ok()).collect()
}

fn adopt_all(list: &str) -> Option<Vec<OwnedFd>> {
    numbers(list)?.into_iter().map(|fd| pre_exec::adopt(fd).ok()).collect()
}

/// Succeeds if a tree can be contained in this way on this machine.
fn probe(confinement: Confinement) -> nix::Result<()> {
    if confinement == Confinement::Subreaper {
        return prctl::set_child_subreaper(true);
    }
    enter_namespaces(confinement, false)?;
    match pre_exec::fork()? {
        None => std::process::exit(if getpid() == Pid::from_raw(1) { 0 } else { 1 }),
        Some(child) => match waitpid(child, None)? {
            WaitStatus::Exited(_, 0) => Ok(()),
            _ => Err(Errno::EPERM),
        },
    }
}

/// Succeeds if a folder, in which this user may write, can be kept as it is for the trees of this way.
fn probe_guard(confinement: Confinement, folder: &Path) -> nix::Result<()> {
    enter_namespaces(confinement, true)?;
    let file = folder.join(format!("probe-{}", getpid()));
    let kept = in_child(|| {
        let guard = Guard { code: vec![folder.to_owned()], ..Guard::default() };
        guard.apply().is_ok() && fs::write(&file, "").is_err()
    });
    let _ = fs::remove_file(&file);
    if kept { Ok(()) } else { Err(Errno::EPERM) }
}

/// Copies a package: its files, and whether they can be executed. Links are left out, as packages have none.
fn copy_package(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            fs::create_dir(&target)?;
            copy_package(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
            // The package is read-only, and its copy is not.
            let mode = if entry.metadata()?.permissions().mode() & 0o111 == 0 { 0o644 } else { 0o755 };
            fs::set_permissions(&target, fs::Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

/// Prints what this machine offers, as JSON.
fn tell_means() -> nix::Result<()> {
    let means = Means::probe(|sandbox| in_child(|| sandbox.enter().is_ok() && in_child(|| sandbox.confine().is_ok())));
    let text = serde_json::to_string(&means).map_err(|_| Errno::EINVAL)?;
    std::io::stdout().write_all(text.as_bytes()).map_err(|_| Errno::EPIPE)
}

/// True if `work` succeeds in a child of this process.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    match pre_exec::fork() {
        Ok(None) => std::process::exit(if work() { 0 } else { 1 }),
        Ok(Some(child)) => matches!(waitpid(child, None), Ok(WaitStatus::Exited(_, 0))),
        Err(_) => false,
    }
}

/// Makes the next child the first process of a new PID namespace, with mounts of its own if they are asked for.
fn enter_namespaces(confinement: Confinement, mounts: bool) -> nix::Result<()> {
    let mut flags = CloneFlags::CLONE_NEWPID;
    flags.set(CloneFlags::CLONE_NEWNS, mounts);
    if confinement == Confinement::PidNamespace {
        return unshare(flags);
    }
    let (uid, gid) = (getuid(), getgid());
    unshare(flags | CloneFlags::CLONE_NEWUSER)?;
    atlas_sandbox::map_user(uid, gid)
}

impl Keep {
    fn run(self) -> nix::Result<()> {
        if let Some(package) = &self.plan.package
            && let Err(error) = copy_package(package, &self.plan.directory)
        {
            let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
            return self.refuse(FailedStep { step: ConfinementStep::Package, errno });
        }
        let own = self.plan.sandbox.as_ref().filter(|sandbox| sandbox.means.namespaces.is_some());
        if let Some(sandbox) = own {
            if let Err(refused) = sandbox.enter() {
                return self.refuse(refused);
            }
        } else if self.confinement == Confinement::Subreaper {
            prctl::set_child_subreaper(true)?;
            return self.hold();
        } else {
            enter_namespaces(self.confinement, self.plan.guard.is_some())?;
        }
        match pre_exec::fork()? {
            // The first process of the namespace. When it ends, the kernel kills the others.
            None => {
                prctl::set_pdeathsig(Signal::SIGKILL)?;
                self.hold()
            }
            Some(init) => {
                self.let_go();
                loop {
                    match waitpid(init, None) {
                        Err(Errno::EINTR) => {}
                        other => return other.map(drop),
                    }
                }
            }
        }
    }

    /// Reports that the agent was not started because it could not be confined.
    fn refuse(self, refused: FailedStep) -> nix::Result<()> {
        let change = Change::NotConfined(refused);
        // If the worker has ended, there is no one to report to.
        let _ = UnixStream::from(self.control).write_all(&change.to_bytes(Spent::default()));
        Ok(())
    }

    /// Closes the agent's descriptors in this process, so that only the agent's tree keeps its pipes open.
    fn let_go(&self) {
        if let Ok(null) = fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
            // If this fails, the worker only sees the end of file later. The result stays correct.
            let _ = nix::unistd::dup2_stdin(&null);
            let _ = nix::unistd::dup2_stdout(&null);
            let _ = nix::unistd::dup2_stderr(&null);
        }
        for &fd in &self.passed {
            drop(pre_exec::adopt(fd));
        }
    }

    fn hold(mut self) -> nix::Result<()> {
        let mut children = SigSet::empty();
        children.add(Signal::SIGCHLD);
        let signals = SignalFd::with_flags(&children, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let end = End::new(self.until)?;
        if self.memory_max > 0 {
            // The agent inherits the limit. This process needs very little memory.
            setrlimit(Resource::RLIMIT_DATA, self.memory_max, self.memory_max)?;
        }
        let guarded = self.plan.guard.as_ref().map_or(Ok(()), Guard::apply);
        if let Err(refused) = guarded.and_then(|()| self.plan.sandbox.as_ref().map_or(Ok(()), Sandbox::confine)) {
            return self.refuse(refused);
        }
        let environment = std::mem::take(&mut self.plan.environment);
        let mut agent = Command::new(&self.program);
        agent
            .args(&self.arguments)
            .process_group(0)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)));
        if self.plan.sandbox.is_none() {
            agent.current_dir(&self.plan.directory);
        }
        // Only the agent enters the groups: a limit that kills the agent must not kill this process, which reports the
        // agent's end.
        let groups = std::mem::take(&mut self.groups);
        if !groups.is_empty() {
            pre_exec::enter(&mut agent, groups);
        }
        let spawned = agent.spawn();
        // Only now, because the agent inherits blocked signals: a shell would wait forever for its children. Ends before this are
        // found by the first look at the children.
        children.thread_block()?;
        self.let_go();
        let mut control = UnixStream::from(self.control);
        let agent = match spawned {
            Ok(child) => Pid::from_raw(i32::try_from(child.id()).map_err(|_| Errno::EINVAL)?),
            Err(error) => {
                let change = Change::NotStarted { errno: error.raw_os_error().unwrap_or(0) };
                // If the worker has ended, there is no one to report to.
                let _ = control.write_all(&change.to_bytes(Spent::default()));
                return Ok(());
            }
        };
        let in_namespace = self.confinement != Confinement::Subreaper
            || self.plan.sandbox.as_ref().is_some_and(|sandbox| sandbox.means.namespaces.is_some());
        let tree = Held { in_namespace, agent };
        let ended = tree.wait(&mut control, &signals, &end)?;
        tree.end();
        if let Some(status) = ended {
            let _ = control.write_all(&Change::Exited(status).to_bytes(spent()));
        }
        if !ended.is_some_and(|status| status.success()) {
            children.thread_unblock()?;
            follow(&self.plan.after, environment);
        }
        Ok(())
    }
}

/// What the processes of the tree used that have been waited for.
fn spent() -> Spent {
    let used = |who| getrusage(who).ok();
    let (Some(tree), Some(own)) = (used(UsageWho::RUSAGE_CHILDREN), used(UsageWho::RUSAGE_SELF)) else {
        return Spent::default();
    };
    let micros = |time: nix::sys::time::TimeVal| u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or(0);
    let cpu = Duration::from_micros(micros(tree.user_time()) + micros(tree.system_time()));
    // A new process begins with what this one uses, until it runs another program: such an amount says nothing.
    let peak = Some(tree.max_rss()).filter(|&peak| peak > own.max_rss()).and_then(|peak| u64::try_from(peak).ok());
    Spent { cpu, peak_bytes: peak.unwrap_or(0).saturating_mul(1 << 10) }
}

/// Starts the program that follows a tree, if there is one. Nothing waits for it: this process ends.
fn follow(words: &[OsString], environment: Vec<(OsString, OsString)>) {
    let Some((program, arguments)) = words.split_first() else { return };
    let mut command = Command::new(program);
    command.args(arguments).process_group(0).env_clear().envs(environment);
    // If it cannot be started, there is no one to tell. What it would have done is done at the worker's next start.
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

/// The timer for the end of the tree. It uses the same clock as the worker's leases.
struct End(TimerFd);

impl End {
    fn new(until: u64) -> nix::Result<Self> {
        let end = Self(TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?);
        end.set(until)?;
        Ok(end)
    }

    /// Sets the end in nanoseconds since boot; 0 for never.
    fn set(&self, until: u64) -> nix::Result<()> {
        if until == 0 {
            return self.0.unset();
        }
        let until = Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(until)));
        self.0.set(until, TimerSetTimeFlags::TFD_TIMER_ABSTIME)
    }
}

struct Held {
    /// The kernel kills the tree with this process.
    in_namespace: bool,
    agent: Pid,
}

impl Held {
    /// Waits for the agent's end. None if the tree must be killed.
    fn wait(&self, control: &mut UnixStream, signals: &SignalFd, end: &End) -> nix::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.reap() {
                return Ok(Some(status));
            }
            let mut fds =
                [signals.as_fd(), control.as_fd(), end.0.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error),
            }
            let [_, asked, over] = fds.map(|fd| fd.any().unwrap_or(false));
            while let Ok(Some(_)) = signals.read_signal() {}
            if asked {
                let mut order = [0];
                match control.read(&mut order) {
                    Ok(1) if order[0] == TERMINATE => {
                        // The process group may have ended already. Its end is reaped above.
                        let _ = killpg(self.agent, Signal::SIGTERM);
                    }
                    Ok(1) if order[0] == UNTIL => {
                        let mut until = [0; 8];
                        control.read_exact(&mut until).map_err(|_| Errno::EIO)?;
                        end.set(u64::from_be_bytes(until))?;
                    }
                    _ => return Ok(None),
                }
            } else if over {
                // Checked last, because a later end that was received in time counts.
                return Ok(None);
            }
        }
    }

    /// Reaps all ended children and returns the agent's exit status.
    fn reap(&self) -> Option<ExitStatus> {
        let mut agent = None;
        loop {
            match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == self.agent => {
                    agent = Some(ExitStatus::from_raw((code & 0xff) << 8));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.agent => {
                    agent = Some(ExitStatus::from_raw(signal as i32));
                }
                Ok(WaitStatus::StillAlive) | Err(_) => return agent,
                Ok(_) => {}
            }
        }
    }

    /// Kills all remaining processes. With a namespace, the kernel does this when this process ends.
    fn end(&self) {
        if self.in_namespace {
            return;
        }
        loop {
            for pid in descendants() {
                // The process may have ended by itself meanwhile.
                let _ = kill(pid, Signal::SIGKILL);
            }
            match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Err(_) => return, // no child is left, and as the subreaper every orphan would be one
                Ok(WaitStatus::StillAlive) => {
                    let _ = poll(&mut [], PollTimeout::from(1_u8));
                }
                Ok(_) => {}
            }
        }
    }
}

/// All descendants of this process, from `/proc`.
fn descendants() -> Vec<Pid> {
    let parents: Vec<(i32, i32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| Some((pid, parent_of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?)))
        .collect();
    let mut below = vec![getpid().as_raw()];
    let mut next = 0;
    while let Some(&parent) = below.get(next) {
        below.extend(parents.iter().filter(|&&(_, p)| p == parent).map(|&(pid, _)| pid));
        next += 1;
    }
    below.into_iter().skip(1).map(Pid::from_raw).collect()
}

/// The parent in a line of `/proc/PID/stat`. The command's name before it may contain any character, so fields are
/// counted from its last `)`.
fn parent_of(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_process_name_does_not_hide_its_parent() {
        assert_eq!(parent_of("7 (a) 1 (b)) S 42 7 7 0"), Some(42));
        assert_eq!(parent_of("7 (sh) R 1 7"), Some(1));
        assert_eq!(parent_of("garbage"), None);
    }
}
