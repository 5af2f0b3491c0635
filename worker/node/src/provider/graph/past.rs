//! What earlier attempts of a run recorded besides the results of its work.

use std::collections::BTreeMap;

use atlas_types::StepKey;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::helpers::HelpStep;
use crate::journal::{JournalError, RecordedStep};

/// What was recorded.
#[derive(Default)]
pub(super) struct Past {
    /// Values that people set, by the super-step before which they count.
    pub(super) set: BTreeMap<u64, Map<String, Value>>,
    /// Calls about helpers, in their order.
    pub(super) helped: Vec<(StepKey, HelpStep)>,
}

/// The outcome of a step with values that a person set.
#[derive(Deserialize)]
struct SetStep {
    set: Map<String, Value>,
}

impl Past {
    pub(super) fn of(recorded: &[RecordedStep]) -> Result<Self, JournalError> {
        let mut past = Self::default();
        for (number, (_, key, outcome)) in recorded.iter().enumerate() {
            let unreadable = |error| JournalError::Unreadable { step: number as u64, error };
            if let Some(step) = HelpStep::of(outcome) {
                past.helped.push((*key, step.map_err(unreadable)?));
            }
            let Some(before) = key.is_set_before() else { continue };
            let SetStep { set } = serde_json::from_slice(outcome).map_err(unreadable)?;
            past.set.entry(before).or_default().extend(set);
        }
        Ok(past)
    }

    /// How many messages the recorded calls took out of the inbox.
    pub(super) fn messages_read(&self) -> u64 {
        self.helped.iter().map(|(_, step)| step.read()).sum()
    }
}
