//! Waiting for a process tree's pipes under a deadline, with an ear for stops.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::process::Tree;
use crate::slot::Control;

/// What to wait for at one pipe; none if there is nothing to wait for.
pub(super) type Interest<'fd> = Option<(BorrowedFd<'fd>, PollFlags)>;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken<const N: usize> {
    /// Some of this is ready.
    Io {
        /// Which of the pipes, in the order in which they were given.
        pipes: [bool; N],
        /// The tree has changed.
        tree: bool,
    },
    /// The deadline passed; the tree is dead.
    TimedOut,
    /// A stop was asked for and its grace is over; the tree is dead.
    Stopped,
}

/// A wait that goes on over many calls: deadline and stop belong to one attempt.
#[derive(Debug)]
pub(super) struct Wait {
    deadline: Duration,
    kill_at: Option<Duration>,
}

impl Wait {
    pub(super) fn until(deadline: Duration) -> Self {
        Self { deadline, kill_at: None }
    }

    /// True once a stop was asked for.
    pub(super) fn stopping(&self) -> bool {
        self.kill_at.is_some()
    }

    /// Waits until one of `pipes` is ready, the tree changes, or it is over.
    pub(super) fn next<const N: usize>(
        &mut self,
        control: &Control<'_>,
        tree: &mut Tree,
        pipes: [Interest<'_>; N],
    ) -> io::Result<Woken<N>> {
        let now = control.now();
        if let Some(grace) = control.mailbox.stop_asked() {
            if self.kill_at.is_none() && !grace.is_zero() {
                tree.terminate();
            }
            // A second, harder stop shortens the first one's grace, never the other way round.
            self.kill_at = Some(self.kill_at.map_or(now + grace, |at| at.min(now + grace)));
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            tree.kill();
            return Ok(Woken::Stopped);
        }
        if self.deadline <= now {
            tree.kill();
            return Ok(if self.stopping() { Woken::Stopped } else { Woken::TimedOut });
        }
        let until = self.kill_at.map_or(self.deadline, |at| at.min(self.deadline));
        let mut polled: Vec<PollFd<'_>> = pipes.iter().flatten().map(|&(fd, flags)| PollFd::new(fd, flags)).collect();
        polled.push(PollFd::new(control.mailbox.woken(), PollFlags::POLLIN));
        polled.push(PollFd::new(tree.changes(), PollFlags::POLLIN));
        match poll(&mut polled, timeout(until - now)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = polled.iter().map(|fd| fd.any().unwrap_or(true));
        let pipes = pipes.map(|pipe| pipe.is_some() && ready.next().unwrap_or(false));
        let tree = ready.nth(1).unwrap_or(false);
        Ok(Woken::Io { pipes, tree })
    }
}

/// Whole milliseconds, rounded up so that a wait does not spin through its last one.
fn timeout(duration: Duration) -> PollTimeout {
    PollTimeout::try_from(duration + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
}

/// The worker's end of a pipe that an agent writes into.
#[derive(Debug)]
pub(super) struct Source {
    pipe: Option<PipeReader>,
    buffer: Box<[u8]>,
}

/// What one reading found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// So many bytes were added.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// No more will come.
    End,
}

impl Source {
    pub(super) fn new(pipe: PipeReader) -> io::Result<Self> {
        crate::mailbox::set_nonblocking(&pipe)?;
        // As much as a pipe holds.
        Ok(Self { pipe: Some(pipe), buffer: vec![0; 64 << 10].into() })
    }

    /// What to wait for; none once it is at its end.
    pub(super) fn fd(&self) -> Interest<'_> {
        self.pipe.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::POLLIN))
    }

    /// True if a reading would find something now, the end of the stream included.
    pub(super) fn has_more(&self) -> bool {
        self.fd().is_some_and(|(fd, flags)| matches!(poll(&mut [PollFd::new(fd, flags)], PollTimeout::ZERO), Ok(1)))
    }

    /// Reads once, without waiting.
    pub(super) fn read(&mut self, into: &mut Vec<u8>) -> Found {
        let Some(pipe) = &mut self.pipe else { return Found::End };
        match pipe.read(&mut self.buffer) {
            Ok(0) => {
                self.pipe = None;
                Found::End
            }
            Ok(n) => {
                into.extend_from_slice(&self.buffer[..n]);
                Found::Bytes(n)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Found::Nothing
            }
            Err(_) => {
                self.pipe = None;
                Found::End
            }
        }
    }
}

/// The worker's end of a pipe that an agent reads from.
#[derive(Debug)]
pub(super) struct Sink {
    pipe: Option<PipeWriter>,
    waiting: Vec<u8>,
    written: usize,
    /// Close once all is written.
    close: bool,
}

impl Sink {
    pub(super) fn new(pipe: PipeWriter) -> io::Result<Self> {
        crate::mailbox::set_nonblocking(&pipe)?;
        Ok(Self { pipe: Some(pipe), waiting: Vec::new(), written: 0, close: false })
    }

    /// Sends bytes, now as far as the pipe takes them.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        self.flush();
    }

    /// Sends an end of file after what is waiting.
    pub(super) fn finish(&mut self) {
        self.close = true;
        self.flush();
    }

    /// What to wait for; none while nothing is waiting.
    pub(super) fn fd(&self) -> Interest<'_> {
        let pipe = self.pipe.as_ref().filter(|_| self.written < self.waiting.len())?;
        Some((pipe.as_fd(), PollFlags::POLLOUT))
    }

    /// Writes what the pipe takes. An agent that does not read its input is no error: its output decides.
    pub(super) fn flush(&mut self) {
        while let Some(pipe) = &mut self.pipe
            && self.written < self.waiting.len()
        {
            match pipe.write(&self.waiting[self.written..]) {
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

/// Cuts what a process writes into lines of a bounded length.
#[derive(Debug, Default)]
pub(super) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    const LINE_BYTES_MAX: usize = 8 << 10;

    /// Adds bytes and passes on every whole line. Bytes that are no UTF-8 are replaced.
    pub(super) fn push(&mut self, bytes: &[u8], mut line: impl FnMut(String)) {
        self.rest.extend_from_slice(bytes);
        let mut from = 0;
        loop {
            let rest = &self.rest[from..];
            let window = &rest[..rest.len().min(Self::LINE_BYTES_MAX)];
            match window.iter().position(|&byte| byte == b'\n') {
                Some(end) => {
                    line(text(&rest[..end]));
                    from += end + 1;
                }
                None if rest.len() >= Self::LINE_BYTES_MAX => {
                    line(text(window));
                    from += Self::LINE_BYTES_MAX;
                }
                None => break,
            }
        }
        self.rest.drain(..from);
    }

    /// Passes on what is left without an end of line.
    pub(super) fn finish(&mut self, line: impl FnOnce(String)) {
        if !self.rest.is_empty() {
            line(text(&std::mem::take(&mut self.rest)));
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(b"\r").unwrap_or(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_wherever_the_bytes_were() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for bytes in [&b"one\r\ntw"[..], b"o\n\nthr", b"ee"] {
            lines.push(bytes, |line| seen.push(line));
        }
        lines.finish(|line| seen.push(line));
        assert_eq!(seen, ["one", "two", "", "three"]);
    }

    #[test]
    fn endless_lines_are_cut_and_bad_bytes_replaced() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        lines.push(&[b'x'; 20_000], |line| seen.push(line.len()));
        lines.push(b"\xff\n", |line| seen.push(line.len()));
        assert_eq!(seen, [8_192, 8_192, 20_000 - 2 * 8_192 + "\u{fffd}".len()]);
    }
}
