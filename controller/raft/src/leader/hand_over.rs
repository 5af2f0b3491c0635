//! Handing leadership over: entries in flight are applied first, nothing new is planned, and the next leader has the whole log.

use std::time::Duration;

use atlas_env::Clock;
use atlas_types::MemberId;
use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver;
use openraft::raft::VoteRequest;
use tokio::sync::oneshot;

use super::lead;
use crate::consensus::body::{raft_log_id, raft_vote};
use crate::consensus::{LeaderId, Types};
use crate::machine::{Raft, leader_id};
use crate::membership::{ChangeError, REACHED};
use atlas_log::{Log, Vote};

/// How long the next leader may take to receive the whole log. Nothing is planned meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the next leader may then take to be elected, which needs one round of votes.
const HANDED_MAX: Duration = Duration::from_secs(1);

pub(crate) type Answer = oneshot::Sender<Result<MemberId, ChangeError>>;

/// A requested hand-over.
pub(super) struct HandOver {
    to: Option<MemberId>,
    answer: Option<Answer>,
    since: Duration,
}

impl HandOver {
    /// Begins at a monotonic time.
    pub(super) fn new(to: Option<MemberId>, answer: Answer, since: Duration) -> Self {
        Self { to, answer: Some(answer), since }
    }

    /// Hands over leadership once the next leader is ready. Called while nothing is in flight. False if there is no
    /// more to wait for, and this member then continues to lead.
    pub(super) async fn advance(&mut self, raft: &Raft, now: Duration) -> bool {
        let waited = now.saturating_sub(self.since);
        let Some(answer) = self.answer.take() else { return waited < HANDED_MAX };
        match next(raft, self.to) {
            Ok(next) => {
                // If this member has stopped, the transfer fails and the leader loop ends by itself.
                let _ = raft.trigger().transfer_leader(next.0).await;
                tracing::info!(%next, "handing over leadership");
                self.since = now;
                // The caller may have given up.
                let _ = answer.send(Ok(next));
                true
            }
            Err(ChangeError::Behind { .. }) if waited < PATIENCE => {
                self.answer = Some(answer);
                true
            }
            Err(error) => {
                let _ = answer.send(Err(error));
                false
            }
        }
    }
}

/// Ends a hand-over that no member takes up. openraft lets a leader that hands over write nothing more. After a while
/// this member becomes a follower in the next term, and can be elected again like every other voter.
pub(super) async fn end(raft: &Raft, log: &Log, leader: LeaderId, clock: &dyn Clock) {
    tokio::select! {
        biased;
        _ = lead::lost(raft.clone(), leader) => return,
        () = clock.sleep(HANDED_MAX) => {}
    }
    if leader_id(raft) != Some(leader) {
        return;
    }
    tracing::warn!(term = leader.term, "no member took over leadership in time; the handover is abandoned");
    let last = log.bounds().1.map(raft_log_id);
    // A vote for a candidate that does not campaign. Granting it ends this leadership and elects no leader.
    let vote = Vote { term: leader.term + 1, node: leader.node_id.wrapping_add(1), committed: false };
    let ask = VoteRequest::<Types> { leadership_transfer: true, ..VoteRequest::new(raft_vote(vote), last) };
    // If this member has stopped, it does not lead either.
    let _ = raft.vote(ask).await;
}

/// The next leader: a voter that has the whole log and answered recently.
fn next(raft: &Raft, to: Option<MemberId>) -> Result<MemberId, ChangeError> {
    let metrics = raft.metrics();
    let metrics = metrics.borrow_watched();
    let membership = metrics.membership_config.membership();
    let has_all = |id: u64| {
        let matched = metrics.replication.as_ref().and_then(|all| all.get(&id)?.as_ref());
        let heard = metrics.heartbeat.as_ref().and_then(|all| all.get(&id)?.as_ref());
        heard.is_some_and(|heard| heard.elapsed() < REACHED)
            && matched.is_some_and(|matched| Some(matched.index) >= metrics.last_log_index)
    };
    let mut voters = membership.voter_ids().filter(|&id| id != metrics.id);
    let Some(to) = to else {
        let next = voters.find(|&id| has_all(id)).map(MemberId);
        let alone = membership.voter_ids().count() < 2;
        let member = MemberId(metrics.id);
        return next.ok_or(if alone { ChangeError::LastVoter { member } } else { ChangeError::Behind { member } });
    };
    if membership.get_node(&to.0).is_none() {
        return Err(ChangeError::UnknownMember { member: to });
    }
    if !voters.any(|id| id == to.0) {
        return Err(ChangeError::NotVoter { member: to });
    }
    if has_all(to.0) { Ok(to) } else { Err(ChangeError::Behind { member: to }) }
}
