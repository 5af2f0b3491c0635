//! How the pump talks to a slot's thread: orders in a queue, a stop beside it, and a pipe that wakes the thread's `poll`.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// A byte is in the pipe, or about to be: spares both sides most of their system calls.
    rung: AtomicBool,
}

#[derive(Debug, Default)]
struct Letters {
    orders: VecDeque<Order>,
    /// Stops the attempt that runs; time between the polite and the hard signal.
    stop: Option<Duration>,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        let (woken, wake) = io::pipe()?;
        set_nonblocking(&woken)?;
        set_nonblocking(&wake)?;
        Ok(Self { letters: Mutex::default(), wake, woken, rung: AtomicBool::new(false) })
    }

    pub(crate) fn post(&self, order: Order) {
        self.letters().orders.push_back(order);
        self.ring();
    }

    /// Stops the attempt that runs.
    pub(crate) fn stop(&self, grace: Duration) {
        self.letters().stop = Some(grace);
        self.ring();
    }

    /// The next order. An older stop is forgotten: it was meant for an attempt that has ended.
    pub(crate) fn take(&self) -> Option<Order> {
        self.hush();
        let mut letters = self.letters();
        let order = letters.orders.pop_front();
        if order.is_some() {
            letters.stop = None;
        }
        order
    }

    /// The stop that was asked for, if any.
    pub(crate) fn stop_asked(&self) -> Option<Duration> {
        self.hush();
        self.letters().stop
    }

    /// Becomes readable when something was posted.
    pub(crate) fn woken(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            // A full pipe wakes as well.
            let _ = (&self.wake).write(&[1]);
        }
    }

    fn hush(&self) {
        // Cleared before the letters are read: what is posted from here on rings again.
        if self.rung.swap(false, Ordering::SeqCst) {
            let _ = (&self.woken).read(&mut [0; 64]);
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
