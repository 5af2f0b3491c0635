//! Entries, their names and their bounds.

use std::fmt;

use serde_json::{Map, Value};

/// The domain of entries that name none.
pub const DEFAULT_DOMAIN: &str = "general";

/// Longest content of an entry, in bytes.
pub const CONTENT_BYTES_MAX: usize = 1 << 20;

/// Most tags of an entry.
pub const TAGS_MAX: usize = 100;

/// Deepest nesting of metadata. YAML readers stop at 64 levels.
pub const METADATA_DEPTH_MAX: usize = 32;

/// Longest tag and longest key of metadata, in characters. A YAML key must end within 1,024 characters, after escaping.
const WORD_CHARS_MAX: usize = 100;

/// Largest metadata, in bytes of JSON.
const METADATA_BYTES_MAX: usize = 64 << 10;

/// Most characters of a name.
const NAME_CHARS_MAX: usize = 128;

/// The name of an entry or of a domain: letters, digits, `.`, `_` and `-` of ASCII, the first a letter or a digit, at most 128 characters.
/// So it is always one part of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Box<str>);

/// A text that is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a name of letters, digits, \".\", \"_\" and \"-\" that begins with a letter or a digit and has at most {NAME_CHARS_MAX} characters"
)]
pub struct NameError(String);

impl Name {
    /// Checks a name.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let mut bytes = text.bytes();
        let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let others = bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
        if first && others && text.len() <= NAME_CHARS_MAX {
            return Ok(Self(text.into()));
        }
        Err(NameError(text.chars().take(NAME_CHARS_MAX + 1).collect()))
    }

    /// The name of a new entry: its domain and a random number. A long domain is cut, so that the name is one.
    pub fn generated(domain: &Name, random: u64) -> Self {
        let suffix = format!("-{random:016x}");
        let domain: String = domain.0.chars().take(NAME_CHARS_MAX - suffix.len()).collect();
        Self((domain + &suffix).into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One piece of knowledge.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub id: Name,
    pub content: String,
    pub domain: Name,
    pub tags: Vec<String>,
    pub metadata: Map<String, Value>,
    /// In ISO 8601; empty if it is not known.
    pub created_at: String,
    /// In ISO 8601; empty if it is not known.
    pub updated_at: String,
}

/// What somebody wants to store.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Empty for a generated name.
    pub id: String,
    pub content: String,
    pub domain: String,
    pub tags: Vec<String>,
    pub metadata: Map<String, Value>,
}

impl Draft {
    /// A draft in the default domain, with a generated name.
    pub fn new(content: &str) -> Self {
        Self {
            id: String::new(),
            content: content.to_owned(),
            domain: DEFAULT_DOMAIN.to_owned(),
            tags: Vec::new(),
            metadata: Map::new(),
        }
    }
}

/// What an update changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EntryChange {
    pub content: Option<String>,
    pub tags: Option<Vec<String>>,
    /// Replaces all metadata.
    pub metadata: Option<Map<String, Value>>,
}

/// Why an entry cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("the id is not valid")]
    Id(#[source] NameError),
    #[error("the domain is not valid")]
    Domain(#[source] NameError),
    /// A part that exceeds its limit.
    #[error("the entry has more than {max} {what}")]
    TooLarge { what: &'static str, max: usize },
}

impl Entry {
    /// Makes an entry of a draft. `now` is a time in ISO 8601, `random` makes the name if the draft has none.
    pub fn new(draft: Draft, now: &str, random: u64) -> Result<Self, EntryError> {
        let domain = Name::new(&draft.domain).map_err(EntryError::Domain)?;
        let id = match draft.id.as_str() {
            "" => Name::generated(&domain, random),
            id => Name::new(id).map_err(EntryError::Id)?,
        };
        let (created_at, updated_at) = (now.to_owned(), now.to_owned());
        let Draft { content, tags, metadata, .. } = draft;
        Self { id, content, domain, tags, metadata, created_at, updated_at }.within_bounds()
    }

    /// The entry after a change at a time.
    pub fn changed(mut self, change: EntryChange, now: &str) -> Result<Self, EntryError> {
        let EntryChange { content, tags, metadata } = change;
        self.content = content.unwrap_or(self.content);
        self.tags = tags.unwrap_or(self.tags);
        self.metadata = metadata.unwrap_or(self.metadata);
        now.clone_into(&mut self.updated_at);
        self.within_bounds()
    }

    fn within_bounds(self) -> Result<Self, EntryError> {
        let long = |word: &String| word.chars().count() > WORD_CHARS_MAX;
        let metadata = &self.metadata;
        let exceeded = [
            ("bytes of content", CONTENT_BYTES_MAX, self.content.len() > CONTENT_BYTES_MAX),
            ("tags", TAGS_MAX, self.tags.len() > TAGS_MAX),
            ("characters in a tag", WORD_CHARS_MAX, self.tags.iter().any(long)),
            ("levels of metadata", METADATA_DEPTH_MAX, !metadata.values().all(|value| is_shallow(value, 1))),
            ("characters in a key of the metadata", WORD_CHARS_MAX, !metadata.iter().all(has_short_keys)),
            ("bytes of metadata", METADATA_BYTES_MAX, bytes_of(metadata) > METADATA_BYTES_MAX),
        ];
        match exceeded.into_iter().find(|(.., exceeded)| *exceeded) {
            Some((what, max, _)) => Err(EntryError::TooLarge { what, max }),
            None => Ok(self),
        }
    }
}

fn is_shallow(value: &Value, depth: usize) -> bool {
    depth <= METADATA_DEPTH_MAX
        && match value {
            Value::Array(items) => items.iter().all(|item| is_shallow(item, depth + 1)),
            Value::Object(members) => members.values().all(|member| is_shallow(member, depth + 1)),
            _ => true,
        }
}

/// Only called for metadata of a bounded depth.
fn has_short_keys((key, value): (&String, &Value)) -> bool {
    fn inside(value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().all(inside),
            Value::Object(members) => members.iter().all(has_short_keys),
            _ => true,
        }
    }
    key.chars().count() <= WORD_CHARS_MAX && inside(value)
}

fn bytes_of(metadata: &Map<String, Value>) -> usize {
    // Writing a value to a string cannot fail.
    serde_json::to_string(metadata).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_parts_of_a_path() {
        for name in ["a", "A1", "0", "a.b_c-d", "a..b", &"x".repeat(128)] {
            assert_eq!(Name::new(name).map(|name| name.to_string()), Ok(name.to_owned()));
        }
        for name in ["", ".", "..", "../x", "a/b", "a\\b", "-a", "_a", ".a", "a b", "a\n", "é", "a\0", &"x".repeat(129)]
        {
            assert!(Name::new(name).is_err(), "{name:?}");
        }
        let error = Name::new(&"x".repeat(1 << 20)).expect_err("too long").to_string();
        assert!(error.len() < 400, "{error}");
    }

    #[test]
    fn a_draft_without_a_name_gets_one() {
        let entry = Entry::new(Draft { domain: "ai".to_owned(), ..Draft::new("auto") }, "now", 0xab).expect("an entry");
        assert_eq!(entry.id.as_str(), "ai-00000000000000ab");
        assert_eq!(entry.created_at, entry.updated_at);
        let domain = Name::new(&"d".repeat(128)).expect("a name");
        assert!(Name::new(Name::generated(&domain, u64::MAX).as_str()).is_ok());
    }

    #[test]
    fn only_what_is_named_changes() {
        let entry = Entry::new(Draft { tags: vec!["t".to_owned()], ..Draft::new("old") }, "1", 0).expect("an entry");
        let changed =
            entry.clone().changed(EntryChange { content: Some("new".to_owned()), ..EntryChange::default() }, "2");
        let expected = Entry { content: "new".to_owned(), updated_at: "2".to_owned(), ..entry };
        assert_eq!(changed, Ok(expected));
    }

    #[track_caller]
    fn check_refused(draft: Draft, expected: &str) {
        assert_eq!(Entry::new(draft, "now", 0).map_err(|error| error.to_string()), Err(expected.to_owned()));
    }

    #[test]
    fn every_part_is_bounded() {
        let draft = Draft::new("");
        let metadata = |value: Value| value.as_object().cloned().expect("an object");
        check_refused(Draft { id: "../x".to_owned(), ..draft.clone() }, "the id is not valid");
        check_refused(Draft { domain: String::new(), ..draft.clone() }, "the domain is not valid");
        check_refused(
            Draft::new(&"x".repeat(CONTENT_BYTES_MAX + 1)),
            "the entry has more than 1048576 bytes of content",
        );
        check_refused(Draft { tags: vec![String::new(); 101], ..draft.clone() }, "the entry has more than 100 tags");
        let tags = vec!["x".repeat(101)];
        check_refused(Draft { tags, ..draft.clone() }, "the entry has more than 100 characters in a tag");
        let deep = (0..METADATA_DEPTH_MAX).fold(json!(1), |inner, _| json!([inner]));
        let deep = metadata(json!({ "a": deep }));
        check_refused(Draft { metadata: deep, ..draft.clone() }, "the entry has more than 32 levels of metadata");
        let keys = metadata(json!({"a": [{"k".repeat(101): 1}]}));
        check_refused(
            Draft { metadata: keys, ..draft.clone() },
            "the entry has more than 100 characters in a key of the metadata",
        );
        let large = metadata(json!({"a": "x".repeat(1 << 17)}));
        check_refused(Draft { metadata: large, ..draft }, "the entry has more than 65536 bytes of metadata");
    }
}
