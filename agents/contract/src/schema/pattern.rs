//! Patterns of a schema, from Python's syntax to that of the engine below `jsonschema`.
//!
//! Contracts carry Python patterns (spec §4): classes are Unicode, `$` also matches before a last line break, a brace
//! that is no repetition is itself. Only what differs is rewritten, in a copy that the engine alone sees.

use serde_json::{Map, Value};

use super::limits::{DATA, NAMED};

/// A copy of `schema` as the engine should read it: patterns translated, what belongs to other drafts left out.
pub(super) fn translate_schema(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => Value::Array(items.iter().map(translate_schema).collect()),
        Value::Object(members) => Value::Object(members.iter().filter_map(translate_member).collect()),
        _ => schema.clone(),
    }
}

fn translate_member((keyword, value): (&String, &Value)) -> Option<(String, Value)> {
    let value = match (keyword.as_str(), value) {
        // The draft is always 2020-12, whatever a schema says of itself; keywords of older ones mean nothing in it.
        ("$schema", Value::String(_)) | ("dependencies" | "additionalItems", _) => return None,
        // A "pattern" in plain data is no pattern.
        (keyword, data) if DATA.contains(&keyword) => data.clone(),
        ("pattern", Value::String(text)) => Value::String(translate(text)),
        ("patternProperties", Value::Object(members)) => {
            let translated = members.iter().map(|(text, schema)| (translate(text), translate_schema(schema)));
            Value::Object(translated.collect())
        }
        // Names in here are the user's, not keywords.
        (keyword, Value::Object(members)) if NAMED.contains(&keyword) => {
            let translated: Map<String, Value> =
                members.iter().map(|(name, schema)| (name.clone(), translate_schema(schema))).collect();
            Value::Object(translated)
        }
        (_, value) => translate_schema(value),
    };
    Some((keyword.clone(), value))
}

/// One pattern; what we do not know stays as it is.
pub(super) fn translate(python: &str) -> String {
    let chars: Vec<char> = python.chars().collect();
    let mut out = String::with_capacity(python.len() + 16);
    let multi_line = python.contains("(?m") || python.contains("(?im") || python.contains("(?sm");
    let mut groups: Vec<String> = Vec::new();
    let mut in_class = false;
    let mut class_start = 0;
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied();
        match c {
            '\\' => {
                out.push_str(&escape(next, in_class));
                at += 2;
                continue;
            }
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                class_start = at + 1;
                if next == Some('^') {
                    out.push('^');
                    class_start += 1;
                    at += 1;
                }
            }
            ']' if in_class && at > class_start => {
                in_class = false;
                out.push(']');
            }
            // Our engine knows set operations and nested classes, Python does not.
            '[' | ']' | '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '$' if !in_class && !multi_line => out.push_str(r"(?:\n?\z)"),
            '{' if !in_class => match repetition(&chars[at..]) {
                Some((text, len)) => {
                    out.push_str(&text);
                    at += len;
                    continue;
                }
                None => out.push_str(r"\{"),
            },
            '}' if !in_class => out.push_str(r"\}"),
            '(' if !in_class => {
                // Names only matter for references back, which the engine takes by number.
                if let Some((name, len)) = named(&chars[at..], ['P', '='], ')') {
                    let number = groups.iter().position(|group| *group == name).map_or(0, |index| index + 1);
                    out.push_str(&format!("\\{number}"));
                    at += len;
                    continue;
                }
                out.push('(');
                if let Some((name, len)) = named(&chars[at..], ['P', '<'], '>') {
                    groups.push(name);
                    at += len;
                    continue;
                }
                if next != Some('?') {
                    groups.push(String::new());
                }
            }
            c => out.push(c),
        }
        at += 1;
    }
    out
}

fn escape(escaped: Option<char>, in_class: bool) -> String {
    match (escaped, in_class) {
        (Some('d'), _) => r"\p{Nd}".to_owned(),
        (Some('D'), _) => r"\P{Nd}".to_owned(),
        (Some('w'), false) => r"[\p{L}\p{N}_]".to_owned(),
        (Some('w'), true) => r"\p{L}\p{N}_".to_owned(),
        (Some('W'), false) => r"[^\p{L}\p{N}_]".to_owned(),
        (Some('Z'), false) => r"\z".to_owned(),
        (Some(c), _) => format!("\\{c}"),
        (None, _) => "\\".to_owned(),
    }
}

/// The name in `(?P<name>` or `(?P=name)` and the length of all of it.
fn named(chars: &[char], kind: [char; 2], end: char) -> Option<(String, usize)> {
    let rest = chars.strip_prefix(&['(', '?', kind[0], kind[1]])?;
    let len = rest.iter().position(|&c| c == end)?;
    Some((rest[..len].iter().collect(), len + 5))
}

/// The repetition that starts here, in our syntax, and its length: `{3}`, `{3,}`, `{3,5}`, and Python's `{,5}`.
fn repetition(chars: &[char]) -> Option<(String, usize)> {
    let end = chars.iter().take(24).position(|&c| c == '}')?;
    let inner: String = chars[1..end].iter().collect();
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let text = match inner.split_once(',') {
        Some((least, most)) if is_number(least) && is_number(most) => {
            format!("{{{},{most}}}", if least.is_empty() { "0" } else { least })
        }
        None if !inner.is_empty() && is_number(&inner) => format!("{{{inner}}}"),
        _ => return None,
    };
    Some((text, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_python_reads_differently_changes() {
        for (python, ours) in [
            ("^a", "^a"),
            ("^[a-z]+$", r"^[a-z]+(?:\n?\z)"),
            (r"^\d+\.\w*\Z", r"^\p{Nd}+\.[\p{L}\p{N}_]*\z"),
            ("a{2}{3,}{,4}{x}", r"a{2}{3,}{0,4}\{x\}"),
            ("[]a[&&b]", r"[\]a\[\&\&b]"),
            (r#"(?P<q>['"]).*(?P=q)"#, r#"(['"]).*\1"#),
        ] {
            assert_eq!(translate(python), ours);
        }
    }
}
