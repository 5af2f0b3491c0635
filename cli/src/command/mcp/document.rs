//! One entry in a client's configuration file. Everything else in the file stays as it is.

use serde_json::{Map, Value};

/// Largest configuration file.
pub(super) const BYTES_MAX: u64 = 4 << 20;

/// The file with an entry in a section; a missing file and section are created. The error is a sentence without its subject.
pub(super) fn with_entry(text: Option<&str>, section: &str, name: &str, entry: &Value) -> Result<String, String> {
    let mut document = read(text)?;
    let members = document.entry(section).or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(members) = members else { return Err(format!("has a \"{section}\" that is not an object")) };
    members.insert(name.to_owned(), entry.clone());
    Ok(write(document))
}

/// The file without an entry; none if it has no such entry.
pub(super) fn without_entry(text: Option<&str>, section: &str, name: &str) -> Result<Option<String>, String> {
    let mut document = read(text)?;
    let removed =
        document.get_mut(section).and_then(Value::as_object_mut).and_then(|entries| entries.shift_remove(name));
    Ok(removed.map(|_| write(document)))
}

fn read(text: Option<&str>) -> Result<Map<String, Value>, String> {
    match text.filter(|text| !text.trim().is_empty()) {
        None => Ok(Map::new()),
        // Editors accept comments in their files; they would be lost.
        Some(text) => serde_json::from_str(text).map_err(|error| format!("is not plain JSON: {error}")),
    }
}

fn write(document: Map<String, Value>) -> String {
    format!("{:#}\n", Value::Object(document))
}

/// The lines that differ, with `-` and `+`. Both texts are short, so the lines in common at both ends are enough.
pub(super) fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let changed = |mark: &str, lines: &[&str]| -> String {
        let lines = lines.get(..lines.len() - tail).unwrap_or_default();
        lines.iter().map(|line| format!("{mark} {line}\n")).collect()
    };
    format!("{}{}", changed("-", old), changed("+", new))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(text: Option<&str>, expected: &Expect) {
        let new = with_entry(text, "mcpServers", "atlas", &json!({ "url": "http://127.0.0.1:7400/mcp" }));
        expected.assert_eq(&match new {
            Ok(new) => difference(text.unwrap_or_default(), &new),
            Err(error) => error,
        });
    }

    #[test]
    fn an_entry_is_added_and_the_rest_stays() {
        check(
            Some("{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"b\": {}\n  }\n}\n"),
            &expect![[r#"
                -     "b": {}
                +     "b": {},
                +     "atlas": {
                +       "url": "http://127.0.0.1:7400/mcp"
                +     }
            "#]],
        );
        check(
            None,
            &expect![[r#"
                + {
                +   "mcpServers": {
                +     "atlas": {
                +       "url": "http://127.0.0.1:7400/mcp"
                +     }
                +   }
                + }
            "#]],
        );
    }

    #[test]
    fn a_file_that_cannot_be_kept_is_refused() {
        check(Some("{ // mine\n}"), &expect!["is not plain JSON: key must be a string at line 1 column 3"]);
        check(Some("[]"), &expect!["is not plain JSON: invalid type: sequence, expected a map at line 1 column 0"]);
        check(Some(r#"{"mcpServers":[]}"#), &expect![[r#"has a "mcpServers" that is not an object"#]]);
    }

    #[test]
    fn removing_undoes_adding() {
        let before = "{\n  \"mcpServers\": {\n    \"b\": {}\n  }\n}\n";
        let with = with_entry(Some(before), "mcpServers", "atlas", &json!({})).expect("a document");
        assert_eq!(without_entry(Some(&with), "mcpServers", "atlas"), Ok(Some(before.to_owned())));
        assert_eq!(without_entry(Some(before), "mcpServers", "atlas"), Ok(None));
        assert_eq!(without_entry(None, "mcpServers", "atlas"), Ok(None));
    }
}
