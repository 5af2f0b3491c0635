//! Who belongs to the group, and changes to that.

use atlas_types::{Level, MemberId};
use tokio::sync::oneshot;

use super::Handle;
use crate::local::Input;
use crate::member::{Member, Peer};
use crate::membership::{ChangeError, MembersView};

impl Handle {
    /// The group as this member sees it now. Only the leader's view says how the others keep up.
    pub fn members(&self) -> MembersView {
        self.group.view()
    }

    /// Who this member is, and where it is reached.
    pub fn own(&self) -> Peer {
        self.group.own_peer()
    }

    /// The highest feature level that all members know; nothing unless each of them has reported recently.
    pub fn level_of_all(&self) -> Option<Level> {
        self.group.level_of_all()
    }

    /// Takes a new member in as a learner. A member that is in already stays what it is.
    pub async fn add_learner(&self, member: MemberId, known: Member) -> Result<(), ChangeError> {
        self.group.add_learner(member, known).await
    }

    /// Makes voters of learners that have caught up.
    pub async fn promote(&self, members: &[MemberId]) -> Result<(), ChangeError> {
        self.group.promote(members).await
    }

    /// Removes a member for good: its number is never used again.
    pub async fn remove(&self, member: MemberId) -> Result<(), ChangeError> {
        self.group.remove(member).await
    }

    /// Ends a change that a leader before this one began.
    pub async fn settle(&self) -> Result<(), ChangeError> {
        self.group.settle_in_turn().await
    }

    /// True if the member's log keeps up with this leader's.
    pub fn keeps_up(&self, member: MemberId) -> bool {
        self.group.view().keeps_up(member)
    }

    /// Hands leadership to a voter, by default to the one that is furthest, once what is in flight is applied. Answers with who
    /// leads then and in which term.
    pub async fn transfer_leader(&self, to: Option<MemberId>) -> Result<(MemberId, u64), ChangeError> {
        let (answer, answered) = oneshot::channel();
        self.forward.local.send_urgently(Input::HandOver { to, answer }).map_err(|_| ChangeError::Stopped)?;
        let to = answered.await.unwrap_or(Err(ChangeError::Stopped))?;
        self.group.wait_for_leader(to).await
    }
}
