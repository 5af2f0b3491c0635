//! Which limits of its agent a job is under: what the counts of running jobs are kept by.

use std::sync::Arc;

use atlas_types::{INLINE_BYTES_MAX, Job, Limit, LimitKey, Payload, PayloadBody, PerKey, Rate};
use serde_json::Value;

/// The limits of its agent that hold for a job.
pub(crate) fn limits_of_agent(job: &Job) -> Vec<Limit> {
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
pub(super) fn key_of(job: &Job) -> Option<LimitKey> {
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
