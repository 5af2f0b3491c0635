//! Times and durations as integers with a unit. There are two clocks, and the type of a value tells which one it belongs to.

use std::time::Duration;

/// Wall-clock time in microseconds since the Unix epoch. For display and cron only, never for order or timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// "Not yet", which clients see as `0.0` (compatibility §0.4).
    pub const NOT_YET: Self = Self(0);

    /// Unix seconds with a fraction, the form of the HTTP API.
    pub fn as_unix_seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// Time for which the cluster has had a leader, in microseconds: all timeouts and due times are on this clock.
///
/// Every log entry carries it: the leader adds its own monotonic clock to the last value in the log, so it never jumps with a
/// wall clock and stands still while there is no leader. A new leader therefore gives everything its full remaining time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClusterTime(pub u64);

impl ClusterTime {
    /// The end of time, which never comes.
    pub const END: Self = Self(u64::MAX);

    /// This time and a duration later; saturates.
    #[must_use]
    pub fn plus(self, duration: Micros) -> Self {
        Self(self.0.saturating_add(duration.0))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    pub fn since(self, earlier: Self) -> Micros {
        Micros(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Micros(pub u64);

impl Micros {
    /// A duration of whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds * 1_000_000)
    }

    /// A duration of whole milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds * 1_000)
    }

    /// Milliseconds with a fraction, the form of the HTTP API.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// As the standard library's duration.
    pub const fn as_duration(self) -> Duration {
        Duration::from_micros(self.0)
    }
}

impl From<Duration> for Micros {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
}
