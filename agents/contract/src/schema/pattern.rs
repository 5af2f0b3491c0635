//! Translates the patterns of a schema from Python's syntax to that of the regex engine of `jsonschema`.
//!
//! Contracts contain Python patterns (compatibility §4): classes are Unicode, `$` also matches before a final line
//! break, and a brace that is not a repetition is literal. Only the differences are rewritten, in a copy for the
//! engine.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::limits::{DATA, NAMED};

/// Maximum length of a repetition, including its braces.
const COUNT_CHARS_MAX: usize = 24;

/// Maximum length of a group name.
const NAME_CHARS_MAX: usize = 256;

/// A copy of `schema` for the engine, with translated patterns and without keywords of other drafts.
pub(super) fn translate_schema(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => Value::Array(items.iter().map(translate_schema).collect()),
        Value::Object(members) => Value::Object(members.iter().filter_map(translate_member).collect()),
        _ => schema.clone(),
    }
}

fn translate_member((keyword, value): (&String, &Value)) -> Option<(String, Value)> {
    let value = match (keyword.as_str(), value) {
        // The draft is always 2020-12, regardless of `$schema`; keywords of older drafts are ignored.
        ("$schema", Value::String(_)) | ("dependencies" | "additionalItems", _) => return None,
        // A "pattern" in plain data is not a pattern.
        (keyword, data) if DATA.contains(&keyword) => data.clone(),
        ("pattern", Value::String(text)) => Value::String(translate(text)),
        ("patternProperties", Value::Object(members)) => {
            let translated = members.iter().map(|(text, schema)| (translate(text), translate_schema(schema)));
            Value::Object(translated.collect())
        }
        // These names are chosen by the author and are not keywords.
        (keyword, Value::Object(members)) if NAMED.contains(&keyword) => {
            let translated: Map<String, Value> =
                members.iter().map(|(name, schema)| (name.clone(), translate_schema(schema))).collect();
            Value::Object(translated)
        }
        (_, value) => translate_schema(value),
    };
    Some((keyword.clone(), value))
}

/// Translates one pattern; unknown syntax is kept.
pub(super) fn translate(python: &str) -> String {
    let chars: Vec<char> = python.chars().collect();
    let mut translation = Translation {
        chars: &chars,
        at: 0,
        out: String::with_capacity(python.len() + 16),
        class: None,
        groups: 0,
        names: HashMap::new(),
        multi_line: ["(?m", "(?im", "(?sm"].iter().any(|flags| python.contains(flags)),
    };
    while let Some(&c) = chars.get(translation.at) {
        translation.at += translation.step(c);
    }
    translation.out
}

/// The state of the translation of one pattern.
struct Translation<'p> {
    chars: &'p [char],
    at: usize,
    out: String,
    /// Inside a class, the position of its first character. A `]` at this position is a literal.
    class: Option<usize>,
    /// The number of capturing groups so far, and the numbers of the named groups.
    groups: usize,
    names: HashMap<String, usize>,
    multi_line: bool,
}

impl Translation<'_> {
    /// Translates the syntax that starts with `c` at the current position; returns its length in characters.
    fn step(&mut self, c: char) -> usize {
        let next = self.chars.get(self.at + 1).copied();
        if c == '\\' {
            self.out.push_str(&escape(next, self.class.is_some()));
            return 2;
        }
        if let Some(first) = self.class {
            self.step_in_class(c, first);
            return 1;
        }
        match c {
            '[' => {
                let negated = next == Some('^');
                self.out.push_str(if negated { "[^" } else { "[" });
                let len = 1 + usize::from(negated);
                self.class = Some(self.at + len);
                return len;
            }
            '$' if !self.multi_line => self.out.push_str(r"(?:\n?\z)"),
            '{' => match repetition(&self.chars[self.at..]) {
                Some((text, len)) => {
                    self.out.push_str(&text);
                    return len;
                }
                None => self.out.push_str(r"\{"),
            },
            '}' => self.out.push_str(r"\}"),
            '(' => return self.open(next),
            c => self.out.push(c),
        }
        1
    }

    fn step_in_class(&mut self, c: char, first: usize) {
        match c {
            ']' if self.at > first => self.class = None,
            // The engine has set operations and nested classes, which Python does not have.
            '[' | ']' | '&' | '~' => self.out.push('\\'),
            _ => {}
        }
        self.out.push(c);
    }

    /// Translates the start of a group, or a back-reference by name. The engine refers to groups by number, so names
    /// are removed.
    fn open(&mut self, next: Option<char>) -> usize {
        let rest = &self.chars[self.at..];
        if let Some((name, len)) = named(rest, ['P', '='], ')') {
            let number = self.names.get(&name).copied().unwrap_or(0);
            self.out.push_str(&format!("\\{number}"));
            return len;
        }
        self.out.push('(');
        if let Some((name, len)) = named(rest, ['P', '<'], '>') {
            self.groups += 1;
            self.names.entry(name).or_insert(self.groups);
            return len;
        }
        self.groups += usize::from(next != Some('?'));
        1
    }
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

/// The name in `(?P<name>` or `(?P=name)`, and the length of the whole construct.
fn named(chars: &[char], kind: [char; 2], end: char) -> Option<(String, usize)> {
    let rest = chars.strip_prefix(&['(', '?', kind[0], kind[1]])?;
    // The search is bounded: in a pattern of many unfinished names, each would otherwise be searched to the end.
    let len = rest.iter().take(NAME_CHARS_MAX).position(|&c| c == end)?;
    Some((rest[..len].iter().collect(), len + 5))
}

/// The repetition that starts here, in the engine's syntax, and its length: `{3}`, `{3,}`, `{3,5}`, and Python's
/// `{,5}`.
fn repetition(chars: &[char]) -> Option<(String, usize)> {
    let end = chars.iter().take(COUNT_CHARS_MAX).position(|&c| c == '}')?;
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

    #[test]
    fn a_pattern_of_names_is_read_once() {
        let unfinished = "(?P=".repeat(50_000);
        assert_eq!(translate(&unfinished), unfinished);
        let names: String = (0..20_000).map(|n| format!("(?P<g{n}>a)")).collect();
        let references: String = (0..20_000).rev().map(|n| format!("(?P=g{n})")).collect();
        assert!(translate(&(names + &references)).ends_with("\\2\\1"));
    }
}
