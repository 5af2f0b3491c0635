//! The leader loop (ADR 1): gather, plan at the head, propose one entry, wait until it is applied, answer.
//!
//! One entry is in flight, and the requests that arrive meanwhile form the next batch. The rules: any error of a
//! proposal drops the head. A head starts from a state that is known to be complete. An answer, including a refusal, is
//! released once the state that it was decided on is certain. A proposal ends as applied, not written, or unknown. The
//! loop decides nothing about jobs; the head and the leader tasks do.

mod clock;
mod duties;
mod hand_over;
mod lead;
pub(crate) mod panics;
mod queue;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_state::State;
use atlas_types::{EventSeq, MemberId};
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ClientWriteError, ForwardReason, RaftError};
use tokio::sync::{oneshot, watch};

use crate::consensus::LeaderId;
use crate::error::{Leadership, ProposeError, ReadError};
use crate::leader::lead::{End, Lead};
use crate::leader::panics::Panics;
use crate::local::{Input, Inputs};
use crate::machine::{Raft, Slot, leader_id};
use crate::member::Peer;
use crate::membership::{ChangeError, Group};
use crate::monitor::space::Disk;
use crate::options::Options;
use atlas_log::Log;

/// The most inputs that are taken at once.
const INPUTS_MAX: usize = 1_024;

/// How long callers wait for a take-over before they are refused.
const TAKE_OVER_PATIENCE: Duration = Duration::from_secs(1);

/// The leader loop and its parts.
pub(crate) struct LeaderLoop {
    pub(crate) raft: Raft,
    pub(crate) log: Log,
    pub(crate) options: Options,
    pub(crate) env: Env,
    pub(crate) inputs: Inputs,
    pub(crate) applied: watch::Receiver<State>,
    pub(crate) history: watch::Receiver<EventSeq>,
    pub(crate) leadership: watch::Sender<Leadership>,
    pub(crate) slot: Slot,
    pub(crate) group: Group,
    pub(crate) disk: watch::Receiver<Disk>,
    pub(crate) panics: Panics,
}

impl LeaderLoop {
    /// Runs until `shutdown` is requested or Raft has failed.
    pub(crate) async fn run(mut self, mut shutdown: oneshot::Receiver<()>) {
        let mut metrics = self.raft.server_metrics();
        let mut answers = self.raft.data_metrics();
        loop {
            let answered = answers.borrow_watched().last_quorum_acked;
            let Some(leader) = self.leader_id() else {
                self.follow();
                let mut inputs = Vec::new();
                tokio::select! {
                    biased;
                    _ = &mut shutdown => return,
                    changed = metrics.changed() => if changed.is_err() {
                        return self.stop();
                    },
                    count = self.inputs.recv_any(&mut inputs, INPUTS_MAX) => {
                        let leader = self.followed();
                        inputs.into_iter().for_each(|input| refuse(input, leader.as_ref()));
                        if count == 0 {
                            return;
                        }
                    }
                }
                continue;
            };
            // Callers see no leader until the take-over is complete, because the previous leader leads no longer.
            self.follow();
            let Some(taken) = self.wait_to_take_over(leader, &mut shutdown).await else { return };
            match taken {
                TakeOver::Complete(state) => {
                    let end = Lead::new(&mut self, leader, *state).run(&mut shutdown).await;
                    self.slot.clear();
                    match end {
                        End::Lost => self.follow(),
                        End::Failed => return self.stop(),
                        End::Shutdown => return,
                    }
                }
                // A change of the leadership is announced in the metrics, and so is the first answer of a majority, before which a
                // leader may not write.
                TakeOver::NotYet => tokio::select! {
                    _ = metrics.changed() => {}
                    () = async {
                        while answers.borrow_watched().last_quorum_acked == answered {
                            if answers.changed().await.is_err() {
                                return;
                            }
                        }
                    } => {}
                    () = self.env.clock.sleep(lead::TICK) => {}
                },
                TakeOver::HandedOver => tokio::select! {
                    _ = metrics.changed() => {}
                    () = self.env.clock.sleep(lead::TICK) => {}
                },
                TakeOver::Failed => return self.stop(),
            }
        }
    }

    /// Takes over as `leader`. None if `shutdown` is requested first.
    async fn wait_to_take_over(&mut self, leader: LeaderId, shutdown: &mut oneshot::Receiver<()>) -> Option<TakeOver> {
        let (log, clock) = (self.log.clone(), Arc::clone(&self.env.clock));
        let mut taking = std::pin::pin!(async {
            let taken = take_over(self.raft.clone(), self.applied.clone(), leader).await;
            if let TakeOver::HandedOver = taken {
                hand_over::end(&self.raft, &log, leader, &*clock).await;
            }
            taken
        });
        loop {
            tokio::select! {
                biased;
                _ = &mut *shutdown => return None,
                taken = &mut taking => return Some(taken),
                // Without a quorum the take-over never completes. Callers must not wait for it.
                () = self.env.clock.sleep(TAKE_OVER_PATIENCE) => {
                    self.leadership.send_replace(Leadership::Follower { leader: None });
                    while let Some(input) = self.inputs.try_recv() {
                        refuse(input, None);
                    }
                }
            }
        }
    }

    /// This member's leader id, if it leads.
    fn leader_id(&self) -> Option<LeaderId> {
        leader_id(&self.raft)
    }

    /// The leader that this member follows.
    fn followed(&self) -> Option<Peer> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        let id = metrics.current_leader.filter(|&id| id != self.options.member.0)?;
        Some(Peer::of(MemberId(id), metrics.membership_config.membership()))
    }

    /// The voters of which a majority must have jobs in their histories before the jobs are pruned. Empty during a
    /// membership change, because one list cannot describe two majorities.
    fn voters(&self) -> Vec<MemberId> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        match &metrics.membership_config.membership().get_joint_config()[..] {
            [voters] => voters.iter().copied().map(MemberId).collect(),
            _ => Vec::new(),
        }
    }

    fn follow(&self) {
        let leader = self.followed();
        self.leadership.send_if_modified(|leadership| {
            let now = Leadership::Follower { leader };
            let changed = *leadership != now;
            *leadership = now;
            changed
        });
    }

    /// Reports that this member has failed.
    fn stop(&self) {
        let metrics = self.raft.metrics();
        let raft = metrics.borrow_watched().running_state.as_ref().err().map(ToString::to_string);
        let reason = self.log.poison().or(raft).unwrap_or_else(|| "raft stopped".to_owned());
        tracing::error!(%reason, "this member stops");
        self.leadership.send_replace(Leadership::Stopped { reason: Arc::from(reason) });
    }
}

/// The state is complete when an entry written after the start of this leadership is applied and the leadership did not
/// change.
async fn take_over(raft: Raft, applied: watch::Receiver<State>, leader: LeaderId) -> TakeOver {
    let written = tokio::select! {
        written = raft.write_blank() => written,
        stopped = lead::lost(raft.clone(), leader) => {
            return if stopped { TakeOver::Failed } else { TakeOver::NotYet };
        }
    };
    match written {
        Ok(written) if written.log_id.leader_id == leader && leader_id(&raft) == Some(leader) => {
            TakeOver::Complete(Box::new(applied.borrow().clone()))
        }
        Err(error) if error.fatal().is_some() => TakeOver::Failed,
        Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward)))
            if forward.reason == ForwardReason::LeadershipTransfer =>
        {
            TakeOver::HandedOver
        }
        Ok(_) | Err(_) => TakeOver::NotYet,
    }
}

/// How taking over ended.
enum TakeOver {
    /// This member leads, and this is everything that was committed before.
    Complete(Box<State>),
    /// This member does not lead, or does not lead yet.
    NotYet,
    /// This member still leads, but is handing leadership over.
    HandedOver,
    /// Raft has stopped.
    Failed,
}

/// Refuses an input at a member that does not lead.
fn refuse(input: Input, leader: Option<&Peer>) {
    let leader = leader.cloned();
    // A caller that gave up waiting needs no answer.
    match input {
        Input::Propose { answer, .. } => drop(answer.send(Err(ProposeError::NotLeader { leader }))),
        Input::Read { answer } => drop(answer.send(Err(ReadError::NotLeader { leader }))),
        Input::Renew { answer, .. } => drop(answer.send(Err(ReadError::NotLeader { leader }))),
        Input::HandOver { answer, .. } => drop(answer.send(Err(ChangeError::NotLeader { leader }))),
        Input::Hello { answer, .. } => drop(answer.send(Err(ReadError::NotLeader { leader }))),
        Input::Claim { answer, .. } => drop(answer.send(Err(ReadError::NotLeader { leader }))),
        // The next leader gives the session its whole time again.
        Input::Parted { .. } => {}
    }
}
