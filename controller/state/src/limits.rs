//! Limits on running jobs and on starts: which ones hold for a job, and whether they let it start.
//!
//! Running jobs are counted by leases, so those counts are indexes. Starts are counted by token buckets, which are part of the
//! state: the grant that takes a token is the command that changes the bucket.

use atlas_allocation::ConcurrencyPermits;
use atlas_types::{Bucket, ClusterTime, Job, Limit, LimitKey, Rate, Rejection};

use crate::index::limits_of_agent;
use crate::state::State;

/// The most full buckets that one start forgets. More than one, so that they become fewer.
const FORGOTTEN_MAX: usize = 4;

impl State {
    /// All limits that hold for a job: those of its agent, and that of its namespace.
    pub fn limits_for(&self, job: &Job) -> Vec<Limit> {
        let mut limits = limits_of_agent(job);
        if let Some(spec) = self.limits_of(&job.namespace)
            && (spec.jobs_running_max.is_some() || spec.jobs_rate.is_some())
        {
            let key = LimitKey { namespace: job.namespace.clone(), agent: None, value: None };
            let rate = spec.jobs_rate.map(|rate| rate.rate()).filter(|_| !job.has_parked());
            limits.push(Limit { key, running_max: spec.jobs_running_max, rate });
        }
        limits
    }

    /// The running jobs that a limit counts, without those that runs carry; none if there are none.
    pub fn permits(&self, key: &LimitKey) -> Option<&ConcurrencyPermits> {
        match (&key.agent, &key.value) {
            (None, _) => self.running_in(&key.namespace),
            (Some(agent), None) => self.running_of(&key.namespace, agent),
            (Some(_), Some(_)) => self.index.running_by.get(key),
        }
    }

    /// When a token bucket is full.
    pub fn full_at(&self, key: &LimitKey) -> ClusterTime {
        self.buckets.get(key).copied().unwrap_or_default()
    }

    /// From when on a job may start that takes a token of this bucket.
    pub fn opens_at(&self, key: &LimitKey, rate: Rate) -> ClusterTime {
        let full = self.buckets.get(key);
        let crowded = full.is_none() && self.buckets.len() >= Bucket::COUNT_MAX;
        let room_at = self.index.buckets_full.get_min().filter(|_| crowded).map(|(full, _)| *full);
        rate.open_at(full.copied().unwrap_or_default()).max(room_at.unwrap_or_default())
    }

    /// Whether one more job may run, and start now, that a limit counts.
    pub fn permits_one_more(&self, limit: &Limit, depth: u32) -> Result<(), Rejection> {
        let (running, starts) = words(&limit.key);
        let refusal = |what, limit: u32| match what {
            "running jobs" | "starts of jobs" => Rejection::NamespaceLimit { what, limit: limit.into() },
            _ => Rejection::LimitReached { what, limit: limit.into() },
        };
        if let Some(most) = limit.running_max {
            let may = |running: &ConcurrencyPermits| running.taken() < most || running.lends_to(depth);
            if !self.permits(&limit.key).map_or(most > 0, may) {
                return Err(refusal(running, most));
            }
        }
        match limit.rate {
            Some(rate) if self.opens_at(&limit.key, rate) > self.clock => Err(refusal(starts, rate.jobs)),
            _ => Ok(()),
        }
    }

    /// Takes a token of each limit with a rate, for a job that starts now.
    pub(crate) fn take_tokens(&mut self, limits: &[Limit]) {
        for limit in limits {
            let Some(rate) = limit.rate else { continue };
            self.forget_full_buckets();
            let full = rate.after_start(self.full_at(&limit.key), self.clock);
            let old = self.buckets.insert(limit.key.clone(), full);
            self.index.bucket(&limit.key, old, Some(full));
        }
    }

    fn forget_full_buckets(&mut self) {
        for _ in 0..FORGOTTEN_MAX {
            let Some((full, key)) = self.index.buckets_full.get_min().filter(|(full, _)| *full <= self.clock).cloned()
            else {
                return;
            };
            self.buckets.remove(&key);
            self.index.bucket(&key, Some(full), None);
        }
    }
}

/// What a limit counts, in words: running jobs and starts.
fn words(key: &LimitKey) -> (&'static str, &'static str) {
    match (&key.agent, &key.value) {
        (None, _) => ("running jobs", "starts of jobs"),
        (Some(_), None) => ("running jobs of this agent", "starts of jobs of this agent"),
        (Some(_), Some(_)) => ("running jobs of this key", "starts of jobs of this key"),
    }
}
