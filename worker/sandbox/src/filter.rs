//! The filter of system calls: a deny list of calls that widen the rights of a process or that few programs need.

use std::collections::BTreeMap;

use nix::errno::Errno;
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// The sockets that a process may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Of the internet, of the machine, and those that ask the kernel about networks. With a network namespace they
    /// reach nothing outside.
    Internet,
    /// Only of the machine.
    Local,
}

/// Calls that are denied with any arguments.
const DENIED: &[libc::c_long] = &[
    // other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // mounts and namespaces
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_fanotify_init,
    // parts of the kernel with a history of holes
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_lookup_dcookie,
    // the machine
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// The flags of `clone` that create namespaces.
const NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    0x80, // CLONE_NEWTIME
];

/// Requests of `ioctl` that type into a terminal.
const TYPING: [u64; 2] = [0x5412, 0x541c]; // TIOCSTI, TIOCLINUX

/// The bit of the numbers of x32, a second set of numbers for the calls of x86_64.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Filters the calls of this process and of all that it starts. `no_new_privs` must be set.
pub(crate) fn apply(sockets: Sockets) -> nix::Result<()> {
    for program in programs(sockets).map_err(|_| Errno::EINVAL)? {
        apply_filter(&program).map_err(|_| Errno::EPERM)?;
    }
    Ok(())
}

fn programs(sockets: Sockets) -> Result<[BpfProgram; 2], seccompiler::BackendError> {
    // `clone3` passes its flags in memory, where a filter cannot read them. Programs use `clone` on a kernel without it.
    let unknown = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok([program(unknown, Errno::ENOSYS)?, without_x32(program(denied(sockets)?, Errno::EPERM)?)])
}

fn program(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: Errno) -> Result<BpfProgram, seccompiler::BackendError> {
    // Another processor than the filter knows has none, rather than that of another one.
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32), architecture)?.try_into()
}

fn denied(sockets: Sockets) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    use SeccompCmpArgLen::{Dword, Qword};
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = DENIED.iter().map(|&call| (call, Vec::new())).collect();
    let mut namespaces = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag.cast_unsigned());
        namespaces.push(SeccompRule::new(vec![SeccompCondition::new(0, Qword, SeccompCmpOp::MaskedEq(flag), flag)?])?);
    }
    rules.insert(libc::SYS_clone, namespaces);
    let families: &[libc::c_int] = match sockets {
        Sockets::Internet => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        Sockets::Local => &[libc::AF_UNIX],
    };
    let other =
        |family: &libc::c_int| SeccompCondition::new(0, Dword, SeccompCmpOp::Ne, u64::from(family.cast_unsigned()));
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(families.iter().map(other).collect::<Result<_, _>>()?)?]);
    let typing = |request: u64| SeccompRule::new(vec![SeccompCondition::new(1, Dword, SeccompCmpOp::Eq, request)?]);
    rules.insert(libc::SYS_ioctl, TYPING.into_iter().map(typing).collect::<Result<_, _>>()?);
    // It may be asked for, and set to its default.
    let personality = [0, 0xffff_ffff].map(|known| SeccompCondition::new(0, Dword, SeccompCmpOp::Ne, known));
    let personality = personality.into_iter().collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_personality, vec![SeccompRule::new(personality)?]);
    Ok(rules)
}

/// Denies all calls by their numbers of x32, which the rules do not list.
#[cfg(target_arch = "x86_64")]
fn without_x32(program: BpfProgram) -> BpfProgram {
    use seccompiler::sock_filter;
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    let before = [
        sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: 0 }, // the number of the call
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: X32 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: ERRNO | Errno::ENOSYS as u32 },
    ];
    before.into_iter().chain(program).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn without_x32(program: BpfProgram) -> BpfProgram {
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's name of this processor, which every call shows to a filter.
    const PROCESSOR: u32 = if cfg!(target_arch = "aarch64") { 0xc000_00b7 } else { 0xc000_003e };

    #[test]
    fn the_filters_are_of_this_processor_and_within_the_limit_of_the_kernel() {
        for sockets in [Sockets::Internet, Sockets::Local] {
            for program in programs(sockets).expect("compiles") {
                assert!((4..4_096).contains(&program.len()), "{}", program.len());
                assert!(program.iter().any(|instruction| instruction.k == PROCESSOR));
            }
        }
    }
}
