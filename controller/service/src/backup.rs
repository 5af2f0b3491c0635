//! The contents of a backup: a state, the history up to its last event, and the artifacts that either of them names.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use atlas_state::State;
use atlas_types::{Digest, EventSeq};

use crate::Error;
use crate::service::{Consistency, Service};

/// Longest wait for the history to come as far as the state.
const HISTORY_MAX: Duration = Duration::from_secs(30);

/// Digests read from the history at once.
const DIGESTS: usize = 4_096;

/// What a backup is made of. Artifacts are read one by one while it is written.
#[derive(Debug, Clone)]
pub struct Backup {
    /// Everything that was acknowledged before it was asked for.
    pub state: State,
    /// What state and history name.
    pub artifacts: BTreeSet<Digest>,
}

impl Service {
    /// Collects a backup on any controller, and writes the history that belongs to its state to a new file.
    ///
    /// The state comes first and the history after it: a job leaves the state only once histories have it, so whatever the state has
    /// dropped is in the copy. What ended behind the state is cut off: in the state it has not ended.
    pub async fn backup(&self, history_copy: PathBuf) -> Result<Backup, Error> {
        let state = self.state(Consistency::Linearizable).await?;
        let through = state.event_seq();
        let history = &self.shared.history;
        let mut synced = history.synced();
        let reached = async { synced.wait_for(|synced| *synced >= through).await.is_ok() };
        if !tokio::time::timeout(HISTORY_MAX, reached).await.unwrap_or(false) {
            return Err(Error::NoBackup("the history of this controller is behind"));
        }
        if !history.gaps().borrow().is_empty() {
            return Err(Error::NoBackup("this controller is still fetching missed history"));
        }
        let failed = |error| Error::internal("copy the history", &error);
        history.copy(history_copy, through).await.map_err(failed)?;
        let mut artifacts: BTreeSet<Digest> = state.artifacts().collect();
        let mut after = EventSeq(0);
        loop {
            let found = history.artifacts(after, DIGESTS).await.map_err(failed)?;
            let Some((last, _)) = found.last() else { break };
            after = *last;
            artifacts.extend(found.iter().filter(|(event, _)| *event <= through).map(|(_, digest)| *digest));
            if after >= through {
                break;
            }
        }
        Ok(Backup { state, artifacts })
    }
}
