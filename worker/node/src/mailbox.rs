//! Communication from the pump to a slot: a queue of orders, a separate stop, and the wake-up of the slot's task.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::attempt::Work;
use atlas_types::FencingToken;

/// An order to a slot.
#[derive(Debug)]
pub(crate) enum Order {
    /// Run one attempt.
    Run(Arc<Work>),
    /// End.
    Shutdown,
}

/// The answer for an attempt about a job that it spawned.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The job's output as JSON.
    Completed(Arc<[u8]>),
    /// The job failed, for this reason.
    Failed(String),
    /// The job was not created, for this reason.
    Refused(String),
}

/// The orders for one slot. The pump posts them, and the slot's task takes them.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    letters: Mutex<Letters>,
    /// Notified after every change.
    bell: Notify,
}

#[derive(Debug, Default)]
struct Letters {
    orders: VecDeque<Order>,
    /// A request to stop the latest attempt, with the time between SIGTERM and SIGKILL.
    stop: Option<Duration>,
    /// The stop is because its job was parked, so its program may stay.
    is_parked: bool,
    /// Answers for the latest attempt.
    answers: VecDeque<(FencingToken, u64, Answer)>,
}

impl Mailbox {
    /// Posts an order. A new attempt clears an earlier stop, which was meant for the previous attempt: the pump posts
    /// an attempt only after the previous one has ended.
    pub(crate) fn post(&self, order: Order) {
        let mut letters = self.letters();
        if matches!(order, Order::Run(_)) {
            letters.stop = None;
            letters.is_parked = false;
            letters.answers.clear();
        }
        letters.orders.push_back(order);
        drop(letters);
        self.bell.notify_one();
    }

    /// Puts back an order that was taken. A stop that was meant for it stays.
    pub(crate) fn put_back(&self, order: Order) {
        self.letters().orders.push_front(order);
    }

    /// Stops the latest attempt.
    pub(crate) fn stop(&self, grace: Duration) {
        self.letters().stop = Some(grace);
        self.bell.notify_one();
    }

    /// Stops the latest attempt, because its job was parked.
    pub(crate) fn park(&self) {
        self.letters().is_parked = true;
        self.stop(Duration::ZERO);
    }

    /// Whether the requested stop is because the job was parked.
    pub(crate) fn is_parked(&self) -> bool {
        self.letters().is_parked
    }

    /// Answers one of an attempt's calls.
    pub(crate) fn answer(&self, token: FencingToken, call: u64, answer: Answer) {
        self.letters().answers.push_back((token, call, answer));
        self.bell.notify_one();
    }

    /// True if a call was answered.
    pub(crate) fn is_answered(&self) -> bool {
        !self.letters().answers.is_empty()
    }

    /// The answers to the calls of an attempt.
    pub(crate) fn answers(&self, token: FencingToken) -> Vec<(u64, Answer)> {
        let answers = std::mem::take(&mut self.letters().answers);
        answers.into_iter().filter(|(of, ..)| *of == token).map(|(_, call, answer)| (call, answer)).collect()
    }

    /// The next order.
    pub(crate) fn take(&self) -> Option<Order> {
        self.letters().orders.pop_front()
    }

    /// The requested stop, if any.
    pub(crate) fn stop_asked(&self) -> Option<Duration> {
        self.letters().stop
    }

    /// Completes when something was posted since the last completion. It may complete without a change, so the caller
    /// must check and wait again.
    pub(crate) async fn woken(&self) {
        self.bell.notified().await;
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        // Every change is complete while the lock is held, so a panic elsewhere cannot corrupt the data.
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_is_put_back_keeps_its_stop() {
        let mailbox = Mailbox::default();
        mailbox.post(Order::Shutdown);
        let order = mailbox.take().expect("an order");
        mailbox.stop(Duration::from_secs(1));
        mailbox.put_back(order);
        assert_eq!(mailbox.stop_asked(), Some(Duration::from_secs(1)));
        assert!(matches!(mailbox.take(), Some(Order::Shutdown)));
        assert!(mailbox.take().is_none());
    }

    #[test]
    fn a_stop_that_comes_before_its_order_is_taken_is_not_lost() {
        let mailbox = Mailbox::default();
        mailbox.post(Order::Shutdown);
        mailbox.stop(Duration::ZERO);
        assert!(mailbox.take().is_some());
        assert_eq!(mailbox.stop_asked(), Some(Duration::ZERO));
    }

    #[tokio::test]
    async fn what_was_posted_before_the_wait_ends_it() {
        let mailbox = Mailbox::default();
        for _ in 0..3 {
            mailbox.post(Order::Shutdown);
        }
        mailbox.woken().await;
        assert!(mailbox.take().is_some());
    }
}
