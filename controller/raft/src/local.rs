//! The interface of the local leader loop: two bounded queues of requests, each answered once.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use atlas_state::State;
use atlas_types::{MemberId, NodeEpoch, NodeId, Outcome, Rejection, Request};
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::{Leadership, ProposeError, ReadError};
use crate::membership::ChangeError;

/// Answers to one proposal, in the order of its requests.
pub type Answers = Vec<Result<Outcome, Rejection>>;

/// A request to the leader loop.
#[derive(Debug)]
pub(crate) enum Input {
    Propose {
        requests: Vec<Request>,
        answer: oneshot::Sender<Result<Answers, ProposeError>>,
    },
    Read {
        answer: oneshot::Sender<Result<State, ReadError>>,
    },
    Hello {
        node: NodeId,
        epoch: NodeEpoch,
        stream: u64,
        answer: oneshot::Sender<Result<(), ReadError>>,
    },
    /// Whether another process may take the name of a node.
    Claim {
        node: NodeId,
        epoch: NodeEpoch,
        successor: bool,
        answer: oneshot::Sender<Result<bool, ReadError>>,
    },
    /// The end of a worker's stream.
    Parted {
        node: NodeId,
        epoch: NodeEpoch,
        stream: u64,
        farewell: bool,
    },
    Renew {
        node: NodeId,
        epoch: NodeEpoch,
        number: u64,
        answer: oneshot::Sender<Result<u64, ReadError>>,
    },
    HandOver {
        to: Option<MemberId>,
        answer: oneshot::Sender<Result<MemberId, ChangeError>>,
    },
}

/// Sends requests to this member's leader loop, which answers as the leader or refuses. Cheap to clone.
///
/// Requests of workers and operators are urgent: they do not wait behind those of clients. Otherwise a flood of
/// submissions would end the sessions of healthy workers, and with them their running jobs, and operators could not
/// move leadership away. The amount of urgent requests depends on the number of workers, not on clients.
#[derive(Debug, Clone)]
pub(crate) struct Local {
    urgent: mpsc::Sender<Input>,
    ordinary: mpsc::Sender<Input>,
    pub(crate) leadership: watch::Receiver<Leadership>,
}

/// The leader loop's end of the queues.
#[derive(Debug)]
pub(crate) struct Inputs {
    urgent: mpsc::Receiver<Input>,
    ordinary: mpsc::Receiver<Input>,
}

impl Inputs {
    /// Takes the next waiting request, if any.
    pub(crate) fn try_recv(&mut self) -> Option<Input> {
        self.urgent.try_recv().or_else(|_| self.ordinary.try_recv()).ok()
    }

    /// Waits for requests and takes at most `max`, urgent ones first. 0 if there are no callers left.
    pub(crate) async fn recv_any(&mut self, into: &mut Vec<Input>, max: usize) -> usize {
        poll_fn(|context| match self.urgent.poll_recv_many(context, into, max) {
            Poll::Pending => self.ordinary.poll_recv_many(context, into, max),
            ready => ready,
        })
        .await
    }

    /// Waits for urgent requests only, as [`Self::recv_any`] does.
    pub(crate) async fn recv_urgent(&mut self, into: &mut Vec<Input>, max: usize) -> usize {
        self.urgent.recv_many(into, max).await
    }
}

impl Local {
    /// Two queues of at most `max` requests each, and their receiving end.
    pub(crate) fn new(max: usize, leadership: watch::Receiver<Leadership>) -> (Self, Inputs) {
        let (urgent, urgent_inputs) = mpsc::channel(max);
        let (ordinary, ordinary_inputs) = mpsc::channel(max);
        (Self { urgent, ordinary, leadership }, Inputs { urgent: urgent_inputs, ordinary: ordinary_inputs })
    }

    /// Proposes at this member, for a client.
    pub(crate) async fn propose(&self, requests: Vec<Request>) -> Result<Answers, ProposeError> {
        self.propose_on(&self.ordinary, requests).await
    }

    /// Proposes at this member, for a worker.
    pub(crate) async fn propose_urgently(&self, requests: Vec<Request>) -> Result<Answers, ProposeError> {
        self.propose_on(&self.urgent, requests).await
    }

    async fn propose_on(&self, queue: &mpsc::Sender<Input>, requests: Vec<Request>) -> Result<Answers, ProposeError> {
        let (answer, answered) = oneshot::channel();
        match queue.try_send(Input::Propose { requests, answer }) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => return Err(ProposeError::Overloaded),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(ProposeError::Stopped { reason: self.reason() }),
        }
        // A loop that ends drops the request, and its outcome is then unknown.
        answered.await.unwrap_or(Err(ProposeError::Unknown))
    }

    /// For a client: the state with everything that was acknowledged before this call, if this member leads.
    pub(crate) async fn read(&self) -> Result<State, ReadError> {
        self.ask_on(&self.ordinary, |answer| Input::Read { answer }).await
    }

    /// Sends an urgent request that carries the channel for its answer.
    pub(crate) fn send_urgently(&self, input: Input) -> Result<(), ReadError> {
        self.send_on(&self.urgent, input)
    }

    /// Sends an urgent request and waits for its answer.
    pub(crate) async fn ask_urgently<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<Result<T, ReadError>>) -> Input,
    ) -> Result<T, ReadError> {
        self.ask_on(&self.urgent, question).await
    }

    async fn ask_on<T>(
        &self,
        queue: &mpsc::Sender<Input>,
        question: impl FnOnce(oneshot::Sender<Result<T, ReadError>>) -> Input,
    ) -> Result<T, ReadError> {
        let (answer, answered) = oneshot::channel();
        self.send_on(queue, question(answer))?;
        answered.await.unwrap_or_else(|_| Err(ReadError::Stopped { reason: self.reason() }))
    }

    fn send_on(&self, queue: &mpsc::Sender<Input>, input: Input) -> Result<(), ReadError> {
        queue.try_send(input).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => ReadError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => ReadError::Stopped { reason: self.reason() },
        })
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
    async fn a_flood_of_clients_holds_up_no_worker() {
        let (_, leadership) = watch::channel(Leadership::Leader { term: 1 });
        let (local, mut inputs) = Local::new(2, leadership);
        let read = || local.send_on(&local.ordinary, Input::Read { answer: oneshot::channel().0 });
        assert!(read().is_ok() && read().is_ok());
        assert!(matches!(read(), Err(ReadError::Overloaded)));
        assert!(matches!(local.propose(Vec::new()).await, Err(ProposeError::Overloaded)));
        let node = NodeId::new("n1").expect("a name");
        let renew = Input::Renew { node, epoch: NodeEpoch(1), number: 1, answer: oneshot::channel().0 };
        assert!(local.send_urgently(renew).is_ok());

        let mut taken = Vec::new();
        assert_eq!(inputs.recv_any(&mut taken, 9).await, 1, "the urgent ones come first");
        assert!(matches!(taken[..], [Input::Renew { .. }]));
        let answer = async {
            assert_eq!(inputs.recv_urgent(&mut taken, 9).await, 1, "the others are not wanted");
            let Some(Input::Propose { answer, .. }) = taken.pop() else { panic!("not the report") };
            answer.send(Ok(Vec::new())).expect("somebody waits");
        };
        let (report, ()) = tokio::join!(local.propose_urgently(Vec::new()), answer);
        assert!(report.is_ok());
        assert_eq!(inputs.recv_any(&mut taken, 9).await, 2);
        assert!(inputs.try_recv().is_none());
        drop(local);
        assert_eq!(inputs.recv_urgent(&mut taken, 9).await, 0, "nobody can ask any more");
    }
}
