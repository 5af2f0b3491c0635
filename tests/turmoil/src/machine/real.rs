//! Replaces the real machine's clock, which libraries under a simulated program read directly: HTTP answers carry the
//! date, whose text varies in length on the wire, and HTTP/2 forgets a reset stream after one second. On a simulating
//! thread the monotonic clock shows simulated time and the wall clock stands still. Otherwise the same seed would
//! occasionally lead to another run.

use std::cell::Cell;
use std::time::Duration;

use nix::libc::{
    CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME,
    CLOCK_REALTIME_COARSE, SYS_clock_gettime, c_int, c_long, clockid_t, syscall, timespec,
};

/// The monotonic time at the start of a simulation. Any value works that leaves room for earlier times.
const ORIGIN: Duration = Duration::from_secs(1_000_000);
/// The constant wall-clock time. hyper keeps a date per thread, which is therefore the same in the next run.
const EPOCH: Duration = Duration::from_secs(1_700_000_000);

thread_local! {
    /// The simulated time on a simulating thread. It has no destructor, so it can be read at any time.
    static SIMULATED: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// While this value exists, the thread's clocks show simulated time.
pub(crate) struct Simulated(());

impl Simulated {
    /// Sets this thread's clocks to the start.
    #[inline(never)]
    pub(crate) fn begin() -> Self {
        let simulated = Self(());
        simulated.at(Duration::ZERO);
        simulated
    }

    /// Advances the simulated time.
    pub(crate) fn at(&self, now: Duration) {
        SIMULATED.set(Some(now));
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        SIMULATED.set(None);
    }
}

/// Replaces the C library's function of this name, which the standard library calls.
///
/// # Safety
///
/// The same as for the replaced function: `time` must point to memory for the result.
#[expect(unsafe_code, reason = "the standard library's clocks have no other seam")]
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    let shown = SIMULATED.get().and_then(|now| match clock {
        CLOCK_REALTIME | CLOCK_REALTIME_COARSE => Some(EPOCH),
        CLOCK_MONOTONIC | CLOCK_MONOTONIC_COARSE | CLOCK_MONOTONIC_RAW | CLOCK_BOOTTIME => Some(ORIGIN + now),
        _ => None,
    });
    match shown {
        Some(shown) => {
            let seconds = shown.as_secs().cast_signed();
            let shown = timespec { tv_sec: seconds, tv_nsec: c_long::from(shown.subsec_nanos().cast_signed()) };
            // SAFETY: the caller passes a valid pointer for the result.
            unsafe { time.write(shown) };
            0
        }
        // SAFETY: the arguments are passed to the kernel unchanged.
        None => c_int::try_from(unsafe { syscall(SYS_clock_gettime, clock, time) }).unwrap_or(-1),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "that the real clock is not real is the point")]
mod tests {
    use std::time::{Instant, SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_clocks_of_a_thread_that_simulates_are_simulated() {
        let (before, minute) = (Instant::now(), Duration::from_secs(60));
        {
            let simulated = Simulated::begin();
            let begun = Instant::now();
            assert_eq!(begun.elapsed(), Duration::ZERO);
            simulated.at(minute);
            assert_eq!(begun.elapsed(), minute);
            assert_eq!(SystemTime::now().duration_since(UNIX_EPOCH).ok(), Some(EPOCH));
            let elsewhere = std::thread::scope(|scope| scope.spawn(SystemTime::now).join());
            let elsewhere = elsewhere.ok().and_then(|now| now.duration_since(UNIX_EPOCH).ok());
            assert!(elsewhere.is_some_and(|now| now > EPOCH + minute), "another thread has real clocks");
        }
        assert!(before.elapsed() < minute, "they are real again");
    }
}
