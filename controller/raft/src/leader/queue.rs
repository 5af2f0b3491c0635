//! Waiting proposals and their decisions so far. Pure.

use std::collections::VecDeque;

use atlas_types::Request;
use tokio::sync::oneshot;

use crate::error::ProposeError;
use crate::local::Answers;
use crate::member::Peer;

type Answer = oneshot::Sender<Result<Answers, ProposeError>>;

/// One caller, and the answers decided for it so far.
#[derive(Debug)]
pub(super) struct Ticket {
    answer: Answer,
    wanted: usize,
    outcomes: Answers,
    /// True if an entry with part of its requests may already be applied.
    begun: bool,
}

impl Ticket {
    /// Sends the answers to the caller. Called only once they are certain (ADR 1).
    pub(super) fn release(self) {
        // The caller may have stopped waiting.
        let _ = self.answer.send(Ok(self.outcomes));
    }

    /// Fails the proposal. If a part of it may be applied, its result is unknown.
    pub(super) fn fail(self, error: ProposeError) {
        let written = self.begun && matches!(error, ProposeError::NotLeader { .. });
        let _ = self.answer.send(Err(if written { ProposeError::Unknown } else { error }));
    }
}

/// Waiting requests in the order of arrival, and the callers that they belong to.
#[derive(Debug, Default)]
pub(super) struct Queue {
    requests: VecDeque<Request>,
    /// The first ticket may already have some answers, from an entry that could not hold all its requests.
    tickets: VecDeque<Ticket>,
}

impl Queue {
    /// True if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The number of waiting requests.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Adds a proposal.
    pub(super) fn push(&mut self, requests: Vec<Request>, answer: Answer) {
        let ticket =
            Ticket { answer, wanted: requests.len(), outcomes: Vec::with_capacity(requests.len()), begun: false };
        if ticket.wanted == 0 {
            return ticket.release();
        }
        self.requests.extend(requests);
        self.tickets.push_back(ticket);
    }

    /// Takes out the first `max` requests, to be planned.
    pub(super) fn take(&mut self, max: usize) -> Vec<Request> {
        let end = max.min(self.requests.len());
        // Of exactly this size: what is collected from a drain has room for four, which is 2 KiB.
        let mut taken = Vec::with_capacity(end);
        taken.extend(self.requests.drain(..end));
        taken
    }

    /// Records a plan's result: `outcomes` of the first requests that were taken, `leftover` for the next plan. Returns
    /// the tickets that now have all their answers.
    pub(super) fn decide(&mut self, outcomes: Answers, leftover: Vec<Request>) -> Vec<Ticket> {
        for request in leftover.into_iter().rev() {
            self.requests.push_front(request);
        }
        // Answers that the first ticket already has were decided in an earlier entry.
        if let Some(first) = self.tickets.front_mut() {
            first.begun = !first.outcomes.is_empty();
        }
        let mut whole = Vec::new();
        for outcome in outcomes {
            let Some(ticket) = self.tickets.front_mut() else { break };
            ticket.outcomes.push(outcome);
            if ticket.outcomes.len() == ticket.wanted {
                whole.extend(self.tickets.pop_front());
            }
        }
        whole
    }

    /// Fails the first proposal if an entry with part of it has an unknown outcome. The rest of the proposal is
    /// dropped.
    pub(super) fn fail_begun(&mut self) {
        if self.tickets.front().is_some_and(|ticket| !ticket.outcomes.is_empty())
            && let Some(ticket) = self.tickets.pop_front()
        {
            self.requests.drain(..ticket.wanted - ticket.outcomes.len());
            ticket.fail(ProposeError::Unknown);
        }
    }

    /// Fails all waiting proposals because this member does not lead. None was written, except for a part of the first.
    pub(super) fn fail_all(&mut self, leader: Option<&Peer>) {
        self.fail_all_with(&ProposeError::NotLeader { leader: leader.cloned() });
    }

    /// Fails all waiting proposals with an error that means that nothing was written. If part of the first was in an
    /// entry, its result is unknown.
    pub(super) fn fail_all_with(&mut self, error: &ProposeError) {
        self.fail_begun();
        self.requests.clear();
        for ticket in self.tickets.drain(..) {
            ticket.fail(error.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use atlas_types::{Command, ConfigureCluster, Namespace, Origin, Outcome};

    use super::*;

    fn requests(count: usize) -> Vec<Request> {
        let command = Command::ConfigureCluster(ConfigureCluster { config: Default::default() });
        let request = Request { origin: Origin::duty(Namespace::default_namespace()), command };
        vec![request; count]
    }

    fn done(count: usize) -> Answers {
        vec![Ok(Outcome::Done); count]
    }

    #[test]
    fn a_proposal_that_spans_entries_is_whole_with_its_last() {
        let mut queue = Queue::default();
        let ((first, mut one), (second, _two)) = (oneshot::channel(), oneshot::channel());
        queue.push(requests(3), first);
        queue.push(requests(2), second);
        let mut taken = queue.take(4);
        assert!(queue.decide(done(2), taken.split_off(2)).is_empty());
        assert_eq!(queue.len(), 3);
        let taken = queue.take(4);
        assert_eq!(taken.len(), 3);
        let whole = queue.decide(done(3), Vec::new());
        assert_eq!(whole.len(), 2);
        whole.into_iter().for_each(Ticket::release);
        assert_eq!(one.try_recv(), Ok(Ok(done(3))));
    }

    #[test]
    fn a_begun_proposal_ends_unknown_and_the_others_as_not_written() {
        let mut queue = Queue::default();
        let ((first, mut one), (second, mut two)) = (oneshot::channel(), oneshot::channel());
        queue.push(requests(3), first);
        queue.push(requests(2), second);
        let taken = queue.take(1);
        queue.decide(done(taken.len()), Vec::new());
        queue.fail_all(None);
        assert!(queue.is_empty());
        assert_eq!(one.try_recv(), Ok(Err(ProposeError::Unknown)));
        assert_eq!(two.try_recv(), Ok(Err(ProposeError::NotLeader { leader: None })));
    }

    #[test]
    fn a_proposal_whose_last_part_is_not_written_ends_unknown() {
        let mut queue = Queue::default();
        let (answer, mut answered) = oneshot::channel();
        queue.push(requests(3), answer);
        let first = queue.take(2).len();
        queue.decide(done(first), Vec::new());
        let last = queue.take(2).len();
        for ticket in queue.decide(done(last), Vec::new()) {
            ticket.fail(ProposeError::NotLeader { leader: None });
        }
        assert_eq!(answered.try_recv(), Ok(Err(ProposeError::Unknown)));
    }

    #[test]
    fn an_empty_proposal_is_answered_at_once() {
        let mut queue = Queue::default();
        let (answer, mut answered) = oneshot::channel();
        queue.push(Vec::new(), answer);
        assert_eq!(answered.try_recv(), Ok(Ok(Vec::new())));
    }
}
