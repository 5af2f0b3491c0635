//! Garbage collection: an artifact is removed when neither the state nor history refers to it and no hold exists.
//!
//! The check uses a state that a majority has confirmed, so that an isolated controller removes nothing; history is
//! checked once it has reached that state, and not at all while it has a gap.

use std::sync::Arc;
use std::time::Duration;

use atlas_types::Digest;

use crate::Error;
use crate::service::Shared;

/// Rounds a hold: what is let go is removed soon after.
const ROUNDS_PER_HOLD: u32 = 6;
/// The shortest pause between two rounds.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Artifacts that history is asked about in one go.
const PAGE: usize = 256;

/// Collects garbage as long as the controller runs.
pub(crate) async fn collect(shared: Arc<Shared>) {
    let pause = (shared.artifacts.hold_time() / ROUNDS_PER_HOLD).max(PAUSE_MIN);
    match shared.artifacts.sweep().await {
        Ok(0) => {}
        Ok(files) => tracing::info!(files, "removed incomplete files of an earlier process"),
        Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "could not clean up the artifacts"),
    }
    loop {
        shared.env.clock.sleep(pause).await;
        match shared.collect_once().await {
            Ok(0) => {}
            Ok(bytes) => {
                tracing::info!(bytes, "removed unreferenced artifacts");
                shared.metrics.artifact_collected.inc_by(bytes);
            }
            Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "could not collect artifacts"),
        }
    }
}

impl Shared {
    /// Removes what nothing refers to. How many bytes that freed.
    async fn collect_once(&self) -> Result<u64, Error> {
        // In this order: whatever a later state refers to is held since before now.
        let loose = self.artifacts.loose().await.map_err(Error::Artifact)?;
        if loose.is_empty() {
            return Ok(0);
        }
        let state = self.read().await?;
        self.known(state.event_seq()).await?;
        if !self.history.gaps().borrow().is_empty() {
            return Err(Error::HistoryBehind);
        }
        let loose: Vec<Digest> = loose.into_iter().filter(|digest| !state.refers_to(digest)).collect();
        let mut freed = 0;
        for page in loose.chunks(PAGE) {
            let shown = self.history.refers(page.to_vec()).await;
            let shown = shown.map_err(|error| Error::internal("read history", &error))?;
            let garbage = page.iter().zip(shown).filter(|(_, shown)| !shown).map(|(digest, _)| *digest);
            freed += self.artifacts.remove(garbage.collect()).await.map_err(Error::Artifact)?;
        }
        Ok(freed)
    }
}
