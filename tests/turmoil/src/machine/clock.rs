//! A machine's clocks: simulated time at the machine's own rate, and a wall clock that can jump.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use atlas_types::Timestamp;

/// The wall-clock time at which the simulation starts.
const EPOCH: i64 = 1_700_000_000_000_000;

/// The clock errors of a machine. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Skew {
    /// By how many microseconds the wall clock is ahead.
    wall: Arc<AtomicI64>,
    /// The rate error of its clocks in millionths.
    rate_ppm: i64,
    /// A deliberate bug: there is only one clock, and it jumps.
    monotonic_is_wall: bool,
}

impl Skew {
    /// Makes the monotonic clock follow the wall clock.
    pub(crate) fn one_clock(self) -> Self {
        Self { monotonic_is_wall: true, ..self }
    }

    /// Clocks of this rate.
    pub(crate) fn of(rate_ppm: i64) -> Self {
        Self { rate_ppm, ..Self::default() }
    }

    /// Makes the wall clock jump.
    pub(crate) fn jump(&self, micros: i64) {
        self.wall.fetch_add(micros, Ordering::Relaxed);
    }

    fn local(&self, time: Duration) -> Duration {
        scaled(time, 1_000_000 + self.rate_ppm, 1_000_000)
    }

    fn global(&self, time: Duration) -> Duration {
        scaled(time, 1_000_000, 1_000_000 + self.rate_ppm)
    }
}

fn scaled(time: Duration, by: i64, of: i64) -> Duration {
    let (by, of) = (u128::from(by.unsigned_abs()), u128::from(of.unsigned_abs()));
    Duration::from_nanos(u64::try_from(time.as_nanos() * by / of).unwrap_or(u64::MAX))
}

/// The simulated time since the start. Valid only inside the simulation.
pub(crate) fn now() -> Duration {
    turmoil::sim_elapsed().unwrap_or_default()
}

/// The clocks of a process that starts now.
pub(crate) struct Clock {
    origin: Duration,
    skew: Skew,
}

impl Clock {
    pub(crate) fn new(skew: Skew) -> Self {
        Self { origin: now(), skew }
    }
}

impl atlas_env::Clock for Clock {
    fn wall(&self) -> Timestamp {
        let walked = i64::try_from(self.skew.local(now()).as_micros()).unwrap_or(i64::MAX);
        Timestamp(EPOCH + walked + self.skew.wall.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        if self.skew.monotonic_is_wall {
            return Duration::from_micros(u64::try_from(self.wall().0).unwrap_or(0));
        }
        self.skew.local(now().saturating_sub(self.origin))
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        #[expect(clippy::disallowed_methods, reason = "the simulated clock is what others wait with")]
        Box::pin(tokio::time::sleep(self.skew.global(duration)))
    }
}
