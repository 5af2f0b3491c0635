//! The file of an entry: front matter in YAML between two lines `---`, then the content (compatibility §23.2).

use std::fmt::Write;

use atlas_contract::python;
use atlas_contract::yaml::{self, Budget};
use serde_json::{Map, Number, Value};

use crate::{Entry, Name};

/// What encloses the front matter.
const FENCE: &str = "---";

/// A file, read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    pub front_matter: Map<String, Value>,
    /// Without white space around it.
    pub body: String,
}

impl Document {
    /// Reads a text. Every text is a document: where the front matter does not end, or is no YAML mapping, everything is the body.
    ///
    /// ```
    /// use atlas_knowledge::document::Document;
    ///
    /// let document = Document::read("---\nid: a\n---\nText\n");
    /// assert_eq!((document.front_matter["id"].as_str(), document.body.as_str()), (Some("a"), "Text"));
    /// ```
    pub fn read(text: &str) -> Self {
        let enclosed = text.strip_prefix(FENCE).and_then(|rest| rest.split_once(FENCE));
        let read = enclosed.and_then(|(block, body)| Some((mapping(block)?, body)));
        let (front_matter, body) = read.unwrap_or_else(|| (Map::new(), text));
        Self { front_matter, body: trim(body).to_owned() }
    }

    /// The entry that a file contains. Its name and its domain are those of the file's path, whatever the front matter says.
    pub fn entry(self, domain: Name, id: Name) -> Entry {
        let Self { mut front_matter, body } = self;
        let text = |value: Option<&Value>| value.map(python::display).unwrap_or_default();
        let (created_at, updated_at) = (text(front_matter.get("created_at")), text(front_matter.get("updated_at")));
        let tags = front_matter.get("tags").and_then(Value::as_array);
        let tags = tags.map(|tags| tags.iter().map(python::display).collect()).unwrap_or_default();
        let metadata = match front_matter.shift_remove("metadata") {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        };
        Entry { id, content: body, domain, tags, metadata, created_at, updated_at }
    }
}

/// The file of an entry.
pub fn write(entry: &Entry) -> String {
    let mut text = format!("{FENCE}\n");
    let mut line = |name: &str, value: &Value| {
        text += name;
        text += ": ";
        node(value, &mut text);
        text.push('\n');
    };
    line("id", &entry.id.as_str().into());
    line("domain", &entry.domain.as_str().into());
    if !entry.tags.is_empty() {
        line("tags", &entry.tags.as_slice().into());
    }
    // Atlas for Python writes it even if it is empty.
    line("metadata", &Value::Object(entry.metadata.clone()));
    for (name, time) in [("created_at", &entry.created_at), ("updated_at", &entry.updated_at)] {
        if !time.is_empty() {
            line(name, &time.as_str().into());
        }
    }
    text += FENCE;
    text.push('\n');
    text += &entry.content;
    text.push('\n');
    text
}

/// The members of a YAML mapping; an empty text is an empty one.
fn mapping(block: &str) -> Option<Map<String, Value>> {
    match yaml::load(block.as_bytes(), Budget::default()) {
        Ok(Value::Object(members)) => Some(members),
        Ok(Value::Null) => Some(Map::new()),
        _ => None,
    }
}

/// Removes what Python's `strip` removes: also the separators of files, groups, records and units.
fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

/// Writes a value in one line that YAML 1.1 and 1.2 read alike.
fn node(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                node(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                string(name, text);
                text.push_str(": ");
                node(member, text);
            }
            text.push('}');
        }
        Value::String(value) => string(value, text),
        Value::Number(value) => number(value, text),
        Value::Bool(_) | Value::Null => *text += &value.to_string(),
    }
}

/// A string: plain where it is a simple word that no YAML reader takes for something else, otherwise in double quotes.
fn string(value: &str, text: &mut String) {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let is_plain = value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && !value.contains(FENCE)
        && !WORDS.contains(&value.to_ascii_lowercase().as_str());
    if is_plain {
        *text += value;
        return;
    }
    text.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => *text += "\\n",
            // The first fence after the opening one ends the front matter, wherever it is.
            '-' if text.ends_with("--") => *text += "\\x2d",
            ' '..='~' => text.push(c),
            c if c.is_alphanumeric() => text.push(c),
            c => escaped(c, text),
        }
    }
    text.push('"');
}

fn escaped(c: char, text: &mut String) {
    let code = u32::from(c);
    // Writing to a string cannot fail.
    let _ = match code {
        0..=0xff => write!(text, "\\x{code:02x}"),
        0x100..=0xffff => write!(text, "\\u{code:04x}"),
        _ => write!(text, "\\U{code:08x}"),
    };
}

/// A number. YAML 1.1 requires a point and a sign in a number with an exponent.
fn number(value: &Number, text: &mut String) {
    let written = value.to_string();
    let Some((digits, exponent)) = written.split_once(['e', 'E']) else {
        *text += &written;
        return;
    };
    *text += digits;
    if !digits.contains('.') {
        *text += ".0";
    }
    let sign = if exponent.starts_with(['+', '-']) { "" } else { "+" };
    *text += &format!("e{sign}{exponent}");
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    #[track_caller]
    fn check_read(text: &str, front_matter: &Value, body: &str) {
        let document = Document::read(text);
        assert_eq!((&Value::Object(document.front_matter), document.body.as_str()), (front_matter, body), "{text:?}");
    }

    #[test]
    fn front_matter_ends_at_the_next_fence() {
        check_read("---\nid: a\ntags:\n- x\n---\nBody text\n", &json!({"id": "a", "tags": ["x"]}), "Body text");
        check_read("---\nid: a\n---\n", &json!({"id": "a"}), "");
        check_read("---\n---\nBody", &json!({}), "Body");
        check_read("------", &json!({}), "");
        check_read("---id: a---Body", &json!({"id": "a"}), "Body");
        check_read("---\nid: a---b\n---\nBody", &json!({"id": "a"}), "b\n---\nBody");
        check_read("---\nid: a\n---\n\n a\n---\nb \n", &json!({"id": "a"}), "a\n---\nb");
    }

    #[test]
    fn everything_else_is_the_body() {
        check_read("", &json!({}), "");
        check_read(" Text\u{1f}\n", &json!({}), "Text");
        check_read("--\nid: a\n--", &json!({}), "--\nid: a\n--");
        check_read(" ---\nid: a\n---\n", &json!({}), "---\nid: a\n---");
        check_read("---\nid: a\nBody", &json!({}), "---\nid: a\nBody");
        check_read("---\nid: [\n---\nBody", &json!({}), "---\nid: [\n---\nBody");
        check_read("---\n- a\n---\nBody", &json!({}), "---\n- a\n---\nBody");
        check_read("---\nid: !tag a\n---\nBody", &json!({}), "---\nid: !tag a\n---\nBody");
    }

    #[test]
    fn members_of_other_types_are_read_as_text() {
        let text = "---\nid: other\ndomain: 5\ntags: [1, yes]\nmetadata: 5\ncreated_at: 2026-01-02\n---\nBody";
        let entry = Document::read(text).entry(name("d"), name("e"));
        assert_eq!((entry.id.as_str(), entry.domain.as_str(), entry.tags), ("e", "d", vec!["1".into(), "True".into()]));
        assert_eq!(
            (entry.metadata, entry.created_at.as_str(), entry.updated_at.as_str()),
            (Map::new(), "2026-01-02", "")
        );
    }

    fn check_written(entry: &Entry, expected: &Expect) {
        let text = write(entry);
        expected.assert_eq(&text);
        assert_eq!(Document::read(&text).entry(entry.domain.clone(), entry.id.clone()), *entry);
    }

    #[test]
    fn entries_are_written_so_that_every_reader_gets_them_back() {
        let mut entry = Document::read("Entropy rises").entry(name("physics"), name("a1"));
        check_written(
            &entry,
            &expect![[r#"
            ---
            id: a1
            domain: physics
            metadata: {}
            ---
            Entropy rises
        "#]],
        );
        entry.id = name("a---b");
        entry.tags = ["heat", "yes", "010", "a: b", "----", "é\u{85}\u{1F600}\"\\\n"].map(str::to_owned).to_vec();
        let metadata = json!({"n": [1, -0.5, 1e300, 1e-7, null, true], "a b": {"": []}});
        entry.metadata = metadata.as_object().cloned().expect("an object");
        entry.created_at = "2026-01-01T00:00:00+00:00".to_owned();
        entry.content = "---\nno: front matter".to_owned();
        check_written(
            &entry,
            &expect![[r#"
            ---
            id: "a--\x2db"
            domain: physics
            tags: [heat, "yes", "010", "a: b", "--\x2d-", "é\x85\U0001f600\"\\\n"]
            metadata: {"n": [1, -0.5, 1.0e+300, 1.0e-7, null, true], "a b": {"": []}}
            created_at: "2026-01-01T00:00:00+00:00"
            ---
            ---
            no: front matter
        "#]],
        );
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            Just(Value::Null),
            ".{0,8}".prop_map(Value::from),
            "[-:#, 0-9a-z\n\t]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[-.<=~!*&a-z0-9 ]{0,4}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            content in "(?s).{0,20}", tags in proptest::collection::vec("(.{1,5}|-{1,7})", 0..3), value in values(), time in ".{0,4}",
        ) {
            let metadata = Map::from_iter([("k".to_owned(), value)]);
            let content = trim(&content).to_owned();
            let (created_at, updated_at) = (time.clone(), time);
            let entry = Entry { id: name("x"), content, domain: name("d"), tags, metadata, created_at, updated_at };
            let text = write(&entry);
            prop_assert_eq!(Document::read(&text).entry(name("d"), name("x")), entry, "{}", text);
        }

        #[test]
        fn any_text_is_a_document(text in "(---|\n|[a-z:\\[ ]){0,12}") {
            let document = Document::read(&text);
            prop_assert!(text.contains(&document.body));
        }
    }
}
