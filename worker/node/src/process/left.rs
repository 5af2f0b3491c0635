//! Processes that a job left running in a warm program.

use std::collections::BTreeSet;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Processes below one, by number.
pub(super) type Below = BTreeSet<i32>;

/// A process that was ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) pid: i32,
    /// Its command line, or what it calls itself.
    pub(crate) name: String,
}

impl Ended {
    /// Whether the system still runs it: a signal takes effect when the process is scheduled next.
    pub(super) fn is_running(&self) -> bool {
        name_of(self.pid).is_some()
    }
}

/// How often processes are looked for that others started while they were being ended.
const ROUNDS_MAX: usize = 16;

/// Most characters of a name.
const NAME_CHARS_MAX: usize = 120;

/// All processes below `root`, which is not among them.
pub(super) fn below(root: i32) -> Below {
    let mut found = Below::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        next.extend(children(parent).into_iter().filter(|&child| found.insert(child)));
    }
    found
}

/// Ends all processes below `root` but `kept` and Python's own helpers, and tells which.
pub(super) fn end(root: i32, kept: &Below) -> Vec<Ended> {
    let mut ended = Vec::<Ended>::new();
    for _ in 0..ROUNDS_MAX {
        let left: Vec<Ended> = below(root)
            .difference(kept)
            .filter(|&&pid| !ended.iter().any(|known| known.pid == pid))
            .filter_map(|&pid| Some(Ended { pid, name: name_of(pid)? }))
            // It holds what the processes of a job share, and ends with the program.
            .filter(|left| !left.name.contains("multiprocessing.resource_tracker"))
            .collect();
        if left.is_empty() {
            break;
        }
        for process in left {
            // It may have ended by itself meanwhile.
            let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
            ended.push(process);
        }
    }
    ended
}

/// The children of all threads of a process; none if it is gone or the system does not tell.
fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    listed.flat_map(|line| line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// What a process was started as; none if it has ended and is only waited for.
fn name_of(pid: i32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok().filter(|line| !line.is_empty())?;
    let words = line.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let text = words.collect::<Vec<_>>().join(" ");
    Some(text.trim().chars().take(NAME_CHARS_MAX).collect())
}
