//! Descriptors that the runtime's reactor watches, read and written without blocking.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Types that own the same descriptor during their whole lifetime.
pub(crate) trait OwnsOne: AsFd + AsRawFd {}

impl OwnsOne for PipeReader {}
impl OwnsOne for PipeWriter {}
impl OwnsOne for UnixStream {}

/// Registers a descriptor with the reactor and makes it non-blocking. Must run in the process's async runtime.
#[expect(unsafe_code, reason = "that a descriptor stays the same while it is watched is said to the runtime")]
pub(crate) fn watch<T: OwnsOne>(inner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    let flags = OFlag::from_bits_truncate(fcntl(&inner, FcntlArg::F_GETFL)?);
    fcntl(&inner, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    // SAFETY: the descriptor is owned by `inner`, which always returns the same descriptor and closes it only when it
    // is dropped.
    Ok(unsafe { AsyncFd::register_with_interest(inner, interest) }?)
}

/// Reads or writes immediately, without waiting for the reactor.
pub(crate) fn at_once<P: AsRawFd, T>(
    pipe: &AsyncFd<P>,
    interest: Interest,
    mut attempt: impl FnMut(&P) -> io::Result<T>,
) -> io::Result<T> {
    let mut tried = false;
    // The attempt runs inside `try_io`, so that the reactor learns that a pipe was empty.
    let result = pipe.try_io(interest, |pipe| {
        tried = true;
        attempt(pipe)
    });
    if tried { result } else { attempt(pipe.get_ref()) }
}
