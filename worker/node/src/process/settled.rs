//! The processes of a warm program, held open: whether a job left another one is then known after two short calls for each of them. A
//! walk through `/proc` takes ten for each, and a slow one for each of its threads.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use super::left::{Below, below_in_order, children};

/// The most processes that are held open. A program with more is walked through.
const HELD_MAX: usize = 8;

/// The links of the folder of threads of a process with one: itself, its parent, and the thread.
const LINKS_OF_ONE_THREAD: u64 = 3;

/// A longer list of children may be incomplete after one read.
const LIST_BYTES_MAX: usize = 1_024;

/// A program's own processes.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) own: Below,
    /// Where their children are listed, children before their parents: a process whose parent ends meanwhile becomes a child of one that is
    /// looked at later. None if they cannot be held open.
    held: Option<Vec<Held>>,
}

/// One process.
#[derive(Debug)]
struct Held {
    pid: i32,
    /// Its folder of threads.
    threads: File,
    /// The list of the children of its first thread.
    children: File,
}

impl Settled {
    /// The descendants of the supervisor `root`. With `in_namespace` it has one child, the supervisor in there, and never another one.
    pub(super) fn below(root: i32, in_namespace: bool) -> Self {
        let own = below_in_order(root);
        let watched: Vec<i32> = (!in_namespace).then_some(root).into_iter().chain(own.iter().copied()).rev().collect();
        let held = (watched.len() <= HELD_MAX).then(|| watched.into_iter().map(Held::open).collect()).flatten();
        Self { own: own.into_iter().collect(), held }
    }

    /// True if no process has a child that is not one of these. Otherwise there may be one.
    pub(super) fn is_alone(&self) -> bool {
        let is_alone = |held: &Held| held.has_only(&self.own).unwrap_or(false);
        self.held.as_ref().is_some_and(|held| held.iter().all(is_alone))
    }
}

impl Held {
    fn open(pid: i32) -> Option<Self> {
        let threads = File::open(format!("/proc/{pid}/task")).ok()?;
        let children = File::open(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        Some(Self { pid, threads, children })
    }

    /// Whether its children are among `own`. None if it has ended.
    fn has_only(&self, own: &Below) -> Option<bool> {
        // An ended process has no thread, and its list is empty.
        let links = self.threads.metadata().ok()?.nlink();
        if links < LINKS_OF_ONE_THREAD {
            return None;
        }
        if links > LINKS_OF_ONE_THREAD {
            return Some(children(self.pid).iter().all(|pid| own.contains(pid)));
        }
        let mut list = [0; LIST_BYTES_MAX];
        let bytes = self.children.read_at(&mut list, 0).ok().filter(|&bytes| bytes < LIST_BYTES_MAX)?;
        let list = std::str::from_utf8(&list[..bytes]).ok()?;
        Some(list.split_whitespace().all(|pid| pid.parse().is_ok_and(|pid| own.contains(&pid))))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};

    use super::super::left::{below, end};
    use super::*;

    /// A shell that reads lines, with a process that it has started, and its id. With `inside`, the shell is a child of that one.
    fn shell(inside: bool) -> (Child, i32) {
        let mut command = Command::new("sh");
        if inside {
            command.args(["-c", "sh; true"]);
        }
        let mut shell = command.stdin(Stdio::piped()).spawn().expect("starts");
        let pid = shell.id().cast_signed();
        say(&mut shell, "sleep 86391 &");
        while below(pid).len() < 1 + usize::from(inside) {
            std::thread::yield_now();
        }
        (shell, pid)
    }

    fn say(shell: &mut Child, line: &str) {
        writeln!(shell.stdin.as_mut().expect("piped"), "{line}").expect("it reads");
    }

    fn stop(mut shell: Child, pid: i32) {
        end(pid, &Below::new());
        shell.kill().expect("its own child");
        shell.wait().expect("its own child");
    }

    #[test]
    fn another_process_is_seen() {
        for inside in [false, true] {
            let (mut shell, pid) = shell(inside);
            let settled = Settled::below(pid, inside);
            assert!(settled.is_alone(), "{settled:?}");
            say(&mut shell, "sleep 86392 &");
            while settled.is_alone() {
                std::thread::yield_now();
            }
            stop(shell, pid);
        }
    }

    #[test]
    fn a_program_that_ended_is_not_alone() {
        let (shell, pid) = shell(false);
        let settled = Settled::below(pid, false);
        stop(shell, pid);
        assert!(!settled.is_alone());
    }

    /// How often this thread has read before.
    fn reads() -> Option<u64> {
        let mut text = [0; 512];
        let bytes = File::open("/proc/thread-self/io").ok()?.read(&mut text).ok()?;
        let text = std::str::from_utf8(&text[..bytes]).ok()?;
        text.lines().find_map(|line| line.strip_prefix("syscr: ")?.parse().ok())
    }

    #[test]
    fn a_look_is_one_read_for_each_process() {
        let (shell, pid) = shell(false);
        let settled = Settled::below(pid, false);
        let before = reads();
        assert!(settled.is_alone());
        match before.zip(reads()) {
            // The first look at the count is itself a read.
            Some((before, after)) => assert_eq!(after - before, 1 + 2),
            None => atlas_notice::skip("this kernel does not count reads"),
        }
        stop(shell, pid);
    }
}
