//! Takes an agent version out of service. It takes no new jobs; those that have it pinned finish.

use std::sync::Arc;

use atlas_types::{AgentVersion, Outcome, Rejection, RetireAgent};

use crate::change::Change;

pub(super) fn apply(command: &RetireAgent, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let found = change.state.agent(&change.origin.namespace, &command.name, command.version);
    let agent = Arc::clone(found.ok_or(Rejection::UnknownAgent)?);
    if !agent.retired {
        change.put_agent(Arc::new(AgentVersion { retired: true, ..(*agent).clone() }));
    }
    Ok(Outcome::Done)
}
