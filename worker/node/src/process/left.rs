//! Finds and kills processes that a job left running in a warm program.

use std::collections::BTreeSet;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The descendants of a process, by process id.
pub(super) type Below = BTreeSet<i32>;

/// A process that was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) pid: i32,
    /// Its command line, or its own name.
    pub(crate) name: String,
}

impl Ended {
    /// True if the process still exists: a signal takes effect only when the process is scheduled next.
    pub(super) fn is_running(&self) -> bool {
        name_of(self.pid).is_some()
    }
}

/// How often the search is repeated for processes that were started during the kill.
const ROUNDS_MAX: usize = 16;

/// The most characters of a name.
const NAME_CHARS_MAX: usize = 120;

/// All descendants of `root`, without `root` itself.
pub(super) fn below(root: i32) -> Below {
    let mut found = Below::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        next.extend(children(parent).into_iter().filter(|&child| found.insert(child)));
    }
    found
}

/// Kills all descendants of `root` except `kept` and Python's own helpers, and returns the killed ones.
pub(super) fn end(root: i32, kept: &Below) -> Vec<Ended> {
    let mut ended = Vec::<Ended>::new();
    for _ in 0..ROUNDS_MAX {
        let left: Vec<Ended> = below(root)
            .difference(kept)
            .filter(|&&pid| !ended.iter().any(|known| known.pid == pid))
            .filter_map(|&pid| Some(Ended { pid, name: name_of(pid)? }))
            // The resource tracker holds what the processes of a job share, and ends with the program.
            .filter(|left| !left.name.contains("multiprocessing.resource_tracker"))
            .collect();
        if left.is_empty() {
            break;
        }
        for process in left {
            // The process may have ended by itself meanwhile.
            let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
            ended.push(process);
        }
    }
    ended
}

/// The children of all threads of a process. Empty if the process has ended or the system does not report them.
fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    listed.flat_map(|line| line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// The command of a process, or its name while it has none. None if it has ended and is a zombie.
fn name_of(pid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, state) = name_and_state(&stat)?;
    if matches!(state, 'Z' | 'X') {
        return None;
    }
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let text = words.collect::<Vec<_>>().join(" ");
    // A process that is just being replaced by another program has no command for a moment.
    let text = if text.trim().is_empty() { name } else { text.trim() };
    Some(text.chars().take(NAME_CHARS_MAX).collect())
}

/// The second and the third field of `/proc/PID/stat`. The name is in parentheses and can itself contain some.
fn name_and_state(stat: &str) -> Option<(&str, char)> {
    let (before, after) = stat.rsplit_once(')')?;
    Some((before.split_once('(')?.1, after.trim_start().chars().next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_follows_the_last_parenthesis() {
        assert_eq!(name_and_state("12 (sleep) S 1 2"), Some(("sleep", 'S')));
        assert_eq!(name_and_state("12 (a) Z (b) Z 1 2"), Some(("a) Z (b", 'Z')));
        assert_eq!(name_and_state("12 (sleep"), None);
        assert_eq!(name_and_state(""), None);
    }

    #[test]
    fn a_process_without_a_command_has_a_name_until_it_is_a_zombie() {
        let own = std::process::id().cast_signed();
        assert!(name_of(own).is_some_and(|name| !name.is_empty()));
        // Its parent, this process, has not waited for it yet.
        let mut ended = std::process::Command::new("true").spawn().expect("starts");
        let pid = ended.id().cast_signed();
        while name_of(pid).is_some() {
            std::thread::yield_now();
        }
        assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
        ended.wait().expect("has ended");
    }
}
