//! Warns about unknown keys of a contract; the known keys come from the rules.

use serde_json::Value;

use crate::violation::{member, nearest};
use crate::warning::Warning;

/// Maximum number of unknown keys that are compared with the known keys.
const SUGGESTIONS_MAX: usize = 100;

/// Keys of the block `permissions`, which people write beside it.
const BOUNDS: [&str; 6] = ["isolation", "container_image", "filesystem", "network", "max_memory_mb", "max_cpu_seconds"];

/// What to do about such a key.
const BESIDE: &str = "write it under /agent/permissions";

/// Whether a warning is about a bound that is written where it binds nobody.
pub(super) fn is_misplaced(warning: &Warning) -> bool {
    warning.hint.as_ref().is_some_and(|hint| hint.starts_with(BESIDE))
}

/// Warns about each key of `document` that is not in `rules`; inside `additionalProperties` any name is allowed.
pub(super) fn unknown(rules: &Value, document: &Value) -> Vec<Warning> {
    let mut warnings = Vec::new();
    walk(rules, document, "/", &mut warnings);
    warnings
}

fn walk(rules: &Value, value: &Value, pointer: &str, warnings: &mut Vec<Warning>) {
    match value {
        Value::Object(members) => {
            let known = known(rules);
            // A rule without names allows any members, as for a schema. The rules for hardware refuse unknown keys
            // themselves.
            if known.is_empty() || rules.get("additionalProperties").is_some_and(|rule| rule != &Value::Bool(false)) {
                return;
            }
            for (name, value) in members {
                match known.iter().find(|(key, _)| *key == name) {
                    Some((_, rules)) => walk(rules, value, &member(pointer, name), warnings),
                    None => {
                        // Only the first unknown keys are compared, to bound the cost.
                        let compared = warnings.len() < SUGGESTIONS_MAX;
                        let meant = compared.then(|| nearest(name, known.iter().map(|(key, _)| key.as_str())));
                        let at = member(pointer, name);
                        warnings.push(match meant.flatten() {
                            // A bound that is written elsewhere binds nobody.
                            None if BOUNDS.contains(&name.as_str()) => {
                                Warning::unknown_key(at, None).with_hint(format!("{BESIDE}: permissions.{name}"))
                            }
                            meant => Warning::unknown_key(at, meant),
                        });
                    }
                }
            }
        }
        Value::Array(items) => {
            let Some(rules) = rules.get("items") else { return };
            for (index, item) in items.iter().enumerate() {
                walk(rules, item, &member(pointer, &index.to_string()), warnings);
            }
        }
        _ => {}
    }
}

/// The named members of a rule, including those of its `oneOf` branches.
fn known(rules: &Value) -> Vec<(&String, &Value)> {
    let own = rules.get("properties").and_then(Value::as_object).into_iter().flatten();
    let branches = rules.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    own.chain(branches.flat_map(|branch| branch.get("properties").and_then(Value::as_object).into_iter().flatten()))
        .collect()
}
