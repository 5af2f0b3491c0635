//! This member's own leader loop as callers reach it: a bounded queue of questions, each answered once.

use std::sync::Arc;

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

/// Asks this member's leader loop, which answers as a leader or refuses. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Local {
    pub(crate) inputs: mpsc::Sender<Input>,
    pub(crate) leadership: watch::Receiver<Leadership>,
}

impl Local {
    /// Proposes at this member.
    pub(crate) async fn propose(&self, requests: Vec<Request>) -> Result<Answers, ProposeError> {
        let (answer, answered) = oneshot::channel();
        match self.inputs.try_send(Input::Propose { requests, answer }) {
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
        self.inputs.try_send(input).map_err(|error| match error {
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
