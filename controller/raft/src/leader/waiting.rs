//! Requests that wait for a quorum to confirm this leadership, and the question sent to the quorum.

use std::collections::BTreeSet;
use std::future::{Future, pending};
use std::pin::Pin;

use atlas_duty::sessions::Round;
use atlas_state::State;
use atlas_types::{NodeEpoch, NodeId};
use tokio::sync::{oneshot, watch};

use super::queue::Ticket;
use super::refuse;
use crate::error::{ProposeError, ReadError};
use crate::local::Input;
use crate::member::Peer;

/// A question to the quorum in flight, and the requests that wait for its answer.
pub(super) struct Confirm {
    pub(super) outcome: Pin<Box<dyn Future<Output = bool> + Send>>,
    pub(super) waiting: Waiting,
    pub(super) round: Option<Round>,
}

/// Requests that wait for a quorum to confirm this leadership.
#[derive(Default)]
pub(super) struct Waiting {
    /// Refusals and repeated requests, which are in no entry.
    pub(super) tickets: Vec<Ticket>,
    pub(super) reads: Vec<oneshot::Sender<Result<State, ReadError>>>,
    pub(super) renewals: Vec<Renewal>,
}

/// A renewal of a worker's session.
pub(super) struct Renewal {
    pub(super) node: NodeId,
    pub(super) epoch: NodeEpoch,
    pub(super) number: u64,
    pub(super) answer: oneshot::Sender<Result<u64, ReadError>>,
}

impl Waiting {
    /// Adds the requests of `others` whose callers still wait, before the own ones.
    pub(super) fn take_in(&mut self, others: Self) {
        let Self { tickets, reads, renewals } = std::mem::replace(self, others);
        self.reads.retain(|answer| !answer.is_closed());
        self.tickets.extend(tickets);
        self.reads.extend(reads);
        self.renewals.extend(renewals);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tickets.is_empty() && self.reads.is_empty() && self.renewals.is_empty()
    }

    /// Answers all requests after the quorum has confirmed. A renewal succeeds if its session is in `alive`.
    pub(super) fn release(self, applied: &watch::Receiver<State>, alive: &BTreeSet<(NodeId, NodeEpoch)>) {
        self.tickets.into_iter().for_each(Ticket::release);
        if !self.reads.is_empty() {
            let state = applied.borrow().clone();
            // A caller that stopped waiting needs no answer, here and below.
            self.reads.into_iter().for_each(|answer| drop(answer.send(Ok(state.clone()))));
        }
        for Renewal { node, epoch, number, answer } in self.renewals {
            let lives = alive.contains(&(node, epoch));
            drop(answer.send(if lives { Ok(number) } else { Err(ReadError::NoSession) }));
        }
    }

    /// Refuses all requests, because this member no longer leads.
    pub(super) fn fail(self, leader: Option<&Peer>) {
        for ticket in self.tickets {
            ticket.fail(ProposeError::NotLeader { leader: leader.cloned() });
        }
        for answer in self.reads {
            refuse(Input::Read { answer }, leader);
        }
        for Renewal { node, epoch, number, answer } in self.renewals {
            refuse(Input::Renew { node, epoch, number, answer }, leader);
        }
    }
}

/// Waits for the quorum's answer, or for ever if no question is in flight.
pub(super) async fn confirmation(confirm: &mut Option<Confirm>) -> bool {
    match confirm {
        Some(confirm) => confirm.outcome.as_mut().await,
        None => pending().await,
    }
}
