//! Limits on running jobs and on starts: which ones hold for a job, and whether they let it start.
//!
//! Running jobs are counted by leases, so those counts are indexes. Starts are counted by token buckets, which are part of the
//! state: the grant that takes a token is the command that changes the bucket.

use std::sync::Arc;

use atlas_allocation::ConcurrencyPermits;
use atlas_types::{
    Bucket, ClusterTime, INLINE_BYTES_MAX, Job, Limit, LimitKey, Payload, PayloadBody, PerKey, Rate, Rejection,
};
use serde_json::Value;

use crate::state::State;

/// The most full buckets that one start forgets. More than one, so that they become fewer.
const FORGOTTEN_MAX: usize = 4;

/// The limits of its agent that hold for a job.
pub(crate) fn of_agent(job: &Job) -> Vec<Limit> {
    let Some(spec) = job.spec.as_ref() else { return Vec::new() };
    // A job that parked has started, and goes on after its recorded steps.
    let rate = |rate: Option<Rate>| rate.filter(|_| !job.has_parked());
    let mut limits = Vec::new();
    if spec.concurrency.is_some() || spec.rate.is_some() {
        let key = LimitKey { namespace: job.namespace.clone(), agent: Some(job.agent.clone()), value: None };
        limits.push(Limit { key, running_max: spec.concurrency, rate: rate(spec.rate) });
    }
    if let (Some(per_key), Some(key)) = (&spec.per_key, key_of(job)) {
        limits.push(Limit { key, running_max: per_key.concurrency, rate: rate(per_key.rate) });
    }
    limits
}

/// The value of its agent's key, for a job that has one.
pub(crate) fn key_of(job: &Job) -> Option<LimitKey> {
    let per_key = job.spec.as_ref()?.per_key.as_ref()?;
    let value = match per_key.label() {
        Some(label) => job.labels.get(label)?.clone(),
        None => member(&job.input, &per_key.key)?,
    };
    let end = (0..=PerKey::VALUE_BYTES_MAX).rev().find(|end| value.is_char_boundary(*end)).unwrap_or(0);
    let value: Arc<str> = value.get(..end).unwrap_or(&value).into();
    Some(LimitKey { namespace: job.namespace.clone(), agent: Some(job.agent.clone()), value: Some(value) })
}

/// A text, whole number or truth value of an inline input; none if there is none at this pointer. Numbers with a fraction are left
/// out: how they are written differs between programs.
fn member(input: &Payload, pointer: &str) -> Option<String> {
    let PayloadBody::Inline(bytes) = &input.body else { return None };
    if input.key_id != 0 || bytes.len() > INLINE_BYTES_MAX {
        return None;
    }
    match serde_json::from_slice::<Value>(bytes).ok()?.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        number => number.as_i64().map(|number| number.to_string()),
    }
}

impl State {
    /// All limits that hold for a job: those of its agent, and that of its namespace.
    pub fn limits_for(&self, job: &Job) -> Vec<Limit> {
        let mut limits = of_agent(job);
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
