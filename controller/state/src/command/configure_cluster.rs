//! Replaces the replicated configuration. Lower limits refuse what comes; nothing that is there goes, but remembered requests.

use std::sync::Arc;

use atlas_types::{ConfigureCluster, Event, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &ConfigureCluster, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    change.state.config = Arc::new(command.config.clone());
    change.state.dedupe.trim(command.config.dedupe_max);
    change.emit(Event::Configured);
    Ok(Outcome::Done)
}
