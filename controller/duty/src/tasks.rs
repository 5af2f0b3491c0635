//! Isolates leader tasks: one that panics is paused for a while, and the others run.
//!
//! A leader task is a function of the state, so one that panics does so again until the state has changed. It is tried again
//! after a pause that doubles with each panic in a row.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use atlas_types::Request;

/// Pause after the first panic.
const RETRY_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// What a leader does unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Acknowledges how far history is on disk.
    AcknowledgeHistory,
    /// [`crate::prune`].
    Prune,
    /// [`crate::DownNodes`].
    Forget,
    /// [`crate::delete_retired`].
    DeleteRetired,
    /// [`crate::advance`].
    Advance,
    /// [`crate::lose`].
    Lose,
    /// [`crate::expire`].
    Expire,
    /// [`crate::route`].
    Route,
    /// [`crate::schedule`].
    Schedule,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AcknowledgeHistory => "acknowledge-history",
            Self::Prune => "prune",
            Self::Forget => "forget",
            Self::DeleteRetired => "delete-retired",
            Self::Advance => "advance",
            Self::Lose => "lose",
            Self::Expire => "expire",
            Self::Route => "route",
            Self::Schedule => "schedule",
        })
    }
}

/// How leader tasks are run.
pub trait Run {
    /// Runs a task and returns the commands that it proposes.
    fn run(&mut self, task: Task, work: impl FnOnce() -> Vec<Request>) -> Vec<Request>;
}

/// Runs leader tasks without isolation: a panic reaches the caller.
#[derive(Debug, Clone, Copy)]
pub struct UnguardedRun;

impl Run for UnguardedRun {
    fn run(&mut self, _task: Task, work: impl FnOnce() -> Vec<Request>) -> Vec<Request> {
        work()
    }
}

/// Which tasks panicked, and when they are tried again. Times are of the leader's monotonic clock.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    faults: BTreeMap<Task, Fault>,
    unreported: Vec<TaskPanic>,
}

#[derive(Debug, Clone, Copy)]
struct Fault {
    in_a_row: u32,
    retry_at: Duration,
}

/// A task has panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskPanic {
    pub task: Task,
    /// Panics in a row, this one included.
    pub in_a_row: u32,
    /// The pause before it is tried again.
    pub retry_in: Duration,
}

impl Tasks {
    /// Runs tasks at the monotonic time `now`, each on its own.
    pub fn at(&mut self, now: Duration) -> GuardedRun<'_> {
        GuardedRun { tasks: self, now }
    }

    /// The panics since the last call, to be reported.
    pub fn take_panics(&mut self) -> Vec<TaskPanic> {
        std::mem::take(&mut self.unreported)
    }
}

/// Runs tasks at one time: a panic ends the task that panicked and nothing else.
#[derive(Debug)]
pub struct GuardedRun<'t> {
    tasks: &'t mut Tasks,
    now: Duration,
}

impl Run for GuardedRun<'_> {
    fn run(&mut self, task: Task, work: impl FnOnce() -> Vec<Request>) -> Vec<Request> {
        let before = self.tasks.faults.get(&task).copied();
        if before.is_some_and(|fault| self.now < fault.retry_at) {
            return Vec::new();
        }
        // Tasks read the state and own what they make: nothing is left half-changed.
        if let Ok(commands) = catch_unwind(AssertUnwindSafe(work)) {
            self.tasks.faults.remove(&task);
            return commands;
        }
        let in_a_row = before.map_or(0, |fault| fault.in_a_row).saturating_add(1);
        let retry_in = RETRY_MIN.saturating_mul(1 << (in_a_row - 1).min(16)).min(RETRY_MAX);
        self.tasks.faults.insert(task, Fault { in_a_row, retry_at: self.now + retry_in });
        self.tasks.unreported.push(TaskPanic { task, in_a_row, retry_in });
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use atlas_types::{Command, Namespace, NodeId, RemoveNode};

    use super::*;

    fn proposal() -> Vec<Request> {
        let node = NodeId::new("n1").expect("a name");
        vec![crate::request(&Namespace::default_namespace(), Command::RemoveNode(RemoveNode { node }))]
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_task_that_panics_is_left_out_and_the_others_run() {
        let mut tasks = Tasks::default();
        let mut turn = tasks.at(seconds(10));
        assert_eq!(turn.run(Task::Prune, || panic!("on purpose")), []);
        assert_eq!(turn.run(Task::Schedule, proposal), proposal());
        assert_eq!(turn.run(Task::Prune, || unreachable!("it is tried again too early")), []);
        let reported = [TaskPanic { task: Task::Prune, in_a_row: 1, retry_in: seconds(1) }];
        assert_eq!(tasks.take_panics(), reported);
        assert_eq!(tasks.take_panics(), []);
    }

    #[test]
    fn the_pause_doubles_up_to_a_bound_and_ends_with_a_success() {
        let mut tasks = Tasks::default();
        let mut now = Duration::ZERO;
        let mut pauses = Vec::new();
        for _ in 0..40 {
            tasks.at(now).run(Task::Expire, || panic!("on purpose"));
            let panicked = tasks.take_panics()[0];
            pauses.push(panicked.retry_in.as_secs());
            now += panicked.retry_in;
        }
        assert_eq!(pauses[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pauses.last(), Some(&60));
        assert_eq!(tasks.at(now).run(Task::Expire, proposal), proposal());
        tasks.at(now).run(Task::Expire, || panic!("on purpose"));
        assert_eq!(tasks.take_panics()[0].in_a_row, 1);
    }
}
