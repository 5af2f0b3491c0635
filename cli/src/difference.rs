//! Compares two JSON values, path by path.

use serde_json::Value;

/// One difference.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    /// A JSON pointer.
    pub(crate) place: String,
    /// The old value; none if it was added.
    pub(crate) old: Option<Value>,
    /// The new value; none if it was removed.
    pub(crate) new: Option<Value>,
}

/// All differences, in the order of the first value; members are compared by name, items by index.
pub(crate) fn between(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    walk(String::new(), old, new, &mut changes);
    changes
}

fn walk(place: String, old: &Value, new: &Value, changes: &mut Vec<Change>) {
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in before {
                step(&place, name, Some(value), after.get(name), changes);
            }
            for (name, value) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
                step(&place, name, None, Some(value), changes);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for at in 0..before.len().max(after.len()) {
                step(&place, &at.to_string(), before.get(at), after.get(at), changes);
            }
        }
        (old, new) if atlas_contract::same(old, new) => {}
        (old, new) => changes.push(Change { place, old: Some(old.clone()), new: Some(new.clone()) }),
    }
}

fn step(place: &str, name: &str, old: Option<&Value>, new: Option<&Value>, changes: &mut Vec<Change>) {
    let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
    match (old, new) {
        (Some(old), Some(new)) => walk(place, old, new, changes),
        (old, new) => changes.push(Change { place, old: old.cloned(), new: new.cloned() }),
    }
}

/// `~ /version  "0.1.0" → "0.2.0"`, with `+` for added and `-` for removed values.
pub(crate) fn text(changes: &[Change]) -> String {
    let line = |change: &Change| match (&change.old, &change.new) {
        (Some(old), Some(new)) => format!("~ {}  {old} → {new}\n", change.place),
        (None, Some(new)) => format!("+ {}  {new}\n", change.place),
        (Some(old), None) => format!("- {}  {old}\n", change.place),
        (None, None) => String::new(),
    };
    changes.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_place_is_told() {
        let old = json!({"v": 1, "same": [1, 2.0], "list": ["a", "b"], "gone": {"x": 1}, "a/b": true});
        let new = json!({"v": 2, "same": [1.0, 2], "list": ["a"], "came": null, "a/b": false});
        expect![[r#"
            ~ /v  1 → 2
            - /list/1  "b"
            - /gone  {"x":1}
            ~ /a~1b  true → false
            + /came  null
        "#]]
        .assert_eq(&text(&between(&old, &new)));
        assert!(between(&old, &old).is_empty());
    }
}
