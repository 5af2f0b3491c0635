//! `GET /v1/models`: models and agents that the caller may use.

use serde_json::{Map, Value, json};

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelEntry {
    /// What requests name in `model`.
    pub id: String,
    /// Since when it is there, in seconds since 1970.
    pub created: u64,
    /// The namespace, or the provider.
    pub owned_by: String,
    /// Members that OpenAI's entries lack; left out if empty. Clients that do not know them skip them.
    pub metadata: Map<String, Value>,
}

/// The answer with all entries, in their order.
pub fn list(entries: &[ModelEntry]) -> Value {
    json!({ "object": "list", "data": entries.iter().map(one).collect::<Vec<_>>() })
}

/// The answer with one entry.
pub fn one(entry: &ModelEntry) -> Value {
    let mut value = json!({
        "id": entry.id, "object": "model", "created": entry.created, "owned_by": entry.owned_by,
    });
    if !entry.metadata.is_empty() {
        value["metadata"] = Value::Object(entry.metadata.clone());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_the_members_that_clients_expect() {
        let plain =
            ModelEntry { id: "fast".to_owned(), created: 7, owned_by: "default".to_owned(), ..Default::default() };
        let metadata = Map::from_iter([("kind".to_owned(), json!("agent"))]);
        let rich = ModelEntry { id: "reviewer".to_owned(), metadata, ..plain.clone() };
        assert_eq!(
            list(&[plain, rich]),
            json!({"object": "list", "data": [
                {"id": "fast", "object": "model", "created": 7, "owned_by": "default"},
                {"id": "reviewer", "object": "model", "created": 7, "owned_by": "default", "metadata": {"kind": "agent"}},
            ]})
        );
    }
}
