//! The task that follows the log for all streams: it sends changes, and restarts the streams when it may have missed
//! something.

use std::sync::Arc;

use atlas_raft::Leadership;
use tokio::sync::broadcast::error::RecvError;

use super::Door;

/// Runs until the log ends.
pub(super) async fn run(door: Arc<Door>) {
    let handle = door.service.handle();
    let following = Arc::clone(&door);
    let mut batches = handle.subscribe_to(move |batch| following.hub.awaits(batch));
    let mut leadership = handle.leadership();
    loop {
        tokio::select! {
            // A deposed member must not send leases from entries of its successor.
            biased;
            changed = leadership.changed() => {
                if changed.is_err() {
                    return door.hub.hand_over(None);
                }
                let leads = matches!(*leadership.borrow_and_update(), Leadership::Leader { .. });
                if leads {
                    // The member may have lost and regained the leadership unnoticed.
                    door.hub.start_over();
                } else {
                    door.hub.hand_over(door.leader_address().as_deref());
                }
            }
            batch = batches.recv() => match batch {
                Ok(batch) => door.hub.deliver(&batch),
                Err(RecvError::Lagged(entries)) => {
                    tracing::warn!(entries, "fell behind the log, reconnecting every worker");
                    door.hub.start_over();
                }
                Err(RecvError::Closed) => return door.hub.hand_over(None),
            },
        }
    }
}
