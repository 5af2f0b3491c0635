//! Time: a wall clock for display and a monotonic one for all timeouts.

use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use atlas_types::Timestamp;

/// Reads clocks and waits.
pub trait Clock: Send + Sync + 'static {
    /// Wall-clock time. May jump; never use it for a timeout.
    fn wall(&self) -> Timestamp;

    /// Time since an arbitrary origin of this process; never goes back.
    fn monotonic(&self) -> Duration;

    /// Completes after `duration`. Needs the process's async runtime.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clocks")]
    #[expect(clippy::new_without_default, reason = "a default that reads a clock would surprise")]
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clocks")]
    fn wall(&self) -> Timestamp {
        // A clock before 1970 is read as the epoch. The log stamps its entries with times that never decrease, so this
        // is safe.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        #[expect(clippy::disallowed_methods, reason = "this is the one place that waits on the machine's clock")]
        Box::pin(tokio::time::sleep(duration))
    }
}
