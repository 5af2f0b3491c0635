//! Limits on what runs at once and on how often something starts.

use std::sync::Arc;

use crate::{AgentName, ClusterTime, Micros, Namespace};

/// How often jobs may start: a token bucket that holds `burst` tokens and gets `jobs` tokens in each `per`.
///
/// In any time of this length at most `jobs + burst - 1` jobs start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    /// At least 1.
    pub jobs: u32,
    /// The time in which so many may start.
    pub per: Micros,
    /// How many may start at once after a pause; at least 1.
    pub burst: u32,
}

impl Rate {
    /// Most jobs of a rate, and most of its burst.
    pub const JOBS_MAX: u32 = 1_000_000;
    /// Longest time of a rate.
    pub const SECONDS_MAX: u64 = 86_400;

    /// A rate of so many jobs in so many seconds. Without a burst as many as in one second may start at once, and at least one.
    pub fn new(jobs: u32, seconds: u64, burst: Option<u32>) -> Self {
        let jobs = jobs.clamp(1, Self::JOBS_MAX);
        let seconds = seconds.clamp(1, Self::SECONDS_MAX);
        let in_a_second = u32::try_from(u64::from(jobs) / seconds).unwrap_or(u32::MAX);
        let burst = burst.unwrap_or(in_a_second).clamp(1, Self::JOBS_MAX);
        Self { jobs, per: Micros::from_secs(seconds), burst }
    }

    /// The time in which the bucket gets one token, rounded up so that no time has more starts than it may.
    fn interval(self) -> Micros {
        Micros(self.per.0.div_ceil(u64::from(self.jobs.max(1))).max(1))
    }

    /// From when on a job may start, for a bucket that is full at `full`.
    pub fn open_at(self, full: ClusterTime) -> ClusterTime {
        let ahead = self.interval().0.saturating_mul(u64::from(self.burst.saturating_sub(1)));
        ClusterTime(full.0.saturating_sub(ahead))
    }

    /// When the bucket is full again, if one job more starts at `now`.
    pub fn after_start(self, full: ClusterTime, now: ClusterTime) -> ClusterTime {
        full.max(now).plus(self.interval())
    }
}

/// Limits that hold for each value of a key by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PerKey {
    /// A JSON pointer into the input, `/customer/id`, or a label of the job, `label:customer`.
    pub key: Arc<str>,
    /// Most jobs of one value that may run at once.
    pub concurrency: Option<u32>,
    /// How often jobs of one value may start.
    pub rate: Option<Rate>,
}

impl PerKey {
    /// Most bytes of `key`.
    pub const KEY_BYTES_MAX: usize = 256;
    /// Most bytes of a value; a longer one counts by its beginning.
    pub const VALUE_BYTES_MAX: usize = 128;

    /// The label that `key` names; none if it is a pointer.
    pub fn label(&self) -> Option<&str> {
        self.key.strip_prefix("label:")
    }
}

/// What a limit counts: the jobs of a namespace, of one of its agents, or of one value of that agent's key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitKey {
    pub namespace: Namespace,
    /// None for all agents.
    pub agent: Option<AgentName>,
    /// None for all values.
    pub value: Option<Arc<str>>,
}

/// One limit that holds for a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit {
    /// What it counts.
    pub key: LimitKey,
    /// Most of these jobs that may run at once.
    pub running_max: Option<u32>,
    /// How often these jobs may start.
    pub rate: Option<Rate>,
}

/// A token bucket of the state. One that is full is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// What it counts.
    pub key: LimitKey,
    /// When it is full.
    pub full: ClusterTime,
}

impl Bucket {
    /// Most buckets of the state. While there are so many, jobs whose bucket would be one more wait until one is full.
    pub const COUNT_MAX: usize = 100_000;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When each of `count` jobs starts that may start as early as the rate allows.
    fn starts(rate: Rate, count: usize) -> Vec<u64> {
        let (mut full, mut now) = (ClusterTime(0), ClusterTime(0));
        let mut starts = Vec::new();
        for _ in 0..count {
            now = now.max(rate.open_at(full));
            full = rate.after_start(full, now);
            starts.push(now.0 / 1_000);
        }
        starts
    }

    #[test]
    fn a_bucket_starts_its_burst_at_once_and_then_keeps_to_the_rate() {
        assert_eq!(starts(Rate::new(2, 1, Some(1)), 4), [0, 500, 1_000, 1_500]);
        assert_eq!(starts(Rate::new(2, 1, Some(3)), 5), [0, 0, 0, 500, 1_000]);
        assert_eq!(starts(Rate::new(1, 60, None), 2), [0, 60_000]);
        assert_eq!(Rate::new(600, 60, None).burst, 10);
    }

    #[test]
    fn a_bucket_does_not_hold_more_than_its_burst() {
        let rate = Rate::new(1, 1, Some(2));
        let later = ClusterTime(1_000_000_000);
        let full = rate.after_start(rate.after_start(ClusterTime(5), later), later);
        assert_eq!(rate.open_at(full), later.plus(Micros::from_secs(1)));
    }

    #[test]
    fn no_time_has_more_starts_than_the_rate_and_the_burst_say() {
        for (jobs, seconds, burst) in [(3, 1, 1), (7, 2, 4), (1, 9, 2)] {
            let rate = Rate::new(jobs, seconds, Some(burst));
            let starts = starts(rate, 40);
            for (first, start) in starts.iter().enumerate() {
                let within = starts[first..].iter().filter(|other| **other < start + seconds * 1_000).count();
                assert!(within <= (jobs + burst - 1) as usize, "{rate:?}: {starts:?}");
            }
        }
    }
}
