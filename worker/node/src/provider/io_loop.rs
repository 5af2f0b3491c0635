//! Waits for a process tree's pipes, with a deadline and a check for stops.
//!
//! Runs on the task of the slot: the pipes are registered with the reactor of the pump's runtime, so that an agent's
//! answer wakes only one thread.

use std::future::poll_fn;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::task::{Context, Poll};
use std::time::Duration;

use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::process::Tree;
use crate::provider::Control;
use crate::readiness::{at_once, watch};

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken<const N: usize> {
    /// Something is ready.
    Io {
        /// Whether each pipe is ready, in the given order.
        pipes: [bool; N],
        /// Whether the tree has changed.
        tree: bool,
    },
    /// A call of the attempt was answered.
    Answered,
    /// The deadline passed, and the tree was killed.
    TimedOut,
    /// A stop was requested and its grace period is over. The tree was killed.
    Stopped,
    /// The job was parked. Only for those who wait [`or_park`](Wait::or_park).
    Parked,
}

/// A pipe to wait for.
pub(super) trait Ready: Sync {
    /// True if the pipe is ready. Otherwise the task is woken when it becomes ready.
    fn poll_ready(&self, cx: &mut Context<'_>) -> bool;
}

/// The deadline and the stop of one attempt, over many waits.
#[derive(Debug)]
pub(super) struct Wait {
    deadline: Duration,
    kill_at: Option<Duration>,
    on_stop: OnStop,
}

/// What a requested stop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnStop {
    /// It ends the tree.
    Kill,
    /// The same, but the tree stays if its job was parked.
    LeaveIfParked,
    /// Nothing: the tree has its time until the deadline.
    Ignore,
}

impl Wait {
    pub(super) fn until(deadline: Duration) -> Self {
        Self { deadline, kill_at: None, on_stop: OnStop::Kill }
    }

    /// The same for a program that can leave its job, as it must when the job was parked.
    pub(super) fn or_park(self) -> Self {
        Self { on_stop: OnStop::LeaveIfParked, ..self }
    }

    /// The time that a program has to leave a job which has stopped.
    pub(super) fn to_leave(deadline: Duration) -> Self {
        Self { on_stop: OnStop::Ignore, ..Self::until(deadline) }
    }

    /// True once a stop was requested.
    pub(super) fn stopping(&self) -> bool {
        self.kill_at.is_some()
    }

    /// Waits until one of `pipes` is ready, the tree changes, or the attempt is over.
    pub(super) async fn next<const N: usize>(
        &mut self,
        control: &Control<'_>,
        tree: &mut Tree,
        pipes: [&dyn Ready; N],
    ) -> Woken<N> {
        loop {
            let now = control.now();
            let stop = control.mailbox.stop_asked().filter(|_| self.on_stop != OnStop::Ignore);
            if stop.is_some() && self.on_stop == OnStop::LeaveIfParked && control.mailbox.is_parked() {
                return Woken::Parked;
            }
            if let Some(grace) = stop {
                if self.kill_at.is_none() && !grace.is_zero() {
                    tree.terminate();
                }
                // A second stop can only shorten the grace period of the first.
                self.kill_at = Some(self.kill_at.map_or(now + grace, |at| at.min(now + grace)));
            }
            if self.kill_at.is_some_and(|at| at <= now) {
                tree.kill().await;
                return Woken::Stopped;
            }
            if self.deadline <= now {
                tree.kill().await;
                return if self.stopping() { Woken::Stopped } else { Woken::TimedOut };
            }
            if control.mailbox.is_answered() {
                return Woken::Answered;
            }
            let look = tree.look_at();
            if look.is_some_and(|look| look <= now) {
                // A tree that it kills tells its end as any other.
                tree.look().await;
                continue;
            }
            let until = self.kill_at.map_or(self.deadline, |at| at.min(self.deadline));
            let until = look.map_or(until, |look| look.min(until));
            let ready = poll_fn(|cx| {
                let tree = tree.poll_changed(cx);
                let pipes = pipes.map(|pipe| pipe.poll_ready(cx));
                let some = tree || pipes.contains(&true);
                if some { Poll::Ready(Woken::Io { pipes, tree }) } else { Poll::Pending }
            });
            tokio::select! {
                biased;
                woken = ready => return woken,
                () = control.mailbox.woken() => {}
                () = control.env.clock.sleep(until - now) => {}
            }
        }
    }
}

/// The worker's end of a pipe to which an agent writes.
#[derive(Debug)]
pub(super) struct Source {
    pipe: Option<AsyncFd<PipeReader>>,
    buffer: Box<[u8]>,
}

/// The result of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadResult {
    /// This many bytes were added.
    Bytes(usize),
    Nothing,
    /// The pipe is closed.
    End,
}

impl Source {
    /// Must run in the process's async runtime.
    pub(super) fn new(pipe: PipeReader) -> io::Result<Self> {
        // The capacity of a Linux pipe.
        Ok(Self { pipe: Some(watch(pipe, Interest::READABLE)?), buffer: vec![0; 64 << 10].into() })
    }

    /// Reads once, without waiting.
    pub(super) fn read(&mut self, into: &mut Vec<u8>) -> ReadResult {
        let Some(pipe) = &self.pipe else { return ReadResult::End };
        match at_once(pipe, Interest::READABLE, |mut pipe| pipe.read(&mut self.buffer)) {
            Ok(0) => {
                self.pipe = None;
                ReadResult::End
            }
            Ok(n) => {
                into.extend_from_slice(&self.buffer[..n]);
                ReadResult::Bytes(n)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                ReadResult::Nothing
            }
            Err(_) => {
                self.pipe = None;
                ReadResult::End
            }
        }
    }
}

impl Ready for Source {
    fn poll_ready(&self, cx: &mut Context<'_>) -> bool {
        self.pipe.as_ref().is_some_and(|pipe| pipe.poll_read_ready(cx).is_ready())
    }
}

/// The worker's end of a pipe from which an agent reads.
#[derive(Debug)]
pub(super) struct Sink {
    pipe: Option<AsyncFd<PipeWriter>>,
    waiting: Vec<u8>,
    written: usize,
    /// Whether to close the pipe once all data is written.
    close: bool,
}

impl Sink {
    /// Must run in the process's async runtime.
    pub(super) fn new(pipe: PipeWriter) -> io::Result<Self> {
        let pipe = Some(watch(pipe, Interest::WRITABLE)?);
        Ok(Self { pipe, waiting: Vec::new(), written: 0, close: false })
    }

    /// Sends bytes. Writes as many as the pipe accepts now.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        // A reader that is always a little behind would let it grow.
        if self.written > self.waiting.len() / 2 {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
        self.waiting.extend_from_slice(bytes);
        self.flush();
    }

    /// How many bytes wait until the reader takes others.
    pub(super) fn unsent(&self) -> usize {
        self.waiting.len() - self.written
    }

    /// Closes the pipe after the waiting bytes are written.
    pub(super) fn finish(&mut self) {
        self.close = true;
        self.flush();
    }

    /// Writes as much as the pipe accepts. An agent that does not read its input is not an error, because only its
    /// output counts.
    pub(super) fn flush(&mut self) {
        while let Some(pipe) = &self.pipe
            && self.written < self.waiting.len()
        {
            match at_once(pipe, Interest::WRITABLE, |mut pipe| pipe.write(&self.waiting[self.written..])) {
                Ok(n) => self.written += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.pipe = None,
            }
        }
        self.waiting.clear();
        self.written = 0;
        if self.close {
            self.pipe = None;
        }
    }
}

impl Sink {
    /// The default capacity of a pipe.
    const PIPE_BYTES: i32 = 64 << 10;

    /// True if the reader has read all data sent so far. The pipe is small afterwards, until [`Self::widen`].
    pub(super) fn is_taken(&self) -> bool {
        let Some(pipe) = &self.pipe else { return true };
        // A pipe of one page holds one buffer, so it is writable only when it is empty. A pipe with more buffers in use
        // cannot shrink.
        if self.written < self.waiting.len() || fcntl(pipe.get_ref(), FcntlArg::F_SETPIPE_SZ(1)).is_err() {
            return false;
        }
        let mut fds = [PollFd::new(pipe.get_ref().as_fd(), PollFlags::POLLOUT)];
        matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1))
    }

    /// Restores the pipe's default capacity.
    pub(super) fn widen(&self) {
        if let Some(pipe) = &self.pipe {
            // If this fails, transfers only need more steps.
            let _ = fcntl(pipe.get_ref(), FcntlArg::F_SETPIPE_SZ(Self::PIPE_BYTES));
        }
    }
}

impl Ready for Sink {
    fn poll_ready(&self, cx: &mut Context<'_>) -> bool {
        let waiting = self.written < self.waiting.len();
        waiting && self.pipe.as_ref().is_some_and(|pipe| pipe.poll_write_ready(cx).is_ready())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_sent_is_taken_once_the_pipe_is_empty() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let mut sink = Sink::new(writer).expect("registered");
        assert!(sink.is_taken());
        sink.widen();
        let sent = vec![b'x'; 20_000];
        sink.send(&sent[..10_000]);
        sink.send(&sent[10_000..]);
        assert!(!sink.is_taken());
        let mut read = vec![0; 19_999];
        reader.read_exact(&mut read).expect("readable");
        assert!(!sink.is_taken());
        reader.read_exact(&mut read[..1]).expect("readable");
        assert!(sink.is_taken());
        sink.widen();
        drop(reader);
        assert!(sink.is_taken(), "nobody is there to wait for");
    }

    #[tokio::test]
    async fn what_lies_in_a_pipe_is_read_before_the_reactor_knows_of_it() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let mut source = Source::new(reader).expect("registered");
        let mut bytes = Vec::new();
        assert_eq!(source.read(&mut bytes), ReadResult::Nothing);
        for word in [b"one", b"two"] {
            writer.write_all(word).expect("room");
            assert_eq!(source.read(&mut bytes), ReadResult::Bytes(3));
        }
        writer.write_all(b"three").expect("room");
        poll_fn(|cx| if source.poll_ready(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
        drop(writer);
        while source.read(&mut bytes) != ReadResult::End {}
        assert_eq!(bytes, b"onetwothree");
    }
}
