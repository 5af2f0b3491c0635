//! What follows for jobs: first what changes who waits, then who is placed.

use atlas_scheduler::Strategy;
use atlas_state::State;
use atlas_types::{ClusterTime, NodeEpoch, NodeId, Request};

use crate::{expire, lose, schedule};

/// What is lost and what is due; grants only when nothing is.
///
/// Losses and back-offs that passed let jobs wait again. A job that is placed on the state before them could pass an older one
/// (reliability B.12), so jobs are placed in the turn after, on the state in which all of them wait.
pub fn follow<'a>(
    state: &State,
    ended: impl IntoIterator<Item = (&'a NodeId, NodeEpoch)>,
    now: ClusterTime,
    strategy: Strategy,
    budget: usize,
) -> Vec<Request> {
    let mut commands = lose(state, ended, budget);
    commands.extend(expire(state, now, budget - commands.len()));
    if commands.is_empty() { schedule(state, strategy, budget) } else { commands }
}
