//! The scrub: every artifact is verified once a day, so that damage is found while another controller still has an
//! intact copy.

use std::sync::Arc;
use std::time::Duration;

use atlas_artifacts::ArtifactError;
use atlas_desk::Desk;

/// The duration of one round over all artifacts.
const ROUND: Duration = Duration::from_secs(24 * 3_600);
/// The longest pause between two artifacts, so that new artifacts in a small directory are checked soon.
const PAUSE_MAX: Duration = Duration::from_secs(3_600);
/// The shortest pause. A directory with very many artifacts takes longer than a round.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// Checks one artifact after the other while the controller runs.
pub async fn scrub(desk: Arc<Desk>) {
    loop {
        let here = match desk.artifacts.all().await {
            Ok(here) => here,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "could not check the artifacts");
                Vec::new()
            }
        };
        let pause = ROUND / u32::try_from(here.len()).unwrap_or(u32::MAX).max(1);
        let pause = pause.clamp(PAUSE_MIN, PAUSE_MAX);
        if here.is_empty() {
            desk.env.clock.sleep(pause).await;
        }
        for digest in here {
            desk.env.clock.sleep(pause).await;
            match desk.artifacts.check(digest).await {
                Ok(false) => {}
                Ok(true) => tracing::warn!(%digest, "replaced a damaged artifact with another controller's copy"),
                // The artifact was removed meanwhile, because nothing refers to it any more.
                Err(ArtifactError::Missing(_)) => {}
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "could not check an artifact");
                }
            }
        }
    }
}
