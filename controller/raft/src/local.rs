//! This member's own leader loop as callers reach it: two bounded queues of questions, each answered once.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use atlas_state::State;
use atlas_types::{MemberId, NodeEpoch, NodeId, Request};
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::{Leadership, ProposeError, ReadError};
use crate::handle::Answers;
use crate::membership::ChangeError;

/// What the leader loop is asked.
#[derive(Debug)]
pub(crate) enum Input {
    Propose { requests: Vec<Request>, answer: oneshot::Sender<Result<Answers, ProposeError>> },
    Read { answer: oneshot::Sender<Result<State, ReadError>> },
    Hello { node: NodeId, epoch: NodeEpoch, answer: oneshot::Sender<Result<(), ReadError>> },
    Renew { node: NodeId, epoch: NodeEpoch, number: u64, answer: oneshot::Sender<Result<u64, ReadError>> },
    HandOver { to: Option<MemberId>, answer: oneshot::Sender<Result<MemberId, ChangeError>> },
}

impl Input {
    /// Whether it must not wait behind clients' work: else a flood of submissions would end the sessions of workers that are well, and with
    /// them the jobs that run, and an operator could not move the lead away.
    fn is_urgent(&self) -> bool {
        match self {
            Self::Hello { .. } | Self::Renew { .. } | Self::HandOver { .. } => true,
            Self::Propose { .. } | Self::Read { .. } => false,
        }
    }
}

/// Asks this member's leader loop, which answers as a leader or refuses. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Local {
    urgent: mpsc::Sender<Input>,
    ordinary: mpsc::Sender<Input>,
    pub(crate) leadership: watch::Receiver<Leadership>,
}

/// The leader loop's end: what waits for it.
#[derive(Debug)]
pub(crate) struct Inputs {
    urgent: mpsc::Receiver<Input>,
    ordinary: mpsc::Receiver<Input>,
}

impl Inputs {
    /// The next of those that wait.
    pub(crate) fn try_recv(&mut self) -> Option<Input> {
        self.urgent.try_recv().or_else(|_| self.ordinary.try_recv()).ok()
    }

    /// Waits for some of them, at most `max`, the ordinary ones only if `all` are wanted; 0 if nobody can ask any more.
    pub(crate) async fn recv_many(&mut self, into: &mut Vec<Input>, max: usize, all: bool) -> usize {
        poll_fn(|context| match self.urgent.poll_recv_many(context, into, max) {
            Poll::Pending if all => self.ordinary.poll_recv_many(context, into, max),
            polled => polled,
        })
        .await
    }
}

impl Local {
    /// Two queues of at most `max` questions each, and their other end.
    pub(crate) fn new(max: usize, leadership: watch::Receiver<Leadership>) -> (Self, Inputs) {
        let (urgent, urgent_inputs) = mpsc::channel(max);
        let (ordinary, ordinary_inputs) = mpsc::channel(max);
        (Self { urgent, ordinary, leadership }, Inputs { urgent: urgent_inputs, ordinary: ordinary_inputs })
    }

    /// Proposes at this member.
    pub(crate) async fn propose(&self, requests: Vec<Request>) -> Result<Answers, ProposeError> {
        let (answer, answered) = oneshot::channel();
        match self.ordinary.try_send(Input::Propose { requests, answer }) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => return Err(ProposeError::Overloaded),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(ProposeError::Stopped { reason: self.reason() }),
        }
        // A loop that ends drops the question: nobody can say what became of it.
        answered.await.unwrap_or(Err(ProposeError::Unknown))
    }

    /// The state with everything that was acknowledged before this call, if this member leads.
    pub(crate) async fn read(&self) -> Result<State, ReadError> {
        self.ask(|answer| Input::Read { answer }).await
    }

    /// Puts a question, whose answer comes by the way that it names.
    pub(crate) fn send(&self, input: Input) -> Result<(), ReadError> {
        let queue = if input.is_urgent() { &self.urgent } else { &self.ordinary };
        queue.try_send(input).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => ReadError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => ReadError::Stopped { reason: self.reason() },
        })
    }

    /// Puts a question and waits for its answer.
    pub(crate) async fn ask<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<Result<T, ReadError>>) -> Input,
    ) -> Result<T, ReadError> {
        let (answer, answered) = oneshot::channel();
        self.send(question(answer))?;
        answered.await.unwrap_or_else(|_| Err(ReadError::Stopped { reason: self.reason() }))
    }

    fn reason(&self) -> Arc<str> {
        match &*self.leadership.borrow() {
            Leadership::Stopped { reason } => Arc::clone(reason),
            Leadership::Leader { .. } | Leadership::Follower { .. } => "it is shutting down".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_of_proposals_holds_up_no_renewal() {
        let (_, leadership) = watch::channel(Leadership::Leader { term: 1 });
        let (local, mut inputs) = Local::new(2, leadership);
        let read = |local: &Local| local.send(Input::Read { answer: oneshot::channel().0 });
        let node = NodeId::new("n1").expect("a name");
        assert!(read(&local).is_ok() && read(&local).is_ok());
        assert!(matches!(read(&local), Err(ReadError::Overloaded)));
        let renew = Input::Renew { node, epoch: NodeEpoch(1), number: 1, answer: oneshot::channel().0 };
        assert!(local.send(renew).is_ok());

        let mut taken = Vec::new();
        assert_eq!(inputs.recv_many(&mut taken, 9, false).await, 1, "the ordinary ones are not wanted");
        assert!(matches!(taken[..], [Input::Renew { .. }]));
        assert_eq!(inputs.recv_many(&mut taken, 9, true).await, 2);
        assert!(inputs.try_recv().is_none());
        drop(local);
        assert_eq!(inputs.recv_many(&mut taken, 9, false).await, 0, "nobody can ask any more");
    }
}
