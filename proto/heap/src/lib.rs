//! The allocator of the programs: who depends on this crate has it.

#![expect(unsafe_code, reason = "the library of the allocator has these functions, its bindings do not")]

use std::ffi::{c_int, c_long};

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
static BEFORE_MAIN: extern "C" fn() = set_options;

unsafe extern "C" {
    fn mi_collect(force: bool);
    fn mi_option_set(option: c_int, value: c_long);
    #[cfg(test)]
    fn mi_option_get(option: c_int) -> c_long;
}

extern "C" fn set_options() {
    // SAFETY: the library is linked, because the allocator above is part of it, and it reads its options when it needs them.
    unsafe {
        mi_option_set(ARENA_RESERVE, ARENA_KIB);
        // What threads free during the start is given back at once: later, each thread has to do so itself, and most of them sleep.
        mi_option_set(PURGE_DELAY, 0);
    }
}

/// Gives free memory back to the system, and ends the start: from now on, free memory is kept for a second, because it may be needed again. The
/// allocator gives it back only when it frees more, so an idle program would keep it.
pub fn give_back() {
    // SAFETY: the library is linked, any thread may call this at any time, and the allocator reads the option when it frees memory.
    unsafe {
        mi_collect(true);
        mi_option_set(PURGE_DELAY, PURGE_DELAY_MILLIS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_stays_and_what_is_free_is_kept_for_a_while_after_the_start() {
        // SAFETY: it reads a number.
        let delay = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 0);
        let kept: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte; 4 << 10]).collect();
        drop(vec![1_u8; 8 << 20]);
        give_back();
        assert!((0..=255).zip(&kept).all(|(byte, kept)| kept.iter().all(|&other| other == byte)));
        assert_eq!(delay(), PURGE_DELAY_MILLIS);
    }

    #[test]
    fn arenas_are_small() {
        // SAFETY: it reads a number.
        assert_eq!(unsafe { mi_option_get(ARENA_RESERVE) }, ARENA_KIB);
        let status = std::fs::read_to_string("/proc/self/status").expect("a process of its own");
        let reserved = status.lines().find_map(|line| line.strip_prefix("VmData:")).expect("counted");
        let reserved: u64 = reserved.trim().trim_end_matches(" kB").parse().expect("a number");
        assert!(reserved < 1 << 20, "{reserved} KiB are reserved");
    }

    #[test]
    fn more_than_an_arena_can_be_allocated() {
        let many: Vec<Vec<u8>> = (0..40).map(|_| vec![7; 4 << 20]).collect();
        assert!(many.iter().all(|part| part.iter().all(|&byte| byte == 7)));
        assert_eq!(vec![7_u8; 80 << 20].len(), 80 << 20);
    }
}
