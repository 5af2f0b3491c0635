//! The allocator of the programs. Each program that this crate is linked into allocates with it.

#![expect(unsafe_code, reason = "the library of the allocator has these functions, its bindings do not")]

use std::ffi::{c_int, c_long};

// Only for its exact version, because the numbers of options below are those of this version.
use libmimalloc_sys as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of the option `arena_reserve`, the size of an arena in KiB.
const ARENA_RESERVE: c_int = 23;

/// Smaller than the usual 1 GiB, whose metadata takes 2 MiB. Further arenas are reserved when they are needed.
const ARENA_KIB: c_long = 64 << 10;

/// The number of the option `purge_delay`, the time in milliseconds until free memory is given back to the system.
const PURGE_DELAY: c_int = 15;

/// The usual time.
const PURGE_DELAY_MILLIS: c_long = 1_000;

/// Called by the loader, because the runtime of Rust allocates before `main`, and the first allocation reserves the first arena.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = make_arenas_small;

unsafe extern "C" {
    fn mi_collect(force: bool);
    /// Changes nothing if the environment sets the option.
    fn mi_option_set_default(option: c_int, value: c_long);
    #[cfg(test)]
    fn mi_option_get(option: c_int) -> c_long;
}

extern "C" fn make_arenas_small() {
    set(ARENA_RESERVE, ARENA_KIB);
}

/// Sets an option, unless the environment does (`MIMALLOC_ARENA_RESERVE`, `MIMALLOC_PURGE_DELAY`).
fn set(option: c_int, value: c_long) {
    // SAFETY: the library is linked, because the allocator above is part of it, and it has these options. It stores a number without a lock, and
    // a thread that allocates meanwhile reads the former number or this one: on our processors it is stored by one instruction.
    unsafe { mi_option_set_default(option, value) }
}

/// From now until [`give_back`], free memory is given back to the system at once. Called by a program that is starting: most threads of a start
/// sleep later, and each would have to give back itself what it keeps.
pub fn keep_nothing() {
    set(PURGE_DELAY, 0);
}

/// Gives free memory back to the system. From then on, free memory is kept for a second, because it may be needed again. Otherwise the allocator
/// gives it back only when it frees more, so an idle program would keep it.
pub fn give_back() {
    // SAFETY: the library is linked, and it collects the memory of the calling thread and what is free for all threads, with its own locks. The
    // caller is code in Rust and therefore not within an allocation of this thread.
    unsafe { mi_collect(true) }
    set(PURGE_DELAY, PURGE_DELAY_MILLIS);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Runs a test again in a process where no other test runs, with more variables. True in that process.
    fn is_alone(test: &str, variables: &[(&str, &str)]) -> bool {
        const ALONE: &str = "ATLAS_HEAP_TEST_ALONE";
        if std::env::var_os(ALONE).is_some() {
            return true;
        }
        let mut again = Command::new(std::env::current_exe().expect("this program"));
        again.args(["--exact", &format!("tests::{test}"), "--nocapture"]).env(ALONE, "1");
        let ended = again.envs(variables.iter().copied()).status().expect("started");
        assert!(ended.success(), "{ended}");
        false
    }

    fn option(option: c_int) -> c_long {
        // SAFETY: it reads a number.
        unsafe { mi_option_get(option) }
    }

    /// A count of the kernel in KiB. None on a kernel that does not tell it.
    fn counted(name: &str) -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    }

    #[test]
    fn what_is_in_use_stays_and_what_is_free_is_kept_for_a_while_after_the_start() {
        if !is_alone("what_is_in_use_stays_and_what_is_free_is_kept_for_a_while_after_the_start", &[]) {
            return;
        }
        assert_eq!(
            option(PURGE_DELAY),
            PURGE_DELAY_MILLIS,
            "a program that does not call `keep_nothing` has the usual"
        );
        keep_nothing();
        assert_eq!(option(PURGE_DELAY), 0);
        let kept: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte; 4 << 10]).collect();
        drop(vec![1_u8; 8 << 20]);
        give_back();
        assert!((0..=255).zip(&kept).all(|(byte, kept)| kept.iter().all(|&other| other == byte)));
        assert_eq!(option(PURGE_DELAY), PURGE_DELAY_MILLIS);
    }

    #[test]
    fn what_is_free_is_given_back() {
        const MANY_KIB: u64 = 96 << 10;
        if !is_alone("what_is_free_is_given_back", &[]) {
            return;
        }
        let Some(before) = counted("VmRSS") else {
            return atlas_notice::skip("this kernel does not tell how much memory a process has");
        };
        let many = || (0..MANY_KIB >> 10).map(|_| vec![7_u8; 1 << 20]).collect::<Vec<_>>();
        let used = many();
        let full = counted("VmRSS").expect("counted before");
        assert!(full > before + MANY_KIB / 2, "{full} KiB with 96 MiB, {before} KiB before");
        drop(used);
        give_back();
        let after = counted("VmRSS").expect("counted before");
        assert!(after < before + MANY_KIB / 4, "{after} KiB, {before} KiB before");
        keep_nothing();
        drop(many());
        let after = counted("VmRSS").expect("counted before");
        assert!(after < before + MANY_KIB / 4, "{after} KiB without `give_back`, {before} KiB before");
    }

    #[test]
    fn arenas_are_small() {
        if !is_alone("arenas_are_small", &[]) {
            return;
        }
        assert_eq!(option(ARENA_RESERVE), ARENA_KIB);
        let Some(reserved) = counted("VmData") else {
            return atlas_notice::skip("this kernel does not tell how much memory a process has reserved");
        };
        assert!(reserved < 1 << 20, "{reserved} KiB are reserved");
    }

    #[test]
    fn the_environment_sets_options_for_good() {
        let variables = [("MIMALLOC_PURGE_DELAY", "25"), ("MIMALLOC_ARENA_RESERVE", "128MiB")];
        if !is_alone("the_environment_sets_options_for_good", &variables) {
            return;
        }
        let options = || (option(PURGE_DELAY), option(ARENA_RESERVE));
        assert_eq!(options(), (25, 128 << 10));
        keep_nothing();
        assert_eq!(options(), (25, 128 << 10));
        give_back();
        assert_eq!(options(), (25, 128 << 10));
    }

    #[test]
    fn more_than_an_arena_can_be_allocated() {
        let many: Vec<Vec<u8>> = (0..40).map(|_| vec![7; 4 << 20]).collect();
        assert!(many.iter().all(|part| part.iter().all(|&byte| byte == 7)));
        assert_eq!(vec![7_u8; 80 << 20].len(), 80 << 20);
    }
}
