//! The end of a worker: its slots stop, within a time limit.

use std::time::Duration;

use tracing::warn;

use super::{Inbox, Pump};
use crate::attempt::SlotEvent;
use crate::mailbox::Order;

impl Pump {
    /// Ends the slots within a time limit. Remaining programs are killed with this process.
    pub(super) async fn close(self, mut inbox: Inbox) {
        for mailbox in self.mailboxes.values() {
            mailbox.post(Order::Shutdown);
        }
        let patience = self.env.clock.sleep(self.shared.settings.shutdown_timeout + Duration::from_secs(1));
        tokio::pin!(patience);
        let mut left: u32 = self.tasks.values().sum();
        while left > 0 {
            tokio::select! {
                Some(told) = inbox.told.recv() => {
                    if matches!(told, SlotEvent::Gone { .. }) {
                        left -= 1;
                    }
                }
                () = &mut patience => {
                    warn!(slots = left, "slots did not stop in time");
                    return;
                }
            }
        }
    }
}
