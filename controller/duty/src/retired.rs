//! Deletes agent versions that were retired long ago, so that they do not count against the limit and keep their packages.

use atlas_state::{State, TimerKey};
use atlas_types::{ClusterTime, Command, DeleteAgent, Micros, Request, level};

use crate::request;

/// Commands that forget versions which were retired `keep` ago at `now` and of which no job is left that has not ended. Of one that
/// was retired below the level nobody knows since when: it stays.
pub fn delete_retired(state: &State, now: ClusterTime, keep: Micros, budget: usize) -> Vec<Request> {
    if state.level() < level::AGENT_DELETION {
        return Vec::new();
    }
    let Some(since) = now.0.checked_sub(keep.0).map(ClusterTime) else { return Vec::new() };
    let unused = state.kept_since(since).filter_map(|timer| match &timer.key {
        TimerKey::RetiredAgent(namespace, name, version) if state.active_of(namespace, name, *version) == 0 => {
            let command = DeleteAgent { name: name.clone(), version: *version };
            Some(request(namespace, Command::DeleteAgent(command)))
        }
        _ => None,
    });
    unused.take(budget).collect()
}
