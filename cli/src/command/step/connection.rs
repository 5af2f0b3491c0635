//! The descriptors that the worker of a durable program gives it.

use std::fs::File;
use std::io::BufReader;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;

use super::NO_WORKER;
use crate::exit::Exit;
use crate::failure::Failure;

/// The variables with the numbers of the descriptors: to read, to write, and to lock.
pub(super) const VARIABLES: [&str; 3] = ["ATLAS_STEP_IN", "ATLAS_STEP_OUT", "ATLAS_STEP_LOCK"];

/// The connection to the worker, which this process has for itself.
pub(super) struct Connection {
    pub(super) input: BufReader<File>,
    pub(super) output: File,
    /// The lock is that of this process, until it ends.
    _lock: File,
}

impl Connection {
    /// Takes the descriptors, and waits until other steps of the program are over.
    pub(super) fn open() -> Result<Self, Failure> {
        let numbers = VARIABLES.map(|name| std::env::var(name).ok().and_then(|text| text.parse::<RawFd>().ok()));
        let [Some(input), Some(output), Some(lock)] = numbers else { return Err(outside()) };
        let (Some(input), Some(output), Some(lock)) = (adopt(input), adopt(output), adopt(lock)) else {
            return Err(outside());
        };
        let whole = libc::flock {
            l_type: libc::F_WRLCK as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        loop {
            match fcntl(&lock, FcntlArg::F_SETLKW(&whole)) {
                Err(nix::errno::Errno::EINTR) => {}
                Err(error) => {
                    let why = format!("could not wait for other steps: {error}");
                    return Err(Failure::new(NO_WORKER, Exit::Unreachable, why));
                }
                Ok(_) => break,
            }
        }
        Ok(Self { input: BufReader::new(input), output, _lock: lock })
    }
}

/// Takes a descriptor that this process inherited. Commands that it starts do not inherit it.
#[expect(unsafe_code, reason = "adopting inherited descriptors has no safe form")]
fn adopt(number: RawFd) -> Option<File> {
    if number <= 2 {
        return None;
    }
    // SAFETY: the descriptor is only asked for its flags, which fails if there is none of that number.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    // SAFETY: it is open, it was inherited, and nothing else of this process knows of it.
    Some(File::from(unsafe { OwnedFd::from_raw_fd(number) }))
}

fn outside() -> Failure {
    let inner = std::env::var_os("ATLAS_STEP_KEY").is_some();
    let (what, next) = if inner {
        ("a step cannot have steps of its own", "make them one after the other: atlasctl docs exec")
    } else {
        (
            "atlasctl step works inside a job of an exec agent whose contract says durable: true",
            "how to write one: atlasctl docs exec",
        )
    };
    Failure::new(NO_WORKER, Exit::Usage, what).with_next(next)
}
