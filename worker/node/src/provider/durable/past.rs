//! What earlier attempts of a durable program recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atlas_durable::{CallKind, CallOutcome, CallRecord, Key, PastCall};
use atlas_types::{StepKey, StepKind};
use serde_json::value::{RawValue, to_raw_value};

use super::inbox::{Aside, Kept, MessagePlace};
use crate::journal::{JournalError, RecordedStep};
use crate::provider::program_model::{told_of, told_of_record};

/// How many bytes of records a program is told at its beginning.
const TOLD_BYTES_MAX: usize = 256 << 10;

/// What was recorded.
pub(super) struct Past {
    /// The outcomes of the calls, in the order of their records.
    outcomes: Vec<(CallKind, Arc<[u8]>)>,
    /// The first of them, which the program is told at its beginning: JSON of each.
    told: Vec<String>,
}

/// The same, for those who go on from there.
pub(super) struct Before {
    pub(super) past: Past,
    pub(super) records: Vec<PastCall>,
    /// Keys of what was begun and must not be done twice.
    pub(super) intents: BTreeSet<StepKey>,
    /// Messages that no call has taken.
    pub(super) kept: BTreeMap<MessagePlace, Kept>,
    /// How many messages of the job itself were read.
    pub(super) read: u64,
    pub(super) bytes: usize,
}

impl Past {
    /// What a job finds recorded, which may be in part the record of another job.
    pub(super) fn of(steps: &[RecordedStep], job: &str) -> Result<Before, JournalError> {
        let mut past = Self { outcomes: Vec::new(), told: Vec::new() };
        let (mut records, mut intents) = (Vec::new(), BTreeSet::new());
        let (mut kept, mut taken, mut told_bytes) = (BTreeMap::new(), BTreeSet::new(), Some(0));
        for (number, (kind, key, outcome)) in steps.iter().enumerate() {
            let unreadable = |error| JournalError::Unreadable { step: number as u64, error };
            match CallRecord::read(outcome).transpose().map_err(unreadable)? {
                Some(record) => {
                    taken.extend(MessagePlace::of(&record, job));
                    let kind = kind_of(&record.call);
                    records.push(PastCall { key: Key(key.0), kind, name: record.name.clone() });
                    past.outcomes.push((kind, Arc::clone(outcome)));
                    told_bytes = told_bytes.filter(|_| record.alone).and_then(|bytes| past.tell(record, bytes));
                }
                None if *kind == StepKind::Model => {
                    records.push(PastCall { key: Key(key.0), kind: CallKind::Model, name: String::new() });
                    past.outcomes.push((CallKind::Model, Arc::clone(outcome)));
                    told_bytes = None;
                }
                None if *kind == StepKind::Intent => drop(intents.insert(*key)),
                None => {
                    if let Some(aside) = Aside::read(outcome).transpose().map_err(unreadable)? {
                        kept.insert(MessagePlace::new(aside.of, aside.aside, job), aside.message);
                    }
                }
            }
        }
        let read = kept.keys().chain(&taken).filter(|place| place.is_own).collect::<BTreeSet<_>>().len() as u64;
        taken.iter().for_each(|place| drop(kept.remove(place)));
        let bytes = steps.iter().map(|(_, _, outcome)| outcome.len()).sum();
        Ok(Before { past, records, intents, kept, read, bytes })
    }

    /// Adds a record to those that the program is told at its beginning. None once there is no more room.
    fn tell(&mut self, record: CallRecord, bytes: usize) -> Option<usize> {
        let (id, at_us) = (serde_json::to_string(&record.call).ok()?, record.at_us);
        let told = match record.into_outcome() {
            CallOutcome::Value(value) => format!(r#"[{id},{{"value":{}}},{at_us}]"#, value.get()),
            CallOutcome::Error(error) => format!(r#"[{id},{{"error":{error}}},{at_us}]"#),
        };
        let bytes = bytes + told.len();
        if bytes > TOLD_BYTES_MAX {
            return None;
        }
        self.told.push(told);
        Some(bytes)
    }

    /// What the program is told at its beginning, JSON.
    pub(super) fn told(&self) -> String {
        format!("[{}]", self.told.join(","))
    }

    /// How many records that is.
    pub(super) fn told_count(&self) -> usize {
        self.told.len()
    }

    /// The message that a call has taken, by its record.
    pub(super) fn message(&self, record: usize, job: &str) -> Option<(MessagePlace, Kept)> {
        let (_, outcome) = self.outcomes.get(record)?;
        let record = CallRecord::read(outcome)?.ok()?;
        let place = MessagePlace::of(&record, job)?;
        Some((place, serde_json::from_str(record.value?.get()).ok()?))
    }

    /// What a call gets, and when it was recorded.
    pub(super) fn outcome(&self, record: usize) -> Result<(CallOutcome, Option<i64>), serde_json::Error> {
        let Some((kind, outcome)) = self.outcomes.get(record) else { return Ok((CallOutcome::null(), None)) };
        match CallRecord::read(outcome) {
            Some(record) => record.map(|record| {
                let at_us = record.at_us;
                (record.into_outcome(), Some(at_us))
            }),
            None if *kind == CallKind::Model => model_outcome(outcome).map(|outcome| (outcome, None)),
            None => Ok((CallOutcome::null(), None)),
        }
    }
}

/// What a program is told of a recorded answer of a model.
fn model_outcome(recorded: &Arc<[u8]>) -> Result<CallOutcome, serde_json::Error> {
    match told_of_record(recorded) {
        Ok(told) => to_raw_value(&told).map(CallOutcome::Value),
        Err(fault) => Ok(CallOutcome::error("LLMError", told_of(&fault))),
    }
}

/// The kind in an identity.
fn kind_of(id: &str) -> CallKind {
    let word = id.split(':').next().unwrap_or_default();
    serde_json::from_value(word.into()).unwrap_or_default()
}

/// A value of JSON as text, whatever it is.
pub(super) fn raw_of(value: &serde_json::Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_job_whose_record_is_continued_are_not_those_of_the_job() {
        let message = r#"{"id":"m","from":"x","at_us":1,"body":1}"#;
        let step = |json: String| (StepKind::Effect, StepKey([0; 16]), Arc::from(json.into_bytes()));
        let steps = [
            step(format!(r#"{{"call":"receive:::1","name":"","at_us":1,"message":0,"of":"job-a","value":{message}}}"#)),
            step(format!(r#"{{"aside":1,"of":"job-a","message":{message}}}"#)),
            step(format!(r#"{{"aside":0,"of":"job-b","message":{message}}}"#)),
        ];
        let before = Past::of(&steps, "job-b").expect("readable");
        assert_eq!((before.read, before.kept.len()), (1, 2));
    }
}
