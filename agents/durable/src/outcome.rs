//! How the end of a call is recorded in the journal.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What the outcome of each recorded call begins with, unless it is a model call.
const BEGINNING: &[u8] = br#"{"call":"#;

/// The outcome of a call as it is recorded.
#[derive(Debug, Serialize, Deserialize)]
pub struct CallRecord {
    /// The identity of the call.
    pub call: String,
    /// The name of the call.
    #[serde(default)]
    pub name: String,
    /// When it was recorded, in microseconds since 1970.
    pub at_us: i64,
    /// No other call of the program was open from its begin to its end, and the program did nothing else: it may be told before the program
    /// asks for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// The number of the message that the call has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<u64>,
    /// The job that got this message: another one, where a job goes on with the record of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Its result, JSON; a record has this or an error.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub value: Option<Box<RawValue>>,
    /// Its error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

/// Keeps `null` apart from no value.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// What came of a call.
#[derive(Debug, Clone)]
pub enum CallOutcome {
    /// Its result, JSON.
    Value(Box<RawValue>),
    /// Its error, which is raised again in each replay: an object with the members `type` and `text`, and what else the program put there.
    Error(Value),
}

impl CallOutcome {
    /// No result.
    pub fn null() -> Self {
        Self::Value(RawValue::NULL.to_owned())
    }

    /// An error of that type.
    pub fn error(kind: &str, text: impl Into<String>) -> Self {
        Self::Error(json!({ "type": kind, "text": text.into() }))
    }
}

impl CallRecord {
    /// The record of a call that has ended.
    pub fn new(call: String, name: String, at_us: i64, outcome: CallOutcome) -> Self {
        let (value, error) = match outcome {
            CallOutcome::Value(value) => (Some(value), None),
            CallOutcome::Error(error) => (None, Some(error)),
        };
        Self { call, name, at_us, alone: false, message: None, of: None, value, error }
    }

    /// Reads the outcome of a step of a journal. None for steps that are no calls.
    pub fn read(outcome: &[u8]) -> Option<Result<Self, serde_json::Error>> {
        outcome.starts_with(BEGINNING).then(|| serde_json::from_slice(outcome))
    }

    /// What came of the call. A record with neither has a value of `null`.
    pub fn into_outcome(self) -> CallOutcome {
        match (self.error, self.value) {
            (Some(error), _) => CallOutcome::Error(error),
            (None, Some(value)) => CallOutcome::Value(value),
            (None, None) => CallOutcome::null(),
        }
    }
}
