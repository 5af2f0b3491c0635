//! A TAP network device, whose frames this process reads and writes.
#![expect(unsafe_code, reason = "making a TAP device is an ioctl, which has no safe form")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::libc;

/// Creates the device in the network namespace of this thread; closing the file removes it.
pub(super) fn open(name: &str) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    // SAFETY: `ifreq` is a structure of integers, for which zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request outlives the call, and the name in it ends with a zero.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw const request) };
    Errno::result(result)?;
    Ok(file)
}
