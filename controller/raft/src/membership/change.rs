//! Membership changes: one at a time, by joint consensus. A change that would leave fewer than a quorum reachable is
//! refused (B.42).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use atlas_types::MemberId;
use openraft::ChangeMembers;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};

use super::{Group, MembersView, REACHED, Role};
use crate::consensus::Types;
use crate::machine::leader_id;
use crate::member::{Member, Peer};

/// A change that takes longer has no quorum. The caller gets an error, and a leader task completes the change later.
const CHANGE_MAX: Duration = Duration::from_secs(10);
/// A transfer that takes longer has failed.
const TRANSFER_MAX: Duration = Duration::from_secs(5);
/// The interval at which a change checks its conditions: once per heartbeat.
const PAUSE: Duration = Duration::from_millis(50);
/// A learner that lags by no more entries than this has caught up, because a few entries are always in flight.
const LAG_MAX: u64 = 64;

type Changed<T> = Result<T, RaftError<Types, ClientWriteError<Types>>>;

/// True if a change was refused because this leader does not know yet that the previous change is committed.
fn is_under_way<T>(changed: &Changed<T>) -> bool {
    let Err(RaftError::APIError(ClientWriteError::ChangeMembershipError(refused))) = changed else { return false };
    matches!(refused, ChangeMembershipError::InProgress(_))
}

/// Why a change of the membership or of the leader failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// Only the leader can change the membership.
    #[error("this member does not lead")]
    NotLeader {
        /// The leader, if known.
        leader: Option<Peer>,
    },
    /// The cluster has no such member.
    #[error("{member} is not a member of this cluster")]
    UnknownMember {
        /// Its number.
        member: MemberId,
    },
    /// Only a voter can lead.
    #[error("{member} does not vote yet")]
    NotVoter {
        /// Its number.
        member: MemberId,
    },
    /// The member's log is too far behind, or the member does not answer.
    #[error("{member} has not caught up")]
    Behind {
        /// Its number.
        member: MemberId,
    },
    /// The leader cannot remove itself. Leadership must be transferred first.
    #[error("{member} is the leader: transfer leadership first")]
    Leads {
        /// Its number.
        member: MemberId,
    },
    /// A cluster has at least one voter.
    #[error("{member} is the only voter")]
    LastVoter {
        /// Its number.
        member: MemberId,
    },
    /// After the change there would be no quorum.
    #[error("only {reachable} of {voters} voters would be reachable, which is not a quorum")]
    NoQuorum {
        /// Voters after the change.
        voters: usize,
        /// The number of reachable voters after the change.
        reachable: usize,
    },
    /// The change was started and may still complete.
    #[error("the change did not complete in time")]
    Late,
    /// Raft refused the change.
    #[error("raft refused the change: {reason}")]
    Refused {
        /// Why.
        reason: Arc<str>,
    },
    /// The member has stopped.
    #[error("this member has stopped")]
    Stopped,
}

impl MembersView {
    /// True if the log of `member` is nearly up to date. Only the leader knows this.
    pub(crate) fn keeps_up(&self, member: MemberId) -> bool {
        let matched = self.member(member).and_then(|view| view.matched);
        matched.is_some_and(|matched| matched + LAG_MAX >= self.last_index) && self.reachable([&member]) == 1
    }

    /// Refuses `voters` if no majority of them is reachable.
    fn check_quorum(&self, voters: &BTreeSet<MemberId>) -> Result<(), ChangeError> {
        let reachable = self.reachable(voters);
        if reachable > voters.len() / 2 {
            return Ok(());
        }
        Err(ChangeError::NoQuorum { voters: voters.len(), reachable })
    }

    fn voter_set(&self) -> BTreeSet<MemberId> {
        self.voters.iter().flatten().copied().collect()
    }
}

impl Group {
    pub(crate) async fn add_learner(&self, member: MemberId, known: Member) -> Result<(), ChangeError> {
        let _turn = self.changing.lock().await;
        self.settle().await?;
        if self.view().member(member).is_some() {
            return Ok(());
        }
        // Does not wait until the learner has the log: a leader task does that, not the caller.
        self.changed(self.raft.add_learner(member.0, known, false)).await
    }

    pub(crate) async fn promote(&self, members: &[MemberId]) -> Result<(), ChangeError> {
        let _turn = self.changing.lock().await;
        self.settle().await?;
        let view = self.leading()?;
        let mut voters = view.voter_set();
        for &member in members {
            view.member(member).ok_or(ChangeError::UnknownMember { member })?;
            if !view.keeps_up(member) {
                return Err(ChangeError::Behind { member });
            }
            voters.insert(member);
        }
        self.wait_for_quorum(&voters).await?;
        let ids = members.iter().map(|member| member.0).collect();
        self.change(ChangeMembers::AddVoterIds(ids)).await
    }

    pub(crate) async fn remove(&self, member: MemberId) -> Result<(), ChangeError> {
        let _turn = self.changing.lock().await;
        self.settle().await?;
        let view = self.leading()?;
        let found = view.member(member).ok_or(ChangeError::UnknownMember { member })?;
        if found.role == Role::Learner {
            return self.change(ChangeMembers::RemoveNodes(BTreeSet::from([member.0]))).await;
        }
        let mut left = view.voter_set();
        left.remove(&member);
        if left.is_empty() {
            return Err(ChangeError::LastVoter { member });
        }
        if member == self.id() {
            return Err(ChangeError::Leads { member });
        }
        self.wait_for_quorum(&left).await?;
        self.change(ChangeMembers::RemoveVoters(BTreeSet::from([member.0]))).await
    }

    /// Writes the members' current addresses into the membership.
    pub(super) async fn update(&self, members: BTreeMap<u64, Member>) -> Result<(), ChangeError> {
        let _turn = self.changing.lock().await;
        self.settle().await?;
        self.leading()?;
        self.change(ChangeMembers::SetNodes(members)).await
    }

    /// Completes a membership change that an earlier leader began.
    pub(crate) async fn settle_in_turn(&self) -> Result<(), ChangeError> {
        let _turn = self.changing.lock().await;
        self.settle().await
    }

    /// Waits until `to` leads, and returns the term of its leadership.
    pub(crate) async fn wait_for_leader(&self, to: MemberId) -> Result<(MemberId, u64), ChangeError> {
        let raft = self.raft.clone();
        let led = async move {
            let mut metrics = raft.server_metrics();
            loop {
                {
                    let now = metrics.borrow_watched();
                    if now.current_leader == Some(to.0) {
                        return Ok((to, now.vote.leader_id.term));
                    }
                }
                metrics.changed().await.map_err(|_| ChangeError::Stopped)?;
            }
        };
        self.in_time(TRANSFER_MAX, led).await
    }

    /// Leaves a joint membership that remained because leadership changed during a membership change.
    async fn settle(&self) -> Result<(), ChangeError> {
        if self.leading()?.voters.len() < 2 {
            return Ok(());
        }
        self.change(ChangeMembers::AddVoterIds(BTreeSet::new())).await
    }

    /// Refuses `voters` if no majority of them is reachable. A new leader has not heard from the other members yet, so
    /// it waits as long as an answer stays valid before it reports that there is no quorum.
    async fn wait_for_quorum(&self, voters: &BTreeSet<MemberId>) -> Result<(), ChangeError> {
        let until = self.env.clock.monotonic() + REACHED;
        loop {
            let checked = self.leading()?.check_quorum(voters);
            if checked.is_ok() || self.env.clock.monotonic() >= until {
                return checked;
            }
            self.env.clock.sleep(PAUSE).await;
        }
    }

    /// The view of a leader.
    fn leading(&self) -> Result<MembersView, ChangeError> {
        let view = self.view();
        if leader_id(&self.raft).is_some() {
            return Ok(view);
        }
        let leader = view.leader.and_then(|leader| view.member(leader)).map(|view| view.peer.clone());
        Err(ChangeError::NotLeader { leader })
    }

    /// Changes the membership. Members that stop being voters also stop being members.
    ///
    /// A new leader does not know at once that the previous change is committed, and openraft refuses another change
    /// until then. The call is repeated until openraft accepts it.
    async fn change(&self, change: ChangeMembers<u64, Member>) -> Result<(), ChangeError> {
        let until = self.env.clock.monotonic() + REACHED;
        let changed = async {
            loop {
                let changed = self.raft.change_membership(change.clone(), false).await;
                if !is_under_way(&changed) || self.env.clock.monotonic() >= until {
                    return changed;
                }
                self.env.clock.sleep(PAUSE).await;
            }
        };
        self.changed(changed).await
    }

    async fn changed<T>(&self, change: impl Future<Output = Changed<T>>) -> Result<(), ChangeError> {
        let changed = async {
            match change.await {
                Ok(_) => Ok(()),
                Err(RaftError::Fatal(_)) => Err(ChangeError::Stopped),
                Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_))) => {
                    let view = self.view();
                    let leader = view.leader.filter(|leader| *leader != self.id());
                    let leader = leader.and_then(|leader| view.member(leader)).map(|view| view.peer.clone());
                    Err(ChangeError::NotLeader { leader })
                }
                Err(RaftError::APIError(ClientWriteError::LogEntryDiscarded(_))) => Err(ChangeError::Late),
                Err(RaftError::APIError(error)) => Err(ChangeError::Refused { reason: error.to_string().into() }),
            }
        };
        self.in_time(CHANGE_MAX, changed).await
    }

    async fn in_time<T>(
        &self,
        limit: Duration,
        change: impl Future<Output = Result<T, ChangeError>>,
    ) -> Result<T, ChangeError> {
        tokio::select! {
            biased;
            outcome = change => outcome,
            () = self.env.clock.sleep(limit) => Err(ChangeError::Late),
        }
    }
}
