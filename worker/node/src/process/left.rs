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

/// Marks in the command lines of Python's own helpers. They serve all jobs of a program and end with it.
const TRACKER: &str = "multiprocessing.resource_tracker";
const FORKSERVER: &str = "multiprocessing.forkserver";

/// All descendants of `root`, without `root` itself.
pub(super) fn below(root: i32) -> Below {
    below_in_order(root).into_iter().collect()
}

/// The same, each after its parent.
pub(super) fn below_in_order(root: i32) -> Vec<i32> {
    let (mut found, mut known) = (Vec::new(), Below::new());
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        let new: Vec<i32> = children(parent).into_iter().filter(|&child| known.insert(child)).collect();
        found.extend_from_slice(&new);
        next.extend(new);
    }
    found
}

/// The descendants of `root` that the program asks to keep, with their own descendants. `ids` are ids as the program sees them.
pub(super) fn asked(root: i32, ids: &[i32]) -> Below {
    if ids.is_empty() {
        return Below::new();
    }
    let named = below(root).into_iter().filter(|&pid| inner_id(pid).is_some_and(|inner| ids.contains(&inner)));
    named.flat_map(|pid| below(pid).into_iter().chain([pid])).collect()
}

/// Kills all descendants of `root` except `kept` and Python's own helpers, and returns the killed ones.
pub(super) fn end(root: i32, kept: &Below) -> Vec<Ended> {
    let mut ended = Vec::<Ended>::new();
    for _ in 0..ROUNDS_MAX {
        let left: Vec<Ended> = below(root)
            .difference(kept)
            .filter(|&&pid| !ended.iter().any(|known| known.pid == pid))
            .filter_map(|&pid| Some(Ended { pid, name: name_of(pid)? }))
            .filter(|left| !is_helper(left))
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
pub(super) fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    listed.flat_map(|line| line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// True of the process that tracks what the processes of a job share, and of the one that forks them. The forked ones have the
/// command line of the latter.
fn is_helper(process: &Ended) -> bool {
    let forks = |name: &str| name.contains(FORKSERVER);
    process.name.contains(TRACKER)
        || (forks(&process.name) && !parent(process.pid).and_then(name_of).is_some_and(|parent| forks(&parent)))
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The id of a process in its own namespace.
fn inner_id(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    ids.map_or(Some(pid), |ids| ids.split_whitespace().next_back()?.parse().ok())
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
    fn only_descendants_can_be_kept() {
        let own = std::process::id().cast_signed();
        assert_eq!(inner_id(own), Some(own));
        let mut child = std::process::Command::new("sleep").arg("3600").spawn().expect("starts");
        let pid = child.id().cast_signed();
        assert_eq!(parent(pid), Some(own));
        assert_eq!(asked(own, &[pid, own, 1]), Below::from([pid]));
        child.kill().expect("it runs");
        child.wait().expect("has ended");
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
