//! Entries as servers write them, which nobody checked.

use atlas_knowledge::{Draft, Entry};
use serde_json::{Map, Value, json};

/// Longest time text that is kept.
const TIME_CHARS_MAX: usize = 64;

/// Reads an entry; none if it is no valid one. Members that are missing or null have their usual values.
pub(crate) fn entry(value: &Value) -> Option<Entry> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let words = value.get("tags").and_then(Value::as_array).into_iter().flatten();
    let draft = Draft {
        id: Some(text("id")).filter(|id| !id.is_empty())?.to_owned(),
        content: value.get("content")?.as_str()?.to_owned(),
        domain: match text("domain") {
            "" => atlas_knowledge::DEFAULT_DOMAIN.to_owned(),
            domain => domain.to_owned(),
        },
        tags: words.filter_map(Value::as_str).map(str::to_owned).collect(),
        metadata: value.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default(),
    };
    let time = |name: &str| text(name).chars().take(TIME_CHARS_MAX).collect();
    let entry = Entry::new(draft, "", 0).ok()?;
    Some(Entry { created_at: time("created_at"), updated_at: time("updated_at"), ..entry })
}

/// The entries of a list, or of the only list in an object. What is no valid entry is left out.
pub(crate) fn entries(value: &Value) -> Option<Vec<Entry>> {
    let list = match value {
        Value::Array(list) => list,
        Value::Object(members) => {
            ["entries", "results", "result"].iter().find_map(|name| members.get(*name)?.as_array())?
        }
        _ => return None,
    };
    Some(list.iter().filter_map(entry).collect())
}

/// An entry as servers read it.
pub(crate) fn written(entry: &Entry) -> Value {
    json!({
        "id": entry.id.as_str(),
        "content": entry.content,
        "domain": entry.domain.as_str(),
        "tags": entry.tags,
        "metadata": entry.metadata,
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
    })
}

/// The members of a change that are set.
pub(crate) fn change(change: &atlas_knowledge::EntryChange) -> Map<String, Value> {
    let mut members = Map::new();
    if let Some(content) = &change.content {
        members.insert("content".to_owned(), json!(content));
    }
    if let Some(tags) = &change.tags {
        members.insert("tags".to_owned(), json!(tags));
    }
    if let Some(metadata) = &change.metadata {
        members.insert("metadata".to_owned(), json!(metadata));
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_entry_is_left_out() {
        let good = json!({"id": "a", "content": "x", "tags": null, "metadata": null});
        let bad = [
            json!(1),
            json!({"id": "../a", "content": "x"}),
            json!({"id": "", "content": "x"}),
            json!({"content": "x"}),
            json!({"id": "a"}),
            json!({"id": "a", "content": "x", "domain": "a/b"}),
            json!({"id": "a", "content": "x", "tags": vec!["t"; 1000]}),
        ];
        assert!(bad.iter().all(|value| entry(value).is_none()));
        let mut list = bad.to_vec();
        list.push(good);
        for value in [json!(list), json!({"entries": list}), json!({"count": 1, "results": list})] {
            let found = entries(&value).expect("a list");
            assert_eq!(
                found.iter().map(|entry| (entry.id.as_str(), entry.domain.as_str())).collect::<Vec<_>>(),
                [("a", "general")]
            );
        }
        assert!(entries(&json!({"error": "x"})).is_none() && entries(&json!("x")).is_none());
    }

    #[test]
    fn an_entry_is_read_as_it_is_written() {
        let entry_of = json!({"id": "a", "content": "x", "domain": "d", "tags": ["t"], "metadata": {"n": 0.5}, "created_at": "1", "updated_at": "2"});
        assert_eq!(entry(&entry_of).map(|entry| written(&entry)), Some(entry_of));
    }
}
