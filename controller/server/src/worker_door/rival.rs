//! Workers that ask for a name which another one has: they are refused, and people are told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_service::Error;
use atlas_types::{
    Command, Door as By, Namespace, Node, NodeHealth, NodeId, NoteRival, Origin, Principal, Request, level,
};
use atlas_wire::session::Hello;

use super::admission::Refusal;
use super::{Door, UNKNOWN};
use crate::peer_door::status_of;

/// The pause between two notes about one node. A worker that is refused asks again every few seconds.
const NOTED_PAUSE: Duration = Duration::from_secs(60);

/// When it was noted last that a name is wanted by two workers.
#[derive(Debug, Default)]
pub(super) struct Rivals(Mutex<BTreeMap<NodeId, Duration>>);

impl Rivals {
    /// Whether it is to be noted again at `now`, by a monotonic clock. Only nodes that are registered are asked about, so their number is
    /// bounded.
    fn is_due(&self, node: &NodeId, now: Duration) -> bool {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.retain(|_, at| now.saturating_sub(*at) < NOTED_PAUSE);
        let is_due = !noted.contains_key(node);
        if is_due {
            noted.insert(node.clone(), now);
        }
        is_due
    }
}

impl Door {
    /// Refuses a worker at `address` if another process has its name and renews its session.
    pub(super) async fn check_rival(
        &self,
        hello: &Hello,
        known: Option<&Node>,
        address: &Arc<str>,
    ) -> Result<(), Refusal> {
        let other = known.filter(|known| known.boot_id != hello.boot_id && known.health == NodeHealth::Ready);
        let Some(other) = other else { return Ok(()) };
        let successor = hello.previous == Some(other.boot_id);
        if self.service.handle().session_claim(other.id.clone(), other.epoch, successor).await? {
            return Ok(());
        }
        let holder = self.hub.address(&other.id).unwrap_or_else(|| UNKNOWN.into());
        if self.rivals.is_due(&other.id, self.env.clock.monotonic()) {
            let node = &other.id;
            tracing::warn!(%node, %holder, %address, "two workers want the same name: the second one is refused");
            self.note(NoteRival {
                node: node.clone(),
                epoch: other.epoch,
                address: address.clone(),
                holder: holder.clone(),
            });
        }
        let error = Error::NodeTaken { node: other.id.clone(), holder, address: address.clone() };
        Err(status_of(&error).into())
    }

    /// Records a rival at the node. The worker is refused all the same if that fails.
    fn note(&self, command: NoteRival) {
        let handle = self.service.handle().clone();
        if handle.applied().level() < level::RIVALS {
            return;
        }
        let origin = Origin {
            namespace: Namespace::default_namespace(),
            principal: Principal::cluster(),
            door: By::Worker,
            request_id: None,
            body_hash: 0,
            trace: None,
        };
        let request = Request { origin, command: Command::NoteRival(command) };
        drop(self.env.spawn("note rival", async move {
            if let Err(error) = handle.propose_here(vec![request]).await {
                tracing::debug!(%error, "could not note that two workers want the same name");
            }
        }));
    }
}
