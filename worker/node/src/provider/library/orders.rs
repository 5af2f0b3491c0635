//! Members of an output that are instructions to the platform. They are removed before the output is validated.

use atlas_secrets::Redactor;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

const APPEND: &str = "_memory_append";
const STORE: &str = "_knowledge_store";

/// The domain of an entry that names none.
const DOMAIN: &str = "general";

/// What an output asks for, without values of secrets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Orders {
    /// The text for the shared memory.
    pub(super) appended: Option<String>,
    /// The entries for the knowledge `{content, domain, tags}`, or what is wrong with them.
    pub(super) stored: Result<Vec<Value>, String>,
}

impl Orders {
    /// Whether an output needs a closer look.
    pub(super) fn may_be_in(output: &str) -> bool {
        [APPEND, STORE].iter().any(|name| output.contains(name))
    }

    /// The output without its instructions.
    pub(super) fn take(output: Box<RawValue>, redactor: &Redactor) -> (Box<RawValue>, Self) {
        let mut orders = Self { appended: None, stored: Ok(Vec::new()) };
        let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(output.get()) else { return (output, orders) };
        let mut taken = |name: &str| {
            let mut value = object.shift_remove(name)?;
            redactor.json(&mut value);
            Some(value)
        };
        orders.appended = match taken(APPEND) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text).filter(|text| !text.is_empty()),
            Some(other) => Some(other.to_string()),
        };
        orders.stored = match taken(STORE) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(entries)) => entries.iter().map(entry).collect(),
            Some(one) => entry(&one).map(|entry| vec![entry]),
        };
        (to_raw_value(&object).unwrap_or(output), orders)
    }
}

fn entry(given: &Value) -> Result<Value, String> {
    let wrong = || format!("{STORE} is an object {{content, domain, tags}}, or a list of them");
    let given = given.as_object().ok_or_else(wrong)?;
    let or = |name: &str, other: Value| given.get(name).filter(|value| !value.is_null()).cloned().unwrap_or(other);
    Ok(json!({
        "content": or("content", json!("")),
        "domain": or("domain", json!(DOMAIN)),
        "tags": or("tags", json!([])),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(output: &Value) -> (String, Orders) {
        let (output, orders) = Orders::take(to_raw_value(output).expect("JSON"), &Redactor::default());
        (output.get().to_owned(), orders)
    }

    #[test]
    fn instructions_are_taken_out() {
        let stored = json!([{"content": "a"}, {"content": "b", "domain": "d", "tags": ["t"]}]);
        let (output, orders) = taken(&json!({"z": 1, "_memory_append": "x", "_knowledge_store": stored, "a": 2}));
        assert_eq!(output, r#"{"z":1,"a":2}"#);
        assert_eq!(orders.appended.as_deref(), Some("x"));
        let expected = [
            json!({"content": "a", "domain": "general", "tags": []}),
            json!({"content": "b", "domain": "d", "tags": ["t"]}),
        ];
        assert_eq!(orders.stored.expect("entries"), expected);
        let (_, orders) = taken(&json!({"_memory_append": {"n": 1}, "_knowledge_store": {"content": "a"}}));
        assert_eq!((orders.appended.as_deref(), orders.stored.expect("an entry").len()), (Some(r#"{"n":1}"#), 1));
    }

    #[test]
    fn what_asks_for_nothing_is_taken_out_as_well() {
        let nothing = Orders { appended: None, stored: Ok(Vec::new()) };
        assert_eq!(taken(&json!({"_memory_append": "", "_knowledge_store": null})), ("{}".to_owned(), nothing));
        let nothing = Orders { appended: None, stored: Ok(Vec::new()) };
        assert_eq!(taken(&json!(["_memory_append"])), (r#"["_memory_append"]"#.to_owned(), nothing));
    }

    #[test]
    fn entries_are_objects() {
        let (_, orders) = taken(&json!({"_knowledge_store": ["a"]}));
        assert!(orders.stored.expect_err("a text").starts_with("_knowledge_store is an object"));
    }
}
