//! Conversations end: those of connections a day after their last turn, others after the time that the operator sets. The leader removes them,
//! with their messages.

use std::sync::Arc;
use std::time::Duration;

use atlas_desk::{Error, on_behalf};
use atlas_objects::ConversationSpec;
use atlas_raft::Leadership;
use atlas_state::State;
use atlas_types::{Expect, JobId, Object, ObjectKind};

use super::{FORGOTTEN_AFTER, KIND, spec_of};
use crate::Conversations;

/// How often the leader looks for conversations that have expired.
const LOOK_EVERY: Duration = Duration::from_secs(600);
/// Most conversations that are removed at one look.
const AT_ONCE: usize = 500;

/// Removes conversations while this member leads.
pub async fn expire(conversations: Conversations) {
    let mut leadership = conversations.desk.handle.leadership();
    let leads = |leadership: &Leadership| matches!(leadership, Leadership::Leader { .. });
    while leadership.wait_for(leads).await.is_ok() {
        while leads(&leadership.borrow()) {
            if let Err(error) = conversations.expire_conversations().await {
                tracing::debug!(error = &error as &dyn std::error::Error, "could not remove expired conversations");
            }
            conversations.desk.env.clock.sleep(LOOK_EVERY).await;
        }
    }
}

impl Conversations {
    /// Removes the conversations that have expired. Returns how many.
    pub async fn expire_conversations(&self) -> Result<usize, Error> {
        let state = self.desk.handle.applied();
        let kept = self.desk.limits.conversations_kept.map(|kept| kept.as_secs());
        let now = self.seconds();
        let kind = ObjectKind::new(KIND)?;
        let expired = state.objects_of_kind(&kind).filter(|object| {
            let spec = spec_of(object).unwrap_or_default();
            expires_at(&spec, kept).is_some_and(|end| end <= now) && !is_answering(&state, &spec)
        });
        let expired: Vec<Arc<Object>> = expired.take(AT_ONCE).cloned().collect();
        let mut removed = 0;
        for object in expired {
            let caller = on_behalf::cluster_in(object.key.namespace.clone());
            let expect = Expect::Revision(object.revision);
            match self.remove_conversation(&caller, object.key.name.as_str(), expect).await {
                Ok(()) => removed += 1,
                // Somebody continued it, or deleted it.
                Err(Error::ObjectChanged { .. } | Error::UnknownObject(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }
}

/// When a conversation expires, in Unix seconds; none for never. `kept` is the time for those that are not of a connection.
pub(super) fn expires_at(spec: &ConversationSpec, kept: Option<u64>) -> Option<u64> {
    let kept = match spec.scope.as_str() {
        // Nobody can continue it once its session has ended.
        "connection" => Some(kept.unwrap_or(FORGOTTEN_AFTER).min(FORGOTTEN_AFTER)),
        _ => kept,
    };
    kept.map(|kept| spec.updated_at.saturating_add(kept))
}

/// Whether the job of a turn is still to end.
fn is_answering(state: &State, spec: &ConversationSpec) -> bool {
    let job = spec.turn.as_ref().and_then(|turn| turn.job.parse::<JobId>().ok());
    job.and_then(|job| state.job(job)).is_some_and(|job| !job.status.is_terminal())
}
