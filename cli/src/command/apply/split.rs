//! Splits a text into its YAML documents.

use atlas_contract::yaml::{self, Budget, YamlError};
use serde_json::Value;

/// One document of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part<'t> {
    text: &'t str,
    /// The number of lines in the whole text before this document.
    lines_before: usize,
}

impl Part<'_> {
    /// Loads the document; an error has the line number in the whole text. It is one of YAML 1.2: the member `on` of a rule would be the
    /// value true in YAML 1.1, in which contracts are written.
    pub(super) fn load(&self) -> Result<Value, YamlError> {
        let loaded = yaml::load_core(self.text.as_bytes(), Budget::default()).map(|marked| marked.value);
        loaded.map_err(|mut error| {
            if let YamlError::NotUtf8 { place } | YamlError::Syntax { place, .. } | YamlError::Meaning { place, .. } =
                &mut error
            {
                place.line += self.lines_before;
            }
            error
        })
    }
}

/// Splits a text into documents. A line that begins with `---` starts a document and a line `...` ends one. This holds
/// without regard to the context, because YAML allows neither line inside a document.
pub(super) fn split(text: &str) -> Vec<Part<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parts = Vec::new();
    let (mut start, mut lines_before, mut at) = (0, 0, 0);
    // Whether the part contains anything besides comments and directives.
    let mut begun = false;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let end = at + line.len();
        if is_marker(line, "---") {
            if begun {
                parts.push(Part { text: &text[start..at], lines_before });
                (start, lines_before) = (at, number);
            }
            begun = true;
        } else if is_marker(line, "...") {
            if begun {
                parts.push(Part { text: &text[start..end], lines_before });
            }
            (start, lines_before, begun) = (end, number + 1, false);
        } else if !line.trim().is_empty() && !line.trim_start().starts_with('#') && !line.starts_with('%') {
            begun = true;
        }
        at = end;
    }
    if begun {
        parts.push(Part { text: &text[start..], lines_before });
    }
    parts
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(text: &str) -> Vec<Value> {
        split(text).iter().map(|part| part.load().expect("a document")).collect()
    }

    #[test]
    fn documents_are_told_apart() {
        assert_eq!(values("a: 1\n"), [json!({"a": 1})]);
        assert_eq!(values("a: 1\n---\nb: 2\n--- {c: 3}\n"), [json!({"a": 1}), json!({"b": 2}), json!({"c": 3})]);
        assert_eq!(values("# all\n%YAML 1.1\n---\r\na: 1\r\n...\n# next\n---\n5"), [json!({"a": 1}), json!(5)]);
        assert_eq!(values("\u{feff}---\na: '---'\nb: |\n  ---\n  x\n"), [json!({"a": "---", "b": "---\nx\n"})]);
        assert_eq!(values("---\n---\na: 1\n---\n"), [json!(null), json!({"a": 1}), json!(null)]);
        assert_eq!(values("a: 1\n...\n...\n---b\n"), [json!({"a": 1}), json!("---b")]);
        assert_eq!(
            values("on: [submit]\nself: true\nmode: no\n"),
            [json!({"on": ["submit"], "self": true, "mode": "no"})]
        );
        assert!(split("").is_empty() && split("# nothing\n\n...\n").is_empty());
    }

    #[test]
    fn an_error_tells_the_line_of_the_whole_text() {
        let error = split("a: 1\n---\nb: 1\n---\nc: ]\n")[2].load().expect_err("no YAML");
        assert!(error.to_string().starts_with("line 5, "), "{error}");
    }
}
