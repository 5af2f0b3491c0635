//! The task that keeps the statistics of agents complete.

use std::sync::Arc;
use std::time::Duration;

use atlas_desk::Desk;

use crate::Stats;

/// The pause before totals that could not be read are read again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Keeps the statistics complete: takes the totals of the history at the start, and again whenever events were missed
/// and the history has them.
pub async fn keep(desk: Arc<Desk>, stats: Stats) {
    let (mut synced, mut gaps) = (desk.history.synced(), desk.history.gaps());
    loop {
        stats.begin();
        match desk.history.totals().await {
            Ok(totals) => stats.take(totals),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "could not read the totals of jobs, trying again"
                );
                desk.env.clock.sleep(RETRY_INTERVAL).await;
                continue;
            }
        }
        let was_whole = gaps.borrow_and_update().is_empty();
        let filled = async {
            if was_whole { std::future::pending().await } else { gaps.wait_for(|gaps| gaps.is_empty()).await.is_ok() }
        };
        let has_more = tokio::select! {
            () = stats.events_missed() => {
                let state = desk.handle.applied().event_seq();
                synced.wait_for(|synced| *synced >= state).await.is_ok()
            }
            filled = filled => filled,
        };
        if !has_more {
            // The history has stopped.
            return;
        }
    }
}
