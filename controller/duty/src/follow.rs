//! The order of the tasks on jobs: first those that change which jobs wait, then placement.

use atlas_scheduler::Strategy;
use atlas_state::State;
use atlas_types::{ClusterTime, NodeEpoch, NodeId, Request};

use crate::tasks::{Run, Task, Unguarded};
use crate::{expire, lose, route, schedule};

/// What the tasks for jobs see besides the state.
#[derive(Debug, Clone, Copy)]
pub struct Follow<I> {
    /// The sessions that ended.
    pub ended: I,
    /// The cluster's clock.
    pub now: ClusterTime,
    /// How nodes are chosen.
    pub strategy: Strategy,
}

impl<'a, I: IntoIterator<Item = (&'a NodeId, NodeEpoch)>> Follow<I> {
    /// What is lost, what is due and what the default orchestrator allows; grants only when nothing is. Each task is run by `run`.
    ///
    /// Losses and backoffs that passed let jobs wait again. A job that is placed on the state before them could pass an older one,
    /// so jobs are placed in the turn after, on the state in which all of them wait.
    pub fn plan(self, run: &mut impl Run, state: &State, budget: usize) -> Vec<Request> {
        let Self { ended, now, strategy } = self;
        let mut commands = run.run(Task::Lose, || lose(state, ended, budget));
        let left = budget - commands.len();
        commands.extend(run.run(Task::Expire, || expire(state, now, left)));
        let left = budget - commands.len();
        commands.extend(run.run(Task::Route, || route(state, left)));
        if commands.is_empty() { run.run(Task::Schedule, || schedule(state, strategy, budget)) } else { commands }
    }
}

/// [`Follow::plan`] without isolation.
pub fn follow<'a>(
    state: &State,
    ended: impl IntoIterator<Item = (&'a NodeId, NodeEpoch)>,
    now: ClusterTime,
    strategy: Strategy,
    budget: usize,
) -> Vec<Request> {
    Follow { ended, now, strategy }.plan(&mut Unguarded, state, budget)
}
