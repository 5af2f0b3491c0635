//! Garbage collection: an artifact is removed when neither the state nor history refers to it and no hold exists.
//!
//! The check uses a state that a majority has confirmed, so that an isolated controller removes nothing; history is
//! checked once it has reached that state, and not at all while it has a gap.

use std::sync::Arc;
use std::time::Duration;

use atlas_desk::{Desk, Error};
use atlas_types::Digest;

/// The number of rounds per hold time, so that artifacts are removed soon after their hold ends.
const ROUNDS_PER_HOLD: u32 = 6;
/// The shortest pause between two rounds.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The number of artifacts in one query to the history.
const PAGE: usize = 256;

/// Collects garbage as long as the controller runs.
pub async fn collect(desk: Arc<Desk>) {
    let pause = (desk.artifacts.hold_time() / ROUNDS_PER_HOLD).max(PAUSE_MIN);
    match desk.artifacts.sweep().await {
        Ok(0) => {}
        Ok(files) => tracing::info!(files, "removed incomplete files of an earlier process"),
        Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "could not clean up the artifacts"),
    }
    loop {
        desk.env.clock.sleep(pause).await;
        match collect_once(&desk).await {
            Ok(0) => {}
            Ok(bytes) => {
                tracing::info!(bytes, "removed unreferenced artifacts");
                desk.metrics.artifact_collected.inc_by(bytes);
            }
            Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "could not collect artifacts"),
        }
    }
}

/// Removes artifacts without references. Returns the number of bytes freed.
async fn collect_once(desk: &Desk) -> Result<u64, Error> {
    // Artifacts without a hold are listed before the state is read: an artifact to which only a later state refers
    // has a hold by now.
    let loose = desk.artifacts.loose().await.map_err(Error::Artifact)?;
    if loose.is_empty() {
        return Ok(0);
    }
    let state = desk.read().await?;
    desk.known(state.event_seq()).await?;
    if !desk.history.gaps().borrow().is_empty() {
        return Err(Error::HistoryBehind);
    }
    let loose: Vec<Digest> = loose.into_iter().filter(|digest| !state.refers_to(digest)).collect();
    let mut freed = 0;
    for page in loose.chunks(PAGE) {
        let shown = desk.history.refers(page.to_vec()).await;
        let shown = shown.map_err(|error| Error::internal("read history", &error))?;
        let garbage = page.iter().zip(shown).filter(|(_, shown)| !shown).map(|(digest, _)| *digest);
        freed += desk.artifacts.remove(garbage.collect()).await.map_err(Error::Artifact)?;
    }
    Ok(freed)
}
