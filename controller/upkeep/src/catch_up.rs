//! Catching up: a history that missed events fetches them from the other members, part by part.

use std::sync::Arc;
use std::time::Duration;

use atlas_desk::Desk;
use atlas_history::{Gap, HistoryError};

/// The pause before members that had no data or did not answer are asked again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The result of one attempt to fill a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tried {
    /// The gap became smaller.
    Filled,
    /// No member could help for now.
    Waits,
    /// No member has the events. The gap was abandoned.
    GivenUp,
}

/// Fills the gaps of this controller's history while the controller runs. Each part is on disk before the next is
/// requested, so that a restart continues where it stopped.
pub async fn catch_up(desk: Arc<Desk>) {
    let mut gaps = desk.history.gaps();
    loop {
        let (first, missing) = {
            let gaps = gaps.borrow_and_update();
            (gaps.first().copied(), gaps.iter().map(|gap| gap.through.0 - gap.after.0).sum::<u64>())
        };
        desk.metrics.history_gap.set(i64::try_from(missing).unwrap_or(i64::MAX));
        let Some(gap) = first else {
            if gaps.changed().await.is_err() {
                return;
            }
            continue;
        };
        match fill(&desk, gap).await {
            Ok(Tried::Filled) => {}
            Ok(Tried::GivenUp) => {
                tracing::warn!(after = %gap.after, through = %gap.through, "events that no member has are skipped");
            }
            Ok(Tried::Waits) => desk.env.clock.sleep(RETRY_INTERVAL).await,
            Err(HistoryError::Stopped) => return,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "could not fill the history, trying again");
                desk.env.clock.sleep(RETRY_INTERVAL).await;
            }
        }
    }
}

/// Fills the beginning of a gap from the first member that has the events.
async fn fill(desk: &Desk, gap: Gap) -> Result<Tried, HistoryError> {
    let mut all_lack_it = true;
    for member in desk.peers.group().others_by_use() {
        match desk.peers.history(member, gap).await {
            Ok(part) if part.reached > gap.after => match desk.history.fill(gap, part).await {
                Ok(()) => return Ok(Tried::Filled),
                Err(error @ (HistoryError::Part(_) | HistoryError::Record(_) | HistoryError::Field(_))) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, %member, "a part of a member's history was refused");
                    all_lack_it = false;
                }
                Err(error) => return Err(error),
            },
            // The member may only be behind.
            Ok(part) => all_lack_it &= part.known >= gap.through,
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "could not read a member's history");
                all_lack_it = false;
            }
        }
    }
    if !all_lack_it {
        return Ok(Tried::Waits);
    }
    desk.history.give_up(gap).await?;
    Ok(Tried::GivenUp)
}
