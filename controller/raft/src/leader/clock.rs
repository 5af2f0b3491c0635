//! The leader's clocks (design §2, rule 7).

use std::time::Duration;

use atlas_env::Env;
use atlas_types::{ClusterTime, Micros, Timestamp};

/// Wall and monotonic time may drift apart by so much before it counts as a jump of the wall clock.
const JUMP: Duration = Duration::from_secs(5);

/// Reads the clocks for one leadership: cluster time goes on from the state's, as far as this member's monotonic clock has.
pub(super) struct LeaderClock {
    env: Env,
    base: ClusterTime,
    /// Monotonic time at `base`.
    since: Duration,
    wall_at_base: Timestamp,
}

impl LeaderClock {
    /// Begins a leadership on a state whose time is `base`. The time before it, in which nobody led, does not count.
    pub(super) fn new(env: Env, base: ClusterTime) -> Self {
        let (since, wall_at_base) = (env.clock.monotonic(), env.clock.wall());
        Self { env, base, since, wall_at_base }
    }

    /// Wall time, for display and cron only. The state keeps it from going back.
    pub(super) fn at(&self) -> Timestamp {
        self.env.clock.wall()
    }

    /// The cluster's time.
    pub(super) fn now(&self) -> ClusterTime {
        self.base.plus(Micros::from(self.elapsed()))
    }

    /// This member's monotonic time, for sessions.
    pub(super) fn monotonic(&self) -> Duration {
        self.env.clock.monotonic()
    }

    /// How far the wall clock jumped against the monotonic one since this was asked last, if it did.
    ///
    /// Nothing that this release does waits on the wall clock, so a jump is only told; cron will be suspended by it.
    pub(super) fn jump(&mut self) -> Option<Duration> {
        let wall = self.env.clock.wall();
        let walked = Duration::from_micros(u64::try_from(wall.0 - self.wall_at_base.0).unwrap_or(0));
        let elapsed = self.elapsed();
        let apart = walked.abs_diff(elapsed);
        if apart < JUMP {
            return None;
        }
        self.base = self.now();
        self.since = self.env.clock.monotonic();
        self.wall_at_base = wall;
        Some(apart)
    }

    fn elapsed(&self) -> Duration {
        self.env.clock.monotonic().saturating_sub(self.since)
    }
}
