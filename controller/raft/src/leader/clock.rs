//! The leader's clock for timeouts (ADR 2). Timestamps for people come from [`crate::membership::Group::stamp`].

use std::time::Duration;

use atlas_env::Env;
use atlas_types::{ClusterTime, Micros};

/// Reads the clocks during one leadership. Cluster time continues from the time of the state, at the rate of this
/// member's monotonic clock.
pub(super) struct LeaderClock {
    env: Env,
    base: ClusterTime,
    /// Monotonic time at `base`.
    since: Duration,
}

impl LeaderClock {
    /// Begins a leadership on a state whose time is `base`. Time without a leader does not count.
    pub(super) fn new(env: Env, base: ClusterTime) -> Self {
        let since = env.clock.monotonic();
        Self { env, base, since }
    }

    /// The cluster's time.
    pub(super) fn now(&self) -> ClusterTime {
        self.base.plus(Micros::from(self.elapsed()))
    }

    /// This member's monotonic time, for sessions.
    pub(super) fn monotonic(&self) -> Duration {
        self.env.clock.monotonic()
    }

    fn elapsed(&self) -> Duration {
        self.env.clock.monotonic().saturating_sub(self.since)
    }
}
