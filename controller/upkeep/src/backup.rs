//! The contents of a backup: a state, the history up to the state's last event, and the artifacts that either of them
//! refers to.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use atlas_desk::{Consistency, Desk, Error};
use atlas_state::State;
use atlas_types::{Digest, EventSeq};

/// The time limit for the history to reach the state's last event.
const HISTORY_MAX: Duration = Duration::from_secs(30);

/// The number of digests read from the history at once.
const DIGESTS: usize = 4_096;

/// The contents of a backup. Artifacts are read one by one while the backup is written.
#[derive(Debug, Clone)]
pub struct Backup {
    /// The state with everything that was acknowledged before the request.
    pub state: State,
    /// The artifacts that the state and the history refer to.
    pub artifacts: BTreeSet<Digest>,
}

/// Collects a backup on any controller, and writes the matching history to a new file.
///
/// The state is taken before the history. A job leaves the state only once histories have it, so the copy contains
/// all jobs that the state no longer has. Jobs that ended after the state was taken are removed from the copy,
/// because they have not ended in the state.
pub async fn backup(desk: &Desk, history_copy: PathBuf) -> Result<Backup, Error> {
    let state = desk.state(Consistency::Linearizable).await?;
    let through = state.event_seq();
    let history = &desk.history;
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
