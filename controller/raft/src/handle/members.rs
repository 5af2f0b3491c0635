//! The members of the group, and changes to the membership.

use atlas_types::{Level, MemberId};
use tokio::sync::oneshot;

use super::Handle;
use crate::local::Input;
use crate::member::{Member, Peer};
use crate::membership::{ChangeError, MembersView};

impl Handle {
    /// The group as this member sees it now. Only the leader knows how far the other members are.
    pub fn members(&self) -> MembersView {
        self.group.view()
    }

    /// This member's number, name and addresses.
    pub fn own(&self) -> Peer {
        self.group.own_peer()
    }

    /// The highest feature level that all members know, or none unless every member has reported recently.
    pub fn level_of_all(&self) -> Option<Level> {
        self.group.level_of_all()
    }

    /// Adds a member as a learner. An existing member keeps its role.
    pub async fn add_learner(&self, member: MemberId, known: Member) -> Result<(), ChangeError> {
        self.group.add_learner(member, known).await
    }

    /// Promotes learners that have caught up to voters.
    pub async fn promote(&self, members: &[MemberId]) -> Result<(), ChangeError> {
        self.group.promote(members).await
    }

    /// Removes a member for good: its number is never used again.
    pub async fn remove(&self, member: MemberId) -> Result<(), ChangeError> {
        self.group.remove(member).await
    }

    /// Completes a membership change that an earlier leader began.
    pub async fn settle(&self) -> Result<(), ChangeError> {
        self.group.settle_in_turn().await
    }

    /// True if the member's log keeps up with this leader's.
    pub fn keeps_up(&self, member: MemberId) -> bool {
        self.group.view().keeps_up(member)
    }

    /// Transfers leadership to a voter once the entries in flight are applied. The default is the voter with the most
    /// of the log. Returns the new leader and its term.
    pub async fn transfer_leader(&self, to: Option<MemberId>) -> Result<(MemberId, u64), ChangeError> {
        let (answer, answered) = oneshot::channel();
        self.forward.local.send_urgently(Input::HandOver { to, answer }).map_err(|_| ChangeError::Stopped)?;
        let to = answered.await.unwrap_or(Err(ChangeError::Stopped))?;
        self.group.wait_for_leader(to).await
    }
}
