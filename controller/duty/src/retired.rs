//! Agent versions that were retired long ago are forgotten, or they would count against the limit for ever and keep their packages.

use atlas_state::State;
use atlas_types::{ClusterTime, Command, DeleteAgent, Level, Micros, Request};

use crate::request;

/// The level that knows the command.
const KNOWN_SINCE: Level = Level(5);

/// Commands that forget versions which were retired `keep` ago at `now` and of which no job is left that has not ended. Looks at
/// every version: to be called now and then, not with every entry.
pub fn delete_retired(state: &State, now: ClusterTime, keep: Micros, budget: usize) -> Vec<Request> {
    if state.level() < KNOWN_SINCE {
        return Vec::new();
    }
    let due = state.agents_everywhere().filter(|agent| {
        // Of one that was retired below that level nobody knows since when.
        agent.retired && agent.retired_at.is_some_and(|since| since.plus(keep) <= now)
    });
    let unused = due.filter(|agent| state.active_of(&agent.namespace, &agent.name, agent.version) == 0);
    let command = |name, version| Command::DeleteAgent(DeleteAgent { name, version });
    unused.take(budget).map(|agent| request(&agent.namespace, command(agent.name.clone(), agent.version))).collect()
}
