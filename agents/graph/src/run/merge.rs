//! The merge at the end of a super-step.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fault::FaultKind;
use crate::Reducer;

/// The writes of one branch.
pub(super) type Writes = Map<String, Value>;

/// Merges the writes of branches, which are in the order of their ids, into the state. Returns the changed keys.
///
/// A key that a branch sets to the value that it has in `before` was not written.
pub(super) fn merge(
    state: &mut Map<String, Value>,
    before: &Map<String, Value>,
    branches: &[&Writes],
    reducers: &BTreeMap<String, Reducer>,
) -> Result<Vec<String>, (FaultKind, String)> {
    // The keys in the order in which they are first written.
    let mut keys: Vec<&String> = Vec::new();
    let mut written: BTreeMap<&String, Vec<&Value>> = BTreeMap::new();
    for writes in branches {
        for (key, value) in writes.iter().filter(|(key, value)| before.get(*key) != Some(value)) {
            let values = written.entry(key).or_default();
            if values.is_empty() {
                keys.push(key);
            }
            values.push(value);
        }
    }
    let mut merged: Vec<(String, Value)> = Vec::with_capacity(keys.len());
    for key in &keys {
        let values = written.get(key).map(Vec::as_slice).unwrap_or_default();
        let value = match (reducers.get(*key), values) {
            (Some(reducer), values) => {
                let mut folded = state.get(*key).cloned();
                for value in values {
                    let next = reducer.fold(folded.as_ref(), value);
                    folded = Some(next.map_err(|error| (FaultKind::Reducer, format!("key '{key}': {error}")))?);
                }
                folded.unwrap_or_default()
            }
            (None, [value]) => (*value).clone(),
            (None, values) => {
                let text = format!(
                    "{} branches wrote '{key}' in one super-step, and the key has no reducer; declare one or rename the key",
                    values.len()
                );
                return Err((FaultKind::WriteConflict, text));
            }
        };
        merged.push(((*key).clone(), value));
    }
    state.extend(merged);
    Ok(keys.into_iter().cloned().collect())
}
