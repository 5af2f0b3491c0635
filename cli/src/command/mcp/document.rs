//! One entry in a client's configuration file. Everything else in the file stays as it is.

use std::ops::Range;

use serde_json::{Map, Value};

/// Largest configuration file.
pub(super) const BYTES_MAX: u64 = 4 << 20;

/// What is left of a file without an entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// It has no such entry.
    Same,
    Text(String),
    /// Nothing: adding the entry created the file.
    Nothing,
}

/// The file with an entry in a section; a missing file and section are created. The error is a sentence without its subject.
pub(super) fn with_entry(text: Option<&str>, section: &str, name: &str, entry: &Value) -> Result<String, String> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(created(section, name, entry)) };
    let (root, found) = read(text, section)?;
    let style = Style::of(text, &root);
    let Some(section_at) = found else {
        let value = style.section(name, entry);
        return Ok(added(text, &root, &style, 1, &member(section, &value)));
    };
    if let Some(known) = section_at.members.iter().rfind(|known| known.name == name) {
        let mut text = text.to_owned();
        text.replace_range(known.value.clone(), &style.value(entry, 2));
        return Ok(text);
    }
    Ok(added(text, &section_at, &style, 2, &member(name, &style.value(entry, 2))))
}

/// The file without an entry, with the bytes that it had before the entry was added. A section that was added with it goes with it.
pub(super) fn without_entry(text: Option<&str>, section: &str, name: &str) -> Result<Left, String> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(Left::Same) };
    let (root, Some(found)) = read(text, section)? else { return Ok(Left::Same) };
    let Some(at) = found.members.iter().rposition(|known| known.name == name) else { return Ok(Left::Same) };
    let entry = serde_json::from_str(&text[found.members[at].value.clone()]).unwrap_or_default();
    if text == created(section, name, &entry) {
        return Ok(Left::Nothing);
    }
    // An entry of an empty section stands at its brace; where there is space between them, the section was added.
    let was_added = found.members.len() == 1 && found.members[at].start > found.open + 1;
    let whole = was_added.then(|| root.members.iter().rposition(|known| known.name == section)).flatten();
    let removed = match whole {
        // The object was empty: the line of its closing brace was added as well.
        Some(section) if root.members.len() == 1 => {
            let end = root.members[section].value.end;
            let line = ["\r\n", "\n"].into_iter().find(|line| text[end..].starts_with(line)).map_or(0, str::len);
            root.open + 1..end + line
        }
        Some(section) => root.span(section),
        None => found.span(at),
    };
    let mut text = text.to_owned();
    text.replace_range(removed, "");
    Ok(Left::Text(text))
}

/// A new file.
fn created(section: &str, name: &str, entry: &Value) -> String {
    let entries = Map::from_iter([(name.to_owned(), entry.clone())]);
    format!("{:#}\n", Value::Object(Map::from_iter([(section.to_owned(), Value::Object(entries))])))
}

fn member(name: &str, value: &str) -> String {
    format!("{}: {value}", Value::from(name))
}

/// The root of a file and its section. Editors accept comments in their files; what has some is left to the person.
fn read(text: &str, section: &str) -> Result<(Object, Option<Object>), String> {
    let plain = |error: &dyn std::fmt::Display| format!("is not plain JSON: {error}");
    let document: Map<String, Value> = serde_json::from_str(text).map_err(|error| plain(&error))?;
    let root = Object::at(text, 0).ok_or_else(|| plain(&"it has no object"))?;
    let found = root.members.iter().rfind(|known| known.name == section);
    match (document.get(section), found) {
        (None, _) | (_, None) => Ok((root, None)),
        (Some(Value::Object(_)), Some(found)) => {
            let object = Object::at(text, found.value.start).ok_or_else(|| plain(&"a section has no end"))?;
            Ok((root, Some(object)))
        }
        _ => Err(format!("has a \"{section}\" that is not an object")),
    }
}

/// The text with another member at the end of an object.
fn added(text: &str, object: &Object, style: &Style, depth: usize, member: &str) -> String {
    let (at, new) = match object.members.last() {
        Some(last) => {
            let before = object.members.len().checked_sub(2).map_or(object.open + 1, |at| object.members[at].value.end);
            let space: String = text[before..last.start].chars().filter(|letter| letter.is_whitespace()).collect();
            (last.value.end, format!(",{space}{member}"))
        }
        // What is between the braces stays behind the entry.
        None if depth > 1 => (object.open + 1, member.to_owned()),
        None => (object.open + 1, format!("{}{member}", style.line(depth))),
    };
    let closing = if object.members.is_empty() && depth == 1 { style.line(0) } else { String::new() };
    format!("{}{new}{closing}{}", &text[..at], &text[at..])
}

/// How a file is written.
struct Style {
    /// The end of a line; none if the file is one line.
    end: Option<&'static str>,
    /// The space that one level adds.
    unit: String,
}

impl Style {
    fn of(text: &str, root: &Object) -> Self {
        let space = root.members.first().map(|first| &text[root.open + 1..first.start]);
        let unit = space.and_then(|space| space.rsplit_once('\n')).map_or("  ", |(_, unit)| unit);
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let lines = space.is_none_or(|space| space.contains('\n'));
        Self { end: lines.then_some(end), unit: unit.to_owned() }
    }

    /// A new line of a level.
    fn line(&self, depth: usize) -> String {
        self.end.map_or_else(String::new, |end| format!("{end}{}", self.unit.repeat(depth)))
    }

    /// A value that begins at a level.
    fn value(&self, value: &Value, depth: usize) -> String {
        match value {
            Value::Object(members) if self.end.is_some() && !members.is_empty() => {
                let line = self.line(depth + 1);
                let all = members
                    .iter()
                    .map(|(name, value)| format!("{line}{}", member(name, &self.value(value, depth + 1))));
                format!("{{{}{}}}", all.collect::<Vec<_>>().join(","), self.line(depth))
            }
            Value::Array(items) if self.end.is_some() && !items.is_empty() => {
                let line = self.line(depth + 1);
                let all = items.iter().map(|value| format!("{line}{}", self.value(value, depth + 1)));
                format!("[{}{}]", all.collect::<Vec<_>>().join(","), self.line(depth))
            }
            value => value.to_string(),
        }
    }

    /// A section with one entry, which can be told from one that was there before.
    fn section(&self, name: &str, entry: &Value) -> String {
        let entry = member(name, &self.value(entry, 2));
        match self.end {
            Some(_) => format!("{{{}{entry}{}}}", self.line(2), self.line(1)),
            None => format!("{{ {entry} }}"),
        }
    }
}

/// Where an object is in a text.
#[derive(Debug)]
struct Object {
    /// Of its opening brace.
    open: usize,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    name: String,
    /// Of its name.
    start: usize,
    value: Range<usize>,
}

impl Object {
    /// The object that begins at an offset, after spaces. The text is JSON.
    fn at(text: &str, at: usize) -> Option<Self> {
        let open = spaces(text, at)?;
        let mut at = spaces(text, text[open..].strip_prefix('{').map(|_| open + 1)?)?;
        let mut members = Vec::new();
        while !text[at..].starts_with('}') {
            let name = at..end_of(text, at)?;
            let colon = spaces(text, name.end)?;
            let start = spaces(text, colon + 1)?;
            let value = start..end_of(text, start)?;
            at = spaces(text, value.end)?;
            if text[at..].starts_with(',') {
                at = spaces(text, at + 1)?;
            }
            members.push(Member { start: name.start, name: serde_json::from_str(&text[name]).ok()?, value });
        }
        Some(Self { open, members })
    }

    /// What a member adds to the text: with the comma that divides it from another one.
    fn span(&self, at: usize) -> Range<usize> {
        let Member { start, value, .. } = &self.members[at];
        match (at.checked_sub(1), self.members.get(at + 1)) {
            (Some(before), _) => self.members[before].value.end..value.end,
            (None, Some(after)) => *start..after.start,
            (None, None) => *start..value.end,
        }
    }
}

/// The offset of what follows spaces.
fn spaces(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    rest.find(|letter: char| !letter.is_ascii_whitespace()).map(|space| at + space)
}

/// The offset after the value that begins at an offset.
fn end_of(text: &str, at: usize) -> Option<usize> {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for (offset, letter) in text.get(at..)?.char_indices() {
        let end = at + offset + letter.len_utf8();
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_text => is_escaped = true,
            '"' => {
                is_text = !is_text;
                if !is_text && depth == 0 {
                    return Some(end);
                }
            }
            _ if is_text => {}
            '{' | '[' => depth += 1,
            '}' | ']' if depth == 0 => return Some(at + offset),
            '}' | ']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(end);
                }
            }
            ',' if depth == 0 => return Some(at + offset),
            letter if depth == 0 && letter.is_ascii_whitespace() => return Some(at + offset),
            _ => {}
        }
    }
    None
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
    fn removing_restores_every_byte() {
        let entry = json!({ "url": "http://127.0.0.1:7400/mcp", "args": ["a", {}], "env": {} });
        for before in [
            "{\n  \"mcpServers\": {\n    \"b\": {}\n  }\n}\n",
            "{\n\t\"mcpServers\" : {\n\t\t\"b\": [1,2 , 3],\n\n\t\t\"c\":{ }},\n\t\"theme\": \"a \\\"}{\"\n}",
            "{\r\n    \"theme\": \"dark\"\r\n}\r\n",
            "{ \"a\": 1.0, \"mcpServers\": {} }",
            "{\"a\":1e3,\"b\":[true,null]}",
            "{\"mcpServers\":{\"b\":{\"u\\u00fc\":\"\\\\\"}},\"z\":-0.10}\n\n",
            "{\n  \"mcpServers\": {\n  }\n}\n",
            "\n{}\n",
            "{ \n }",
        ] {
            let with = with_entry(Some(before), "mcpServers", "atlas", &entry).expect("a document");
            let read: Value = serde_json::from_str(&with).unwrap_or_else(|error| panic!("JSON: {error}\n{with}"));
            assert_eq!(read["mcpServers"]["atlas"], entry, "{with}");
            let left = without_entry(Some(&with), "mcpServers", "atlas").expect("a document");
            let Left::Text(left) = left else { panic!("a text is left: {with}") };
            assert_eq!(left, before, "{with}");
        }
    }

    #[test]
    fn the_rest_of_a_file_keeps_its_form() {
        check(
            Some("{\"theme\": \"dark\", \"mcpServers\": {\"b\": {}}}"),
            &expect![[r#"
                - {"theme": "dark", "mcpServers": {"b": {}}}
                + {"theme": "dark", "mcpServers": {"b": {},"atlas": {"url":"http://127.0.0.1:7400/mcp"}}}
            "#]],
        );
        check(
            Some("{\n\t\"fonts\": [1,   2]\n}\n"),
            &expect![[r#"
                - 	"fonts": [1,   2]
                + 	"fonts": [1,   2],
                + 	"mcpServers": {
                + 		"atlas": {
                + 			"url": "http://127.0.0.1:7400/mcp"
                + 		}
                + 	}
            "#]],
        );
    }

    #[test]
    fn an_entry_is_replaced_where_it_is() {
        let old = "{\n  \"mcpServers\": {\n    \"atlas\": {\"url\":  \"old\"},\n    \"b\": 1\n  }\n}\n";
        let new = with_entry(Some(old), "mcpServers", "atlas", &json!({ "url": "new" })).expect("a document");
        assert_eq!(new, old.replace("{\"url\":  \"old\"}", "{\n      \"url\": \"new\"\n    }"));
        let left = "{\n  \"mcpServers\": {\n    \"b\": 1\n  }\n}\n";
        assert_eq!(without_entry(Some(&new), "mcpServers", "atlas"), Ok(Left::Text(left.to_owned())));
    }

    #[test]
    fn a_file_that_was_created_is_removed() {
        let with = with_entry(None, "mcpServers", "atlas", &json!({ "url": "x" })).expect("a document");
        assert_eq!(without_entry(Some(&with), "mcpServers", "atlas"), Ok(Left::Nothing));
        for same in [None, Some(""), Some("{}"), Some("{\"mcpServers\": {\"b\": {}}}")] {
            assert_eq!(without_entry(same, "mcpServers", "atlas"), Ok(Left::Same), "{same:?}");
        }
    }
}
