//! Namespaces, and the loopback device of a network namespace.

use std::fs;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket};
use nix::unistd::{Gid, Uid, getgid, getuid};
use std::os::fd::AsRawFd;

/// Creates namespaces of mounts, processes, IPC and host names. A `user` namespace maps this user to itself.
pub(crate) fn enter(user: bool, network: bool) -> nix::Result<()> {
    let (uid, gid) = (getuid(), getgid());
    let mut flags =
        CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    flags.set(CloneFlags::CLONE_NEWUSER, user);
    flags.set(CloneFlags::CLONE_NEWNET, network);
    unshare(flags)?;
    if !user {
        return Ok(());
    }
    map_user(uid, gid)
}

/// Maps the user to itself in the user namespace that this process has just created.
pub fn map_user(uid: Uid, gid: Gid) -> nix::Result<()> {
    let write = |path: &str, text: String| fs::write(path, text).map_err(|error| errno(&error));
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// The error number of an I/O error.
pub(crate) fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

/// Switches on the loopback device of a new network namespace: programs talk to themselves over it.
pub(crate) fn open_loopback() -> nix::Result<()> {
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    sendto(socket.as_raw_fd(), &loopback_up(), &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let mut answer = [0; 1 << 10];
    let count = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    // The answer repeats the request after the header of 16 bytes and the error number, which is negative.
    let number = answer.get(16..20).filter(|_| count >= 20).and_then(|bytes| bytes.try_into().ok());
    match number.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(number) => Err(Errno::from_raw(number.saturating_neg())),
        None => Err(Errno::EPROTO),
    }
}

/// The request `RTM_NEWLINK` of rtnetlink for the device with the index 1, which is always the loopback device.
fn loopback_up() -> [u8; 32] {
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST_ACK: u16 = 1 | 4;
    const IFF_UP: u32 = 1;
    let mut message = [0; 32];
    message[..4].copy_from_slice(&32_u32.to_ne_bytes());
    message[4..6].copy_from_slice(&RTM_NEWLINK.to_ne_bytes());
    message[6..8].copy_from_slice(&NLM_F_REQUEST_ACK.to_ne_bytes());
    message[20..24].copy_from_slice(&1_i32.to_ne_bytes());
    message[24..28].copy_from_slice(&IFF_UP.to_ne_bytes());
    message[28..].copy_from_slice(&IFF_UP.to_ne_bytes());
    message
}
