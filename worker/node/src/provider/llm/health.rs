//! Which models of the namespace an attempt could reach. The leader keeps it as the status of these models.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use atlas_model::{CallError, CallErrorKind};
use serde_json::{Map, Value, json};

/// Characters of an error that are kept.
const ERROR_CHARS_MAX: usize = 200;

/// What an attempt has seen of each model, by the name of its object. The latest observation counts.
#[derive(Debug, Default)]
pub(in crate::provider) struct Seen(Mutex<BTreeMap<String, Value>>);

impl Seen {
    pub(in crate::provider) fn reached(&self, model: &str, latency: Duration) {
        self.note(model, json!({"reachable": true, "latency_ms": milliseconds(latency)}));
    }

    /// A call failed for good. An error that says nothing about the model, such as that of a wrong request, is not noted.
    pub(in crate::provider) fn failed(&self, model: &str, error: &CallError) {
        if tells_of_the_model(error.kind) {
            self.unreachable(model, &error.message);
        }
    }

    pub(in crate::provider) fn unreachable(&self, model: &str, why: &str) {
        let error: String = why.chars().take(ERROR_CHARS_MAX).collect();
        self.note(model, json!({"reachable": false, "error": error}));
    }

    fn note(&self, model: &str, observation: Value) {
        // Each change is complete while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(model.to_owned(), observation);
    }

    /// The observations for the job's metadata. None without one.
    pub(in crate::provider) fn value(&self) -> Option<Value> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let members: Map<String, Value> = seen.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        (!members.is_empty()).then_some(Value::Object(members))
    }
}

fn tells_of_the_model(kind: CallErrorKind) -> bool {
    use CallErrorKind::{
        Answer, Connection, Credentials, Filtered, Login, Provider, Quota, RateLimited, Request, Timeout, TooLong,
        UnknownModel,
    };
    match kind {
        Credentials | Login | UnknownModel | Quota | Provider | Connection | Timeout | Answer => true,
        TooLong | Request | RateLimited | Filtered => false,
    }
}

/// Milliseconds with one digit after the point.
pub(in crate::provider) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_observation_of_each_model_counts() {
        let seen = Seen::default();
        assert_eq!(seen.value(), None);
        seen.failed("a", &CallError::new(CallErrorKind::Connection, "x".repeat(500)));
        seen.failed("b", &CallError::new(CallErrorKind::TooLong, "too long"));
        seen.reached("c", Duration::from_micros(212_340));
        let value = seen.value().expect("observations");
        assert_eq!(value["a"]["error"].as_str().map(str::len), Some(ERROR_CHARS_MAX));
        assert_eq!((&value["b"], &value["c"]), (&Value::Null, &json!({"reachable": true, "latency_ms": 212.3})));
        seen.reached("a", Duration::from_millis(3));
        assert_eq!(seen.value().expect("observations")["a"], json!({"reachable": true, "latency_ms": 3.0}));
    }
}
