//! The order of the tasks on jobs: first those that change which jobs wait, then placement.

use atlas_scheduler::Strategy;
use atlas_state::State;
use atlas_types::{ClusterTime, Request};

use crate::tasks::{Run, Task, UnguardedRun};
use crate::{Sessions, expire, lose, route, schedule};

/// What the tasks for jobs see besides the state.
#[derive(Debug, Clone, Copy)]
pub struct Follow<'s> {
    /// The sessions of workers.
    pub sessions: &'s Sessions,
    /// The cluster's clock.
    pub now: ClusterTime,
    /// How nodes are chosen.
    pub strategy: Strategy,
}

impl Follow<'_> {
    /// What is lost, what is due and what the default orchestrator allows; grants only when nothing is. Each task is run by `run`.
    ///
    /// Losses and backoffs that passed let jobs wait again. A job that is placed on the state before them could pass an older one,
    /// so jobs are placed in the turn after, on the state in which all of them wait.
    pub fn plan(self, run: &mut impl Run, state: &State, budget: usize) -> Vec<Request> {
        let Self { sessions, now, strategy } = self;
        let mut commands = run.run(Task::Lose, || lose(state, sessions, budget));
        let left = budget - commands.len();
        commands.extend(run.run(Task::Expire, || expire(state, now, left)));
        let left = budget - commands.len();
        commands.extend(run.run(Task::Route, || route(state, left)));
        if commands.is_empty() {
            run.run(Task::Schedule, || schedule(state, sessions.away(), strategy, budget))
        } else {
            commands
        }
    }
}

/// [`Follow::plan`] without isolation.
pub fn follow(state: &State, sessions: &Sessions, now: ClusterTime, strategy: Strategy, budget: usize) -> Vec<Request> {
    Follow { sessions, now, strategy }.plan(&mut UnguardedRun, state, budget)
}
