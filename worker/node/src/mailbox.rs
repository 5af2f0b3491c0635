//! How the pump talks to a slot's thread: orders in a queue, a stop beside it, and a pipe that wakes the thread's `poll`.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::slot::Work;

/// What a slot shall do next.
#[derive(Debug)]
pub(crate) enum Order {
    /// Run one attempt.
    Run(Box<Work>),
    /// End.
    Shutdown,
}

/// Orders for one slot. The pump posts, the slot's thread takes.
#[derive(Debug)]
pub(crate) struct Mailbox {
    letters: Mutex<Letters>,
    wake: PipeWriter,
    woken: PipeReader,
}

#[derive(Debug, Default)]
struct Letters {
    orders: VecDeque<Order>,
    /// Stops the attempt that was posted last; time between the polite and the hard signal.
    stop: Option<Duration>,
    /// A byte is in the pipe. Written and read under the lock, so that it is always true or false for both sides.
    rung: bool,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        let (woken, wake) = io::pipe()?;
        set_nonblocking(&woken)?;
        set_nonblocking(&wake)?;
        Ok(Self { letters: Mutex::default(), wake, woken })
    }

    /// Posts an order. An older stop is forgotten with it: the pump posts an attempt only after it has seen the end of the one
    /// before, for which the stop was.
    pub(crate) fn post(&self, order: Order) {
        let mut letters = self.letters();
        if matches!(order, Order::Run(_)) {
            letters.stop = None;
        }
        letters.orders.push_back(order);
        self.ring(&mut letters);
    }

    /// Stops the attempt that was posted last.
    pub(crate) fn stop(&self, grace: Duration) {
        let mut letters = self.letters();
        letters.stop = Some(grace);
        self.ring(&mut letters);
    }

    /// The next order.
    pub(crate) fn take(&self) -> Option<Order> {
        let mut letters = self.letters();
        self.hush(&mut letters);
        letters.orders.pop_front()
    }

    /// The stop that was asked for, if any.
    pub(crate) fn stop_asked(&self) -> Option<Duration> {
        let mut letters = self.letters();
        self.hush(&mut letters);
        letters.stop
    }

    /// Becomes readable when something was posted.
    pub(crate) fn woken(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    fn ring(&self, letters: &mut Letters) {
        if !letters.rung {
            // One byte fits: the pipe is empty.
            letters.rung = (&self.wake).write(&[1]).is_ok();
        }
    }

    fn hush(&self, letters: &mut Letters) {
        if letters.rung {
            letters.rung = (&self.woken).read(&mut [0]).is_err();
        }
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        // Letters are whole at every moment, so a panic elsewhere does not spoil them.
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets reads and writes return at once.
pub(crate) fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    let flags = OFlag::from_bits_truncate(fcntl(&fd, FcntlArg::F_GETFL)?);
    fcntl(&fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;

    fn awake(mailbox: &Mailbox) -> bool {
        matches!(poll(&mut [PollFd::new(mailbox.woken(), PollFlags::POLLIN)], PollTimeout::ZERO), Ok(1))
    }

    #[test]
    fn a_stop_that_comes_before_its_order_is_taken_is_not_lost() {
        let mailbox = Mailbox::new().expect("a pipe");
        mailbox.post(Order::Shutdown);
        mailbox.stop(Duration::ZERO);
        assert!(mailbox.take().is_some());
        assert_eq!(mailbox.stop_asked(), Some(Duration::ZERO));
    }

    #[test]
    fn it_wakes_once_and_is_quiet_when_all_is_read() {
        let mailbox = Mailbox::new().expect("a pipe");
        assert!(!awake(&mailbox));
        for _ in 0..3 {
            mailbox.post(Order::Shutdown);
        }
        assert!(awake(&mailbox));
        assert!(mailbox.take().is_some());
        assert!(!awake(&mailbox));
    }
}
