//! What a process tree uses, from `/proc`: for limits that no control group enforces.
//!
//! A tree can hide the time of a child that it never waits for and that the kernel removes itself (`SIGCHLD` ignored), and memory in
//! files of `/tmp`. A control group sees both.

use std::fs;
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};

use super::left::{Below, below, children};

/// What a tree uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// The memory of its processes now: without files, and shared memory once.
    pub(super) memory_bytes: u64,
    /// The processor time of all its processes so far, ended ones included.
    pub(super) cpu: Duration,
}

impl Usage {
    /// Looks at the tree under the supervisor `root`, which with `in_namespace` has one child, the supervisor in there. The cheap way to count memory counts a page once for each process
    /// that shares it after a fork, so an amount over `memory_max` is counted the exact way. Blocks.
    pub(super) fn of_tree(root: i32, in_namespace: bool, memory_max: Option<u64>) -> Self {
        let mut processes = below(root);
        let inner = if in_namespace { children(root) } else { Vec::new() };
        processes.retain(|pid| !inner.contains(pid));
        // Supervisors collect the time of processes whose parents have ended.
        let collected = inner.iter().chain([&root]).filter_map(|&pid| times_of(pid)).map(|times| times.of_children);
        let running = processes.iter().filter_map(|&pid| times_of(pid)).map(|times| times.own + times.of_children);
        let ticks: u64 = collected.chain(running).sum();
        let mut memory_bytes = memory_max.map_or(0, |_| sum(&processes, |pid| fast(&read(pid, "status")?)));
        if memory_max.is_some_and(|most| memory_bytes > most) {
            let exact = sum(&processes, |pid| exact(&read(pid, "smaps_rollup")?));
            // Zero where this user may not look at them.
            memory_bytes = if exact > 0 { exact } else { memory_bytes };
        }
        Self { memory_bytes, cpu: Duration::from_secs_f64(ticks as f64 / ticks_a_second()) }
    }
}

fn ticks_a_second() -> f64 {
    let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten().filter(|ticks| *ticks > 0);
    ticks.map_or(100.0, |ticks| ticks as f64)
}

fn read(pid: i32, file: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/{file}")).ok()
}

fn sum(processes: &Below, of: impl Fn(i32) -> Option<Memory>) -> u64 {
    let all: Vec<Memory> = processes.iter().filter_map(|&pid| of(pid)).collect();
    let own: u64 = all.iter().map(|memory| memory.own).sum();
    own.saturating_add(all.iter().map(|memory| memory.shared).max().unwrap_or(0))
}

/// The memory of one process in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory {
    own: u64,
    shared: u64,
}

/// From `/proc/PID/status`.
fn fast(status: &str) -> Option<Memory> {
    Some(Memory { own: kilobytes(status, "RssAnon:")?, shared: kilobytes(status, "RssShmem:").unwrap_or(0) })
}

/// From `/proc/PID/smaps_rollup`: a page that n processes share counts as a part of n.
fn exact(rollup: &str) -> Option<Memory> {
    let shared = kilobytes(rollup, "Pss_Shmem:").unwrap_or(0);
    Some(Memory { own: kilobytes(rollup, "Pss_Anon:")?.saturating_add(shared), shared: 0 })
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// The processor time of one process in ticks, and that of its children that it has waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Times {
    own: u64,
    of_children: u64,
}

fn times_of(pid: i32) -> Option<Times> {
    times_in(&read(pid, "stat")?)
}

/// From `/proc/PID/stat`. The second field may contain any character, so fields are counted from its last `)`.
fn times_in(stat: &str) -> Option<Times> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).map(str::parse::<u64>);
    let mut two = || Some(fields.next()?.ok()?.saturating_add(fields.next()?.ok()?));
    Some(Times { own: two()?, of_children: two()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_kernels_text() {
        let status = "Name:\tsh\nVmRSS:\t    9000 kB\nRssAnon:\t    100 kB\nRssFile:\t  7000 kB\nRssShmem:\t 20 kB\n";
        assert_eq!(fast(status), Some(Memory { own: 100 << 10, shared: 20 << 10 }));
        assert_eq!(fast("Name:\tkthreadd\n"), None);
        let rollup = "Rss: 9 kB\nPss_Anon:            40 kB\nPss_File:  1 kB\nPss_Shmem:           8 kB\n";
        assert_eq!(exact(rollup), Some(Memory { own: 48 << 10, shared: 0 }));
        assert_eq!(exact("Pss_Anon: many kB\n"), None);
    }

    #[test]
    fn times_are_counted_behind_any_name() {
        let stat = "7 (a) 1 (b)) S 42 7 7 0 -1 4194560 1 2 3 4 50 6 70 8 20 0 1 0";
        assert_eq!(times_in(stat), Some(Times { own: 56, of_children: 78 }));
        assert_eq!(times_in("7 (sh) R 1 7"), None);
    }

    #[test]
    fn a_tree_uses_memory_and_time() {
        let mut child = std::process::Command::new("sleep").arg("86391").spawn().expect("it starts");
        let own = i32::try_from(std::process::id()).expect("a number");
        let usage = Usage::of_tree(own, false, Some(0));
        assert!(usage.memory_bytes > 0, "{usage:?}");
        assert_eq!(Usage::of_tree(own, false, None).memory_bytes, 0);
        child.kill().expect("its own child");
        child.wait().expect("its own child");
    }
}
