//! The calls between fork and exec, and on inherited descriptors, that need `unsafe`. This module makes no decisions.
#![expect(unsafe_code, reason = "fork, pre_exec and adopting inherited descriptors have no safe form")]

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::unistd::{ForkResult, Pid};

/// Keeps the descriptors `fds` open in the program that `command` starts, with the same numbers.
pub(super) fn inherit(command: &mut Command, fds: Vec<RawFd>) {
    let keep = move || {
        for &fd in &fds {
            // SAFETY: the caller holds the descriptors open until the command is spawned.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty())).map_err(io::Error::from)?;
        }
        Ok(())
    };
    // SAFETY: `fcntl` is async-signal-safe and the closure allocates nothing.
    unsafe { command.pre_exec(keep) };
}

/// Makes the program that `command` starts enter the control groups whose process files are open as `groups`.
pub(super) fn enter(command: &mut Command, groups: Vec<OwnedFd>) {
    let enter = move || {
        for group in &groups {
            // 0 stands for the writing process.
            nix::unistd::write(group, b"0").map_err(io::Error::from)?;
        }
        Ok(())
    };
    // SAFETY: `write` is async-signal-safe and the closure allocates nothing.
    unsafe { command.pre_exec(enter) };
}

/// Takes over a descriptor that this process inherited, and closes it on exec from now on.
pub(super) fn adopt(fd: RawFd) -> io::Result<OwnedFd> {
    if fd <= 2 {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: the number comes from the worker that passed the descriptor on for this purpose. A wrong number fails in
    // `fcntl`.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    fcntl(&fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    Ok(fd)
}

/// Forks. None in the child.
pub(super) fn fork() -> nix::Result<Option<Pid>> {
    // SAFETY: only the supervisor, which has a single thread, calls this.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(Some(child)),
        ForkResult::Child => Ok(None),
    }
}
